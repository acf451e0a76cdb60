package tools

import (
	"context"
	"errors"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Fail returns an error.
var Fail = bdk.DefineTool(bdk.ToolSpec{Description: "Fail.", Effect: bdk.Read}, fail)

func fail(context.Context, *bdk.Call, struct{}) (string, error) {
	return "", errors.New("out of paint")
}
