package tools

import (
	"context"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type relayInput struct {
	Text string `json:"text"`
}

// Relay asks the agent in a session of its own, and returns what it answers.
var Relay = bdk.DefineTool(bdk.ToolSpec{Description: "Ask in another session.", Timeout: time.Minute}, relay)

func relay(ctx context.Context, call *bdk.Call, in relayInput) (string, error) {
	sent, err := call.Sessions.Send(ctx, bdk.Message{Text: in.Text, Title: "relayed " + call.ID})
	if err != nil {
		return "", err
	}
	result, err := call.Sessions.Wait(ctx, sent.SessionID, sent.TurnID)
	return result.Status + ": " + result.Result, err
}
