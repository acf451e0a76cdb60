package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type stashInput struct {
	Text string `json:"text"`
}

// Stash adds a line to a file of all sessions, and to one of its own, and returns the latter.
var Stash = bdk.DefineTool(bdk.ToolSpec{Description: "Stash a line."}, func(ctx context.Context, call *bdk.Call, in stashInput) (string, error) {
	line := []byte(in.Text + "\n")
	if err := call.Files.Deployment().Append(ctx, "memory/stash.txt", line); err != nil {
		return "", err
	}
	if err := call.Files.Append(ctx, "stash.txt", line); err != nil {
		return "", err
	}
	data, err := call.Files.Read(ctx, "stash.txt")
	return string(data), err
})
