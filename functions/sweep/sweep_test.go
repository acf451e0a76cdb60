package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/functions/sweep"
)

// TestSweeps: whatever the event, once an event; the error of a sweep is the function's.
func TestSweeps(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errors.New("no")} {
		var log bytes.Buffer
		sweeps := 0
		h := lambda.NewHandler(sweep.New(func(context.Context) error { sweeps++; return want }, slog.New(slog.NewJSONHandler(&log, nil))))
		for _, event := range []string{"{}", `"x"`, "null"} {
			if out, err := h.Invoke(t.Context(), []byte(event)); !errors.Is(err, want) || err == nil && string(out) != "null" {
				t.Errorf("%s: got %s, %v", event, out, err)
			}
		}
		if sweeps != 3 || strings.Count(log.String(), `"function":"sweep"`) != 3 {
			t.Errorf("%d sweeps, logged %s", sweeps, log.String())
		}
	}
}
