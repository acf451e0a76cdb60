// Package bot is a fixture: an agent with skills in the forms that are found in public.
package bot

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Agent is the agent's configuration.
var Agent = bdk.Agent{
	Name:        "Library",
	Description: "Has skills.",
	Model:       "scripted:model.yaml",
	Tools:       []string{bdk.ToolSkill, bdk.ToolRead, bdk.ToolGlob},
}
