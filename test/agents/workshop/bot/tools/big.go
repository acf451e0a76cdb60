package tools

import (
	"context"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Big returns 1 MiB of text whose end matters.
var Big = bdk.DefineTool(bdk.ToolSpec{Description: "Return a long text.", Effect: bdk.Read}, big)

func big(context.Context, *bdk.Call, struct{}) (string, error) {
	const tail = "\nexit 1"
	return "begin\n" + strings.Repeat("0123456789abcde\n", 1<<16)[:1<<20-len("begin\n")-len(tail)] + tail, nil
}
