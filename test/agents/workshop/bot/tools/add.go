// Package tools defines the tools of the agent.
package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type addInput struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Add adds two numbers.
var Add = bdk.DefineTool(bdk.ToolSpec{Description: "Add two numbers.", Effect: bdk.Read}, add)

func add(_ context.Context, _ *bdk.Call, in addInput) (int, error) { return in.A + in.B, nil }
