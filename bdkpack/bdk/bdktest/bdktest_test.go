package bdktest_test

import (
	"context"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/bdk/bdktest"
)

// count is the function of a tool, which counts its calls.
func count(ctx context.Context, call *bdk.Call, _ struct{}) (string, error) {
	call.Log().Info("counted", "call", call.ID)
	if err := call.Files.Append(ctx, "calls", []byte(call.ID+"\n")); err != nil {
		return "", err
	}
	data, err := call.Files.Read(ctx, "calls")
	return string(data), err
}

func TestCall(t *testing.T) {
	t.Parallel()
	call := bdktest.Call(t)
	for _, want := range []string{"call_1\n", "call_1\ncall_1\n"} {
		if got, err := count(t.Context(), call, struct{}{}); got != want || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if call.Session.Owner != "local" || call.StateRoot == "" || call.Now().IsZero() {
		t.Errorf("got %+v", call)
	}
	if _, err := bdktest.Call(t).Files.Read(t.Context(), "calls"); err == nil {
		t.Error("calls share files")
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	e := bdktest.Event(bdk.MessageReceived{Text: "hi"})
	data, err := bdk.DecodeEvent[bdk.MessageReceived](e)
	if err != nil || data.Text != "hi" || e.SessionID != "ses_1" || e.TurnID != "turn_1" || e.At.IsZero() {
		t.Errorf("got %+v, %v", e, err)
	}
}
