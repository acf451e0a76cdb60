package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type trailInput struct {
	Session string `json:"session"`
}

// Trail shows what the hook audit/trail has written down of a session.
var Trail = bdk.DefineTool(bdk.ToolSpec{Description: "Show the trail of a session.", Effect: bdk.Read}, func(ctx context.Context, call *bdk.Call, in trailInput) ([]string, error) {
	entry, err := call.KV.Get(ctx, "trail/"+in.Session)
	if errors.Is(err, bdk.ErrNotFound) {
		return []string{}, nil
	}
	var trail []string
	if err == nil {
		err = json.Unmarshal(entry.Value, &trail)
	}
	return trail, err
})
