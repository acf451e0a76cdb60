package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/functions/sweep"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// turns notes what it is asked.
type turns struct {
	asked []string
	err   error
}

func (s *turns) Sweep(context.Context) error {
	s.asked = append(s.asked, "sweep")
	return s.err
}

func (s *turns) Fail(_ context.Context, ref turn.Ref, message string) error {
	s.asked = append(s.asked, fmt.Sprintf("fail %s %s: %s", ref.SessionID, ref.TurnID, message))
	return s.err
}

func (s *turns) Remind(_ context.Context, id string) error {
	s.asked = append(s.asked, "remind "+id)
	return s.err
}

func execution(name, status, input string) string {
	return fmt.Sprintf(`{"source":"aws.states","detail-type":"Step Functions Execution Status Change","detail":{"name":%q,"status":%q,"input":%q}}`, name, status, input)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, event string
		want        []string
		fault       string
	}{
		{"of the schedule", `{"source":"aws.scheduler","detail":"{}"}`, []string{"sweep"}, ""},
		{"an empty one", "{}", []string{"sweep"}, ""},
		{"a text", `"x"`, []string{"sweep"}, ""},
		{"null", "null", []string{"sweep"}, ""},
		{"an execution that failed", execution("turn_1", "FAILED", `{"sessionId":"ses_1","turnId":"turn_1"}`), []string{"fail ses_1 turn_1: the execution of the turn ended: failed"}, ""},
		{"one that took too long", execution("turn_1", "TIMED_OUT", `{"sessionId":"ses_1","turnId":"turn_1"}`), []string{"fail ses_1 turn_1: the execution of the turn ended: timed out"}, ""},
		{"one that is not of a turn", execution("by-hand", "FAILED", `{}`), nil, `the execution "by-hand" is not of a turn`},
		{"one with a name of its own", execution("by-hand", "FAILED", `{"sessionId":"ses_1","turnId":"turn_1"}`), nil, `the execution "by-hand" is not of a turn`},
		{"one whose input was left out", execution("turn_1", "FAILED", ""), nil, `the execution "turn_1" is not of a turn`},
		{"of a reminder", `{"Records":[{"body":"{\"reminder\":\"rem_1\"}"}]}`, []string{"remind rem_1"}, ""},
		{"of reminders and of none", `{"Records":[{"body":"{\"reminder\":\"rem_1\"}"},{"body":"x"},{"body":"{\"reminder\":\"rem_2\"}"}]}`, []string{"remind rem_1", "remind rem_2"}, ""},
		{"of no reminder", `{"Records":[{"body":"{}"}]}`, []string{"sweep"}, ""},
		{"a strange one", `{"source":"aws.states","detail":7}`, nil, "reading the event of an execution"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{nil, errors.New("no")} {
				var log bytes.Buffer
				s := &turns{err: err}
				_, got := lambda.NewHandler(sweep.New(s, slog.New(slog.NewJSONHandler(&log, nil)))).Invoke(t.Context(), []byte(tc.event))
				if d := cmp.Diff(tc.want, s.asked); d != "" {
					t.Error(d)
				}
				if tc.fault == "" && !errors.Is(got, err) || tc.fault != "" && (got == nil || !strings.Contains(got.Error(), tc.fault)) {
					t.Errorf("got error %v; want %v%s", got, err, tc.fault)
				}
				if strings.Count(log.String(), `"function":"sweep"`) != 1 {
					t.Errorf("logged %s", log.String())
				}
			}
		})
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(execution("turn_1", "FAILED", `{"sessionId":"ses_1","turnId":"turn_1"}`)))
	f.Add([]byte(`{"source":"aws.states","detail":{}}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		s := &turns{}
		err := sweep.New(s, slog.New(slog.DiscardHandler))(t.Context(), event)
		if err == nil && len(s.asked) < 1 || err != nil && len(s.asked) != 0 {
			t.Errorf("asked %v, error %v", s.asked, err)
		}
	})
}
