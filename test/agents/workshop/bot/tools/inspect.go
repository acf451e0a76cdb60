package tools

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type inspectInput struct {
	Path string `json:"path"`
}

// Inspect returns a file of the session, and who asks.
var Inspect = bdk.DefineTool(bdk.ToolSpec{Description: "Show a file.", Effect: bdk.Read}, inspect)

func inspect(ctx context.Context, call *bdk.Call, in inspectInput) (map[string]any, error) {
	data, err := call.Workspace.ReadFile(ctx, in.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		err = nil
	}
	return map[string]any{"text": strings.TrimSpace(string(data)), "missing": missing, "owner": call.Session.Owner, "session": call.Session.ID}, err
}
