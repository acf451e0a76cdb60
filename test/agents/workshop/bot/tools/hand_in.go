package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type handInInput struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// HandIn writes a report and records it.
var HandIn = bdk.DefineTool(bdk.ToolSpec{Description: "Hand in a report."}, handIn)

func handIn(ctx context.Context, call *bdk.Call, in handInInput) (string, error) {
	if err := call.Workspace.WriteFile(ctx, "out/report.md", []byte(in.Text), 0o644); err != nil {
		return "", err
	}
	return call.Artifacts.Tag(ctx, bdk.Artifact{Kind: "report", Key: in.Key, Path: "out/report.md"})
}
