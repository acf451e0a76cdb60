package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type jotInput struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// Jot writes a file of the session.
var Jot = bdk.DefineTool(bdk.ToolSpec{Description: "Write a file."}, jot)

func jot(ctx context.Context, call *bdk.Call, in jotInput) (string, error) {
	return "written", call.Workspace.WriteFile(ctx, in.Path, []byte(in.Text), 0o644)
}
