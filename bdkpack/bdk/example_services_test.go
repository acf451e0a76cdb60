package bdk_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type question struct {
	Text string `json:"text"`
}

// A tool that asks the agent in a session of its own. The message is sent once, also if the call is made again after a crash.
func ExampleSessions() {
	ask := bdk.DefineTool(bdk.ToolSpec{Description: "Ask for a second opinion."}, func(ctx context.Context, call *bdk.Call, in question) (string, error) {
		sent, err := call.Sessions.Send(ctx, bdk.Message{Text: in.Text, Title: "second opinion"})
		if err != nil {
			return "", err
		}
		turn, err := call.Sessions.Wait(ctx, sent.SessionID, sent.TurnID)
		return turn.Result, err
	})
	fmt.Println(ask.Err())
	// Output: <nil>
}

// A tool that numbers what it is given, once each, in whatever sessions and processes it is called.
func ExampleKV() {
	number := bdk.DefineTool(bdk.ToolSpec{Description: "Number a question."}, func(ctx context.Context, call *bdk.Call, in question) (string, error) {
		switch err := call.KV.Swap(ctx, "asked/"+in.Text, 0, call.Session.Owner); {
		case errors.Is(err, bdk.ErrChanged):
			return "asked before", nil
		case err != nil:
			return "", err
		}
		return "new", nil
	})
	fmt.Println(number.Err())
	// Output: <nil>
}

// A tool that hands in a report that it has written into the session's files.
func ExampleArtifacts() {
	report := bdk.DefineTool(bdk.ToolSpec{Description: "Write the report."}, func(ctx context.Context, call *bdk.Call, in question) (string, error) {
		if err := call.Workspace.WriteFile(ctx, "report.md", []byte("# "+in.Text), 0o644); err != nil {
			return "", err
		}
		return call.Artifacts.Tag(ctx, bdk.Artifact{Kind: "report", Key: "weekly", Title: "Weekly report", Path: "report.md"})
	})
	fmt.Println(report.Err())
	// Output: <nil>
}
