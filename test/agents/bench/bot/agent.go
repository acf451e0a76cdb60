// Package bot is the agent that is measured: what every agent has, and two tools.
package bot

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Agent is the agent's configuration.
var Agent = bdk.Agent{Name: "Bench", Description: "Is measured.", Model: "scripted:demo.yaml"}
