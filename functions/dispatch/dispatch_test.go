package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/functions/dispatch"
	"github.com/bdk-lambda/bdk/shared/event"
)

// record returns a record of the stream, with a new image.
func record(seq int, name, image string) string {
	return fmt.Sprintf(`{"eventName":%q,"dynamodb":{"SequenceNumber":"%d","NewImage":%s}}`, name, seq, image)
}

func appended(seq int, session string, n int) string {
	return record(seq, "INSERT", fmt.Sprintf(`{"sid":{"S":%q},"n":{"N":"%d"},"t":{"S":"turn.completed"},"turn":{"S":"turn_1"}}`, session, n))
}

// TestDispatch: events are dispatched together, what is no event is passed over, and the first that failed is named.
func TestDispatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		records []string
		failed  int
		err     error
		want    []string
		answer  string
	}{
		"none": {nil, -1, nil, nil, `{"batchItemFailures":[]}`},
		"two":  {[]string{appended(1, "a", 0), appended(2, "b", 7)}, -1, nil, []string{"a 0 turn.completed turn_1", "b 7 turn.completed turn_1"}, `{"batchItemFailures":[]}`},
		"no events among them": {
			[]string{
				record(1, "INSERT", `{}`), record(2, "REMOVE", `{"sid":{"S":"a"},"n":{"N":"1"},"t":{"S":"x"}}`),
				record(3, "INSERT", `{"sid":{"S":"a"},"n":{"S":"1"},"t":{"S":"x"}}`), record(4, "INSERT", `{"sid":{"S":"a"},"n":{"N":"1.5"},"t":{"S":"x"}}`),
				record(5, "INSERT", `{"sid":{"S":"a"},"n":{"N":"-1"},"t":{"S":"x"}}`), record(6, "INSERT", `{"sid":{"N":"5"},"n":{"N":"1"},"t":{"S":"x"}}`),
				record(7, "INSERT", `{"sid":{"S":"a"},"n":{"N":"1"}}`), record(8, "INSERT", `{"sid":{"S":"a"},"n":{"N":"3"},"t":{"S":"session.waiting"}}`),
			},
			-1, nil,
			[]string{"a 3 session.waiting "},
			`{"batchItemFailures":[]}`,
		},
		"the second fails": {
			[]string{record(1, "INSERT", `{}`), appended(2, "a", 0), appended(3, "b", 0)},
			1, errors.New("no"),
			[]string{"a 0 turn.completed turn_1", "b 0 turn.completed turn_1"},
			`{"batchItemFailures":[{"itemIdentifier":"3"}]}`,
		},
		"all fail": {[]string{appended(2, "a", 0)}, -1, errors.New("no"), []string{"a 0 turn.completed turn_1"}, ""},
		"a panic":  {[]string{appended(2, "panic", 0)}, -1, nil, []string{"panic 0 turn.completed turn_1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			handler := dispatch.New(func(_ context.Context, events []event.Event) (int, error) {
				for _, e := range events {
					got = append(got, fmt.Sprint(e.SessionID, " ", e.Index, " ", e.Type, " ", e.TurnID))
				}
				if events[0].SessionID == "panic" {
					panic("boom")
				}
				return tc.failed, tc.err
			}, slog.New(slog.DiscardHandler))
			answer, err := lambda.NewHandler(handler).Invoke(t.Context(), []byte(`{"Records":[`+strings.Join(tc.records, ",")+`]}`))
			if (err != nil) != (tc.answer == "") || err == nil && string(answer) != tc.answer {
				t.Errorf("got %s, %v; want %s", answer, err, tc.answer)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dispatched (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLog: one line for an invocation, without what was said.
func TestLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	handler := dispatch.New(func(context.Context, []event.Event) (int, error) { return -1, nil }, slog.New(slog.NewJSONHandler(&log, nil)))
	in := `{"Records":[` + record(1, "INSERT", `{"sid":{"S":"a"},"n":{"N":"1"},"t":{"S":"message.received"},"d":{"S":"secret"}}`) + "," + record(2, "INSERT", `{}`) + `]}`
	if _, err := lambda.NewHandler(handler).Invoke(t.Context(), []byte(in)); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line["events"] != 1.0 || line["passed_over"] != 1.0 || strings.Contains(log.String(), "secret") {
		t.Errorf("got %s, %v", &log, err)
	}
}
