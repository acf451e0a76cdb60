package hook_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	hookfn "github.com/bdk-lambda/bdk/functions/hook"
	"github.com/bdk-lambda/bdk/shared/hook"
)

// TestMessages: each is told, one that is no message is passed over, and behind one that fails nothing is told.
func TestMessages(t *testing.T) {
	t.Parallel()
	message := func(id, body string) string { return fmt.Sprintf(`{"messageId":%q,"body":%q}`, id, body) }
	told := func(session string) string {
		return `{"subscriber":"hook/a","sessionId":"` + session + `","indexes":[1,3]}`
	}
	for name, tc := range map[string]struct {
		in     string
		want   []hook.Message
		answer string
	}{
		"one":       {message("m1", told("s")), []hook.Message{{Subscriber: "hook/a", SessionID: "s", Indexes: []int64{1, 3}}}, `{"batchItemFailures":[]}`},
		"no JSON":   {message("m1", "x"), nil, `{"batchItemFailures":[]}`},
		"it fails":  {message("m1", told("stuck")) + "," + message("m2", told("s")), []hook.Message{{Subscriber: "hook/a", SessionID: "stuck", Indexes: []int64{1, 3}}}, `{"batchItemFailures":[{"itemIdentifier":"m1"},{"itemIdentifier":"m2"}]}`},
		"it panics": {message("m1", told("panic")), []hook.Message{{Subscriber: "hook/a", SessionID: "panic", Indexes: []int64{1, 3}}}, `{"batchItemFailures":[{"itemIdentifier":"m1"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []hook.Message
			handler := hookfn.New(func(_ context.Context, m hook.Message) error {
				got = append(got, m)
				switch m.SessionID {
				case "stuck":
					return errors.New("no")
				case "panic":
					panic("boom")
				}
				return nil
			}, slog.New(slog.DiscardHandler))
			answer, err := lambda.NewHandler(handler).Invoke(t.Context(), []byte(`{"Records":[`+tc.in+`]}`))
			if err != nil || string(answer) != tc.answer {
				t.Errorf("got %s, %v; want %s", answer, err, tc.answer)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
