// Package bot is a fixture: an agent whose tools do what tools do to a host, well and badly. Its model is a script that
// answers to the first word of a message.
package bot

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Agent is the agent's configuration.
var Agent = bdk.Agent{
	Name:        "Workshop",
	Description: "Works, and fails, on request.",
	Model:       "scripted:model.yaml",
	Tools:       bdk.HarnessTools(),
	Limits:      bdk.Limits{StepsPerTurn: 12, ParallelTools: 4},
}
