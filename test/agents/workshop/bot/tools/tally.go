package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type tallyInput struct {
	Name string `json:"name"`
}

// Tally counts how often it was called with a name, in all sessions and processes.
var Tally = bdk.DefineTool(bdk.ToolSpec{Description: "Count."}, tally)

func tally(ctx context.Context, call *bdk.Call, in tallyInput) (int, error) {
	for {
		entry, err := call.KV.Get(ctx, in.Name)
		n := 0
		if err == nil {
			err = json.Unmarshal(entry.Value, &n)
		}
		if err != nil && !errors.Is(err, bdk.ErrNotFound) {
			return 0, err
		}
		if err = call.KV.Swap(ctx, in.Name, entry.Version, n+1); !errors.Is(err, bdk.ErrChanged) {
			return n + 1, err
		}
	}
}
