// Package bot is a fixture: an agent whose instructions are a folder and whose tool uses a helper package.
package bot

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Agent is the agent's configuration.
var Agent = bdk.Agent{Name: "Joined", Model: "scripted:model.yaml"}
