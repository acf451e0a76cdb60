package tools

import (
	"context"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type waitInput struct {
	MS int `json:"ms,omitempty" jsonschema:"milliseconds to wait"`
}

// wait waits as long as the input says, or until ctx ends.
func (in waitInput) wait(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Slow waits and stops waiting when it is told to.
var Slow = bdk.DefineTool(bdk.ToolSpec{Description: "Wait.", Effect: bdk.Read}, slow)

func slow(ctx context.Context, _ *bdk.Call, in waitInput) (string, error) {
	return "rested", in.wait(ctx)
}
