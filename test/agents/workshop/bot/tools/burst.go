package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Burst panics.
var Burst = bdk.DefineTool(bdk.ToolSpec{Description: "Panic.", Effect: bdk.Read}, burst)

func burst(context.Context, *bdk.Call, struct{}) (string, error) { panic("the pipe burst") }
