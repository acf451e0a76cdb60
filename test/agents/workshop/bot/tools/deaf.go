package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Deaf waits and cannot be stopped.
var Deaf = bdk.DefineTool(bdk.ToolSpec{Description: "Wait, whatever happens.", Effect: bdk.Read}, deaf)

func deaf(ctx context.Context, _ *bdk.Call, in waitInput) (string, error) {
	return "rested", in.wait(context.WithoutCancel(ctx))
}
