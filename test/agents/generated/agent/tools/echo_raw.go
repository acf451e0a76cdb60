// Package tools has a tool that takes its input as it comes.
package tools

import (
	"context"
	"encoding/json"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// EchoRaw answers with its input.
var EchoRaw = bdk.DefineTool(bdk.ToolSpec{
	Description: "Echo the input.",
	Effect:      bdk.Read,
	InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
}, func(_ context.Context, _ *bdk.Call, in json.RawMessage) (json.RawMessage, error) { return in, nil })
