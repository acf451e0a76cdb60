package await_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/functions/await"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// TestParks: a call is parked with its token, which is in no log.
func TestParks(t *testing.T) {
	t.Parallel()
	fault := errors.New("no")
	for _, want := range []error{nil, fault} {
		var log bytes.Buffer
		var got sfnturn.AwaitInput
		park := func(_ context.Context, in sfnturn.AwaitInput) error { got = in; return want }
		_, err := lambda.NewHandler(await.New(park, slog.New(slog.NewJSONHandler(&log, nil)))).
			Invoke(t.Context(), []byte(`{"sessionId":"ses_1","turnId":"turn_1","callId":"call_1","token":"secret-token"}`))
		in := sfnturn.AwaitInput{Ref: turn.Ref{SessionID: "ses_1", TurnID: "turn_1"}, CallID: "call_1", Token: "secret-token"}
		if !errors.Is(err, want) || got != in {
			t.Errorf("got %+v, %v", got, err)
		}
		if text := log.String(); strings.Contains(text, "secret") || !strings.Contains(text, `"session_id":"ses_1","turn_id":"turn_1","call_id":"call_1"`) {
			t.Errorf("logged %s", text)
		}
	}
}

// TestNeedsAllIDs: nothing is parked that nobody could resume.
func TestNeedsAllIDs(t *testing.T) {
	t.Parallel()
	park := func(context.Context, sfnturn.AwaitInput) error { t.Error("it was parked"); return nil }
	h := lambda.NewHandler(await.New(park, slog.New(slog.DiscardHandler)))
	all := `{"sessionId":"ses_1","turnId":"turn_1","callId":"call_1","token":"t"}`
	for _, name := range []string{"sessionId", "turnId", "callId", "token"} {
		if _, err := h.Invoke(t.Context(), []byte(strings.Replace(all, `"`+name+`"`, `"other"`, 1))); err == nil {
			t.Errorf("it is parked without %s", name)
		}
	}
}
