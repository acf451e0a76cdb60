package step_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/functions/step"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

type turns struct {
	step func(ctx context.Context) (turn.Outcome, error)
	fail func(message string) error

	parked []string // the calls the turn waits for
}

func (t turns) Step(ctx context.Context, _ turn.Ref) (turn.Outcome, error) { return t.step(ctx) }

func (t turns) Parked(context.Context, turn.Ref) ([]string, error) { return t.parked, nil }

func (t turns) Fail(_ context.Context, _ turn.Ref, message string) error { return t.fail(message) }

const input = `{"sessionId":"ses_1","turnId":"turn_1"}`

// invoke passes an event to the function and returns its answer and what it logs.
func invoke(ctx context.Context, t *testing.T, turns turns, clk clock.Clock, event string) (string, map[string]any, error) {
	t.Helper()
	var log bytes.Buffer
	h := lambda.NewHandler(step.New(turns, clk, slog.New(slog.NewJSONHandler(&log, nil))))
	out, err := h.Invoke(lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: "r-1"}), []byte(event))
	var record map[string]any
	if jerr := json.Unmarshal(log.Bytes(), &record); jerr != nil {
		t.Fatalf("the log is %q: %v", log.String(), jerr)
	}
	delete(record, "time")
	return string(out), record, err
}

// TestOutcomes: the outcome is the answer, with the calls the state machine may wait for.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, outcome := range []turn.Outcome{turn.Done, turn.Continue} {
		out, record, err := invoke(t.Context(), t, turns{step: func(context.Context) (turn.Outcome, error) { return outcome, nil }}, clock.System{}, input)
		if want := `{"outcome":"` + string(outcome) + `","calls":[]}`; err != nil || out != want {
			t.Errorf("got %s, %v; want %s", out, err, want)
		}
		want := map[string]any{
			"level": "INFO", "msg": "invocation", "function": "step", "session_id": "ses_1", "turn_id": "turn_1", "request_id": "r-1", "outcome": string(outcome),
		}
		if d := cmp.Diff(want, record); d != "" {
			t.Errorf("the log: -want +got:\n%s", d)
		}
	}
}

// TestParks: a turn that waits for calls names them; one that does not any more goes on.
func TestParks(t *testing.T) {
	t.Parallel()
	await := func(context.Context) (turn.Outcome, error) { return turn.Await, nil }
	for want, calls := range map[string][]string{
		`{"outcome":"await","calls":["call_1","call_2"]}`: {"call_1", "call_2"}, `{"outcome":"continue","calls":[]}`: nil,
	} {
		if out, _, err := invoke(t.Context(), t, turns{step: await, parked: calls}, clock.System{}, input); err != nil || out != want {
			t.Errorf("got %s, %v; want %s", out, err, want)
		}
	}
}

// TestFaults: an error and a panic of a step are errors of the function, for the state machine to try again.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func(context.Context) (turn.Outcome, error){
		"error": func(context.Context) (turn.Outcome, error) { return "", errors.New("boom") },
		"panic": func(context.Context) (turn.Outcome, error) { panic("boom") },
	} {
		out, record, err := invoke(t.Context(), t, turns{step: step}, clock.System{}, input)
		if err == nil || !strings.Contains(err.Error(), "boom") || out != "" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
		if record["level"] != "ERROR" || record["error"] != err.Error() || (name == "panic") != (record["stack"] != nil) {
			t.Errorf("%s: logged %v", name, record)
		}
	}
}

// TestGivesUp: with an error in its input the function ends the turn, and tells the user why.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	var told string
	fault := errors.New("not now")
	for _, want := range []error{nil, fault} {
		_, _, err := invoke(t.Context(), t, turns{fail: func(message string) error { told = message; return want }}, clock.System{},
			`{"sessionId":"ses_1","turnId":"turn_1","error":{"Error":"States.Timeout","Cause":""}}`)
		if !errors.Is(err, want) || told != (sfnturn.Failure{Error: "States.Timeout"}).Message() {
			t.Errorf("got %v, told %q", err, told)
		}
	}
}

// moving is a clock that is at a time of one's own.
type moving struct {
	clock.System

	at time.Time
}

func (m *moving) Now() time.Time { return m.at }

// TestNeedsAllIDs: an event that does not name a turn touches none, whether it is to be worked on or given up.
func TestNeedsAllIDs(t *testing.T) {
	t.Parallel()
	untouched := turns{
		step: func(context.Context) (turn.Outcome, error) { t.Error("it was worked on"); return turn.Done, nil },
		fail: func(string) error { t.Error("it was given up"); return nil },
	}
	for _, name := range []string{"sessionId", "turnId"} {
		for _, event := range []string{input, strings.TrimSuffix(input, "}") + `,"error":{"Error":"States.Timeout","Cause":""}}`} {
			event = strings.Replace(event, `"`+name+`"`, `"other"`, 1)
			if out, _, err := invoke(t.Context(), t, untouched, clock.System{}, event); err == nil {
				t.Errorf("%s: got %s", event, out)
			}
		}
	}
}

// TestYields: a step hands its turn back when the rest of the invocation may not be enough for what comes next, unless the next
// invocation would have no more time.
func TestYields(t *testing.T) {
	t.Parallel()
	const whole = 900 * time.Second
	for _, tc := range []struct {
		used, need time.Duration
		want       bool
	}{
		{0, 0, false},
		{whole - 3*time.Minute, 0, false},
		{whole - 3*time.Minute + 1, 0, true},
		{whole - time.Second, 0, true},
		{whole - 3*time.Minute, 2 * time.Minute, false},
		{whole - 10*time.Minute - 10*time.Second, 10 * time.Minute, false},
		{whole - 10*time.Minute - 10*time.Second + 1, 10 * time.Minute, true},
		{time.Minute - 1, 20 * time.Minute, false},
		{time.Minute, 20 * time.Minute, true},
	} {
		c := &moving{at: time.Now()}
		end := c.at.Add(whole)
		ctx, cancel := context.WithDeadline(t.Context(), end)
		defer cancel()
		_, _, err := invoke(ctx, t, turns{step: func(ctx context.Context) (turn.Outcome, error) {
			c.at = c.at.Add(tc.used)
			if turn.ShouldYield(ctx, tc.need) != tc.want {
				t.Errorf("after %s, for work of %s, it yields: %t", tc.used, tc.need, !tc.want)
			}
			if last, _ := ctx.Deadline(); end.Sub(last) != 5*time.Second {
				t.Errorf("the work may take until %s", last)
			}
			return turn.Done, nil
		}}, c, input)
		if err != nil {
			t.Error(err)
		}
	}
}
