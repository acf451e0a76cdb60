// Package bot is the agent: its configuration here, its instructions in instructions.md, its tools in tools.
package bot

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Agent configures the agent. BDK_MODEL in the environment overrides its model.
var Agent = bdk.Agent{
	Name:        "PR approver",
	Description: "Reviews pull requests and approves the ones that are ready.",
	Model:       "scripted:demo.yaml",
	Tools:       []string{bdk.ToolRead, bdk.ToolGrep}, // for the memory of earlier conversations
}
