// Package tools defines the tools of the agent.
package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/test/agents/joined/bot/lib/greeting"
)

type greetInput struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

// Greet greets somebody.
var Greet = bdk.DefineTool(bdk.ToolSpec{Description: "Greet somebody.", Effect: bdk.Read}, greet)

func greet(_ context.Context, _ *bdk.Call, in greetInput) (string, error) {
	return greeting.For(in.Name), nil
}
