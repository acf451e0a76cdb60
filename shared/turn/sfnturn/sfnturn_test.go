package sfnturn_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
	"github.com/bdk-lambda/bdk/shared/turn/turntest"
)

const (
	stepARN  = "arn:aws:lambda:us-east-1:000000000000:function:step:7"
	awaitARN = "arn:aws:lambda:us-east-1:000000000000:function:await:7"
)

// stepFunction and awaitFunction are the functions that the state machine calls.
type (
	stepFunction  = func(context.Context, sfnturn.StepInput) (sfnturn.StepOutput, error)
	awaitFunction = func(context.Context, sfnturn.AwaitInput) (struct{}, error)
)

// world is a deployment: the real state machine, a store, and the functions.
type world struct {
	sessions *session.Store
	server   *sfntest.Server
	client   *sfn.Client
	tokens   *sfnturn.Tokens
	runner   *sfnturn.Runner
	requests *counter
}

func newWorld(t *testing.T, step stepFunction, await awaitFunction, opts sfntest.Options) *world {
	t.Helper()
	functions := map[string]sfntest.Function{stepARN: sfntest.Handle(step), awaitARN: sfntest.Handle(await)}
	server, err := sfntest.New(definition(), functions, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg := server.Config()
	requests := &counter{inner: cfg.HTTPClient, made: make(map[string]int)}
	cfg.HTTPClient = requests
	client := sfnturn.NewClient(cfg)
	tokens := sfnturn.NewTokens(client, kv.New(memkv.New(), kv.Options{}))
	return &world{
		sessions: session.New(memsession.New(), session.Options{}), server: server, client: client, requests: requests,
		tokens: tokens, runner: sfnturn.New(client, sfntest.Machine, tokens),
	}
}

// counter counts requests by operation, and fails those it is told to.
type counter struct {
	inner interface {
		Do(r *http.Request) (*http.Response, error)
	}

	mu   sync.Mutex
	made map[string]int
	down bool
}

func (c *counter) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.made[op]++
	down := c.down
	c.mu.Unlock()
	if down {
		return nil, &unreachable{}
	}
	return c.inner.Do(r)
}

// unreachable is an error of the network.
type unreachable struct{}

func (*unreachable) Error() string   { return "connection refused" }
func (*unreachable) Timeout() bool   { return true }
func (*unreachable) Temporary() bool { return true }

func (c *counter) count(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[op]
}

func (c *counter) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (w *world) accept(t *testing.T) turn.Ref {
	t.Helper()
	acc, err := w.sessions.Start(t.Context(), session.Start{Agent: "a", Owner: "local", Message: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	return turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}
}

func (w *world) begin(t *testing.T) turn.Ref {
	t.Helper()
	ref := w.accept(t)
	if err := w.runner.Start(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	return ref
}

// finish ends a turn in the log, unless it has ended.
func (w *world) finish(ctx context.Context, ref turn.Ref, last event.Data) error {
	writer, err := w.sessions.Open(ctx, ref.SessionID, ref.TurnID)
	if err == nil {
		err = writer.Replay(ctx, 0, func(event.Event) error { return nil })
	}
	if err == nil {
		_, err = writer.Finish(ctx, last, event.SessionWaiting{})
	}
	if errors.Is(err, session.ErrFenced) {
		return nil
	}
	return err
}

func (w *world) complete(ctx context.Context, ref turn.Ref) (sfnturn.StepOutput, error) {
	return sfnturn.StepOutput{Outcome: turn.Done}, w.finish(ctx, ref, event.TurnCompleted{})
}

func (w *world) fail(ctx context.Context, ref turn.Ref, message string) error {
	return w.finish(ctx, ref, event.TurnFailed{Message: message, Status: event.StatusError})
}

// ends returns how the turns of a session ended, in order.
func (w *world) ends(t *testing.T, id string) []string {
	t.Helper()
	var ends []string
	c := w.sessions.Cursor(id, 0)
	for {
		events, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return ends
		}
		for _, e := range events {
			switch e.Type {
			case event.TypeTurnCompleted:
				ends = append(ends, "completed")
			case event.TypeTurnFailed:
				d, err := event.Decode[event.TurnFailed](e)
				if err != nil {
					t.Fatal(err)
				}
				ends = append(ends, d.Status+": "+d.Message)
			default:
			}
		}
	}
}

func noAwait(context.Context, sfnturn.AwaitInput) (struct{}, error) {
	return struct{}{}, errors.New("nothing is to be parked")
}

// hasty is a clock that waits for nothing but time limits.
type hasty struct{ clock.System }

func (hasty) After(d time.Duration) (<-chan time.Time, func() bool) {
	if d <= time.Minute {
		return clock.Fixed{}.After(d)
	}
	return clock.System{}.After(d)
}

// later is a clock that is ahead.
type later struct {
	clock.System

	by time.Duration
}

func (l later) Now() time.Time { return l.System.Now().Add(l.by) }

// waitFor answers what a step function does whose turn is parked.
func (w *world) waitFor(ctx context.Context, ref turn.Ref) (sfnturn.StepOutput, error) {
	row, err := w.sessions.Get(ctx, ref.SessionID)
	if err != nil || !row.Turn.Parked {
		return sfnturn.StepOutput{Outcome: turn.Continue}, err
	}
	out := sfnturn.StepOutput{Outcome: turn.Await}
	for _, a := range row.Turn.Pending() {
		out.Calls = append(out.Calls, a.CallID)
	}
	return out, nil
}

// parkCall does what an await function does: it looks whether the turn still waits after it has parked the call.
func (w *world) parkCall(ctx context.Context, in sfnturn.AwaitInput) error {
	if err := w.tokens.Park(ctx, in); err != nil {
		return err
	}
	row, err := w.sessions.Get(ctx, in.SessionID)
	if err != nil || row.Turn.Parked {
		return err
	}
	return w.runner.Resume(ctx, in.Ref, false, in.CallID)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	turntest.Run(t, func(t *testing.T) turntest.Harness {
		t.Helper()
		var step turn.Step
		var w *world
		w = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
			if in.Error != nil {
				return sfnturn.StepOutput{Outcome: turn.Done}, w.fail(ctx, in.Ref, in.Error.Message())
			}
			out, err := step(ctx, in.Ref)
			if err == nil && out == turn.Await {
				return w.waitFor(ctx, in.Ref)
			}
			return sfnturn.StepOutput{Outcome: out}, err
		}, func(ctx context.Context, in sfnturn.AwaitInput) (struct{}, error) {
			return struct{}{}, w.parkCall(ctx, in)
		}, sfntest.Options{Clock: hasty{}})
		return turntest.Harness{
			Detached: true, Sessions: w.sessions,
			Run: func(t *testing.T, s turn.Step) turn.Runner {
				t.Helper()
				step = s
				sweeper := sfnturn.NewSweeper(w.runner, w.sessions, "a", sfnturn.SweepOptions{Clock: later{by: time.Minute}})
				if err := sweeper.Sweep(t.Context(), w.fail); err != nil {
					t.Error(err)
				}
				return w.runner
			},
			NewTurn: func(t *testing.T) turn.Ref { t.Helper(); return w.accept(t) },
			End: func(ctx context.Context, ref turn.Ref) error {
				return w.finish(ctx, ref, event.TurnCompleted{})
			},
		}
	})
}

func TestRequestsOfARunner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
			time.Sleep(time.Minute)
			return w.complete(ctx, in.Ref)
		}, noAwait, sfntest.Options{})
		ref := w.accept(t)
		for _, when := range []string{"new", "running", "running"} {
			if err := w.runner.Start(t.Context(), ref); err != nil {
				t.Errorf("starting a turn that is %s: %v", when, err)
			}
		}
		time.Sleep(time.Hour)
		if err := w.runner.Start(t.Context(), ref); err != nil {
			t.Errorf("starting a turn that has ended: %v", err)
		}
		if err := w.runner.Stop(t.Context(), ref); err != nil {
			t.Errorf("stopping a turn that has ended: %v", err)
		}
		if err := w.runner.Stop(t.Context(), turn.Ref{SessionID: "s", TurnID: "never"}); err != nil {
			t.Errorf("stopping a turn that was not started: %v", err)
		}
		if diff := cmp.Diff(map[string]int{"StartExecution": 4, "StopExecution": 2}, w.requests.made); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if got := len(w.server.Execution(ref.TurnID).Transitions); got != 3 {
			t.Errorf("%d transitions; want 3", got)
		}
	})
}

func TestFaultsOfARunner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil, sfntest.Options{})
		ref := w.accept(t)
		for name, r := range map[string]*sfnturn.Runner{
			"no ARN": sfnturn.New(w.client, "", w.tokens), "another ARN": sfnturn.New(w.client, "arn:aws:states:us-east-1:0:activity:x", w.tokens),
		} {
			if err := r.Start(t.Context(), ref); err == nil {
				t.Errorf("%s: started", name)
			}
			if err := r.Stop(t.Context(), ref); err == nil {
				t.Errorf("%s: stopped", name)
			}
		}
		w.requests.setDown(true)
		before, begin := w.requests.count("StartExecution"), time.Now()
		err := w.runner.Start(t.Context(), ref)
		if bdkerr.CodeOf(err) != bdkerr.Unavailable {
			t.Errorf("start of a service that cannot be reached: %v; want %s", err, bdkerr.Unavailable)
		}
		if n, took := w.requests.count("StartExecution")-before, time.Since(begin); n != 3 || took > 2*time.Second {
			t.Errorf("given up after %d tries and %s; want 3 tries and at most 2 s", n, took)
		}
		if err := w.runner.Stop(t.Context(), ref); bdkerr.CodeOf(err) != bdkerr.Unavailable {
			t.Errorf("stop of a service that cannot be reached: %v; want %s", err, bdkerr.Unavailable)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client went away")
		cancel(gone)
		if err := w.runner.Start(ctx, ref); !errors.Is(err, gone) {
			t.Errorf("start with a context that has ended: %v; want its cause", err)
		}
	})
}

// The ARN of an execution does not name the version or alias of its machine.
func TestMachineMayBeAVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
			time.Sleep(time.Minute)
			return w.complete(ctx, in.Ref)
		}, noAwait, sfntest.Options{})
		ref := w.begin(t)
		if err := sfnturn.New(w.client, sfntest.Machine+":3", w.tokens).Stop(t.Context(), ref); err != nil {
			t.Error(err)
		}
		if got := w.server.Execution(ref.TurnID).Status; got != "ABORTED" {
			t.Errorf("the execution is %s; want ABORTED", got)
		}
	})
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	ref := turn.Ref{SessionID: "s", TurnID: "t"}
	for want, v := range map[string]any{
		`{"sessionId":"s","turnId":"t"}`:                                   sfnturn.StepInput{Ref: ref},
		`{"sessionId":"s","turnId":"t","error":{"Error":"E","Cause":"C"}}`: sfnturn.StepInput{Ref: ref, Error: &sfnturn.Failure{Error: "E", Cause: "C"}},
		`{"outcome":"done","calls":[]}`:                                    sfnturn.StepOutput{Outcome: turn.Done},
		`{"outcome":"await","calls":["c1","c2"]}`:                          sfnturn.StepOutput{Outcome: turn.Await, Calls: []string{"c1", "c2"}},
		`{"sessionId":"s","turnId":"t","callId":"c","token":"AQ=="}`:       sfnturn.AwaitInput{Ref: ref, CallID: "c", Token: "AQ=="},
	} {
		if got, err := json.Marshal(v); string(got) != want || err != nil {
			t.Errorf("%+v is %s, %v; want %s", v, got, err, want)
		}
	}
}

func TestMessageOfAFailure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   sfnturn.Failure
		want string
	}{
		"returned error":    {sfnturn.Failure{Error: "errorString", Cause: `{"errorMessage":"arn:aws:iam::1:role/x may not"}`}, "a fault of the host; its log has the reason"},
		"unknown":           {sfnturn.Failure{Error: "UnknownOutcome", Cause: "it broke"}, "a fault of the host; its log has the reason"},
		"nothing":           {sfnturn.Failure{}, "a fault of the host; its log has the reason"},
		"time of a task":    {sfnturn.Failure{Error: "States.Timeout"}, "a step of it took too long"},
		"time of a sandbox": {sfnturn.Failure{Error: "Sandbox.Timedout", Cause: "x"}, "a step of it took too long"},
		"time of all":       {sfnturn.Failure{Error: "execution TIMED_OUT"}, "a step of it took too long"},
		"a crash":           {sfnturn.Failure{Error: "Runtime.ExitError", Cause: "signal: killed"}, "the process that worked on it ended several times"},
		"throttled":         {sfnturn.Failure{Error: "Lambda.TooManyRequestsException"}, "the host was too busy for it"},
	} {
		if got, want := tc.in.Message(), "the turn could not be finished: "+tc.want; got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
}

// steps answers with each outcome once, then completes the turn.
func steps(w **world, outcomes ...string) stepFunction {
	var mu sync.Mutex
	return func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		if in.Error != nil {
			return sfnturn.StepOutput{Outcome: turn.Done}, (*w).fail(ctx, in.Ref, in.Error.Message())
		}
		mu.Lock()
		defer mu.Unlock()
		if len(outcomes) == 0 {
			return (*w).complete(ctx, in.Ref)
		}
		out := outcomes[0]
		outcomes = outcomes[1:]
		if name, isFault := strings.CutPrefix(out, "fault "); isFault {
			return sfnturn.StepOutput{}, &sfntest.Fault{Name: name, Cause: "as told"}
		}
		if name, isPark := strings.CutPrefix(out, "await "); isPark {
			return sfnturn.StepOutput{Outcome: turn.Await, Calls: strings.Split(name, ",")}, nil
		}
		return sfnturn.StepOutput{Outcome: turn.Outcome(out)}, nil
	}
}

func repeat(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outcomes []string
		want     []string // transitions
		status   string   // default SUCCEEDED
		ends     []string // default completed
		within   time.Duration
	}{
		"one step":              {want: []string{"Step", "Route", "Done"}},
		"continue":              {outcomes: []string{"continue", "continue"}, want: []string{"Step", "Route", "Step", "Route", "Step", "Route", "Done"}},
		"killed, retried fast":  {outcomes: []string{"fault Runtime.ExitError"}, want: []string{"Step", "Step", "Route", "Done"}, within: time.Second},
		"throttled for a while": {outcomes: repeat("fault Lambda.TooManyRequestsException", 100), want: append(repeat("Step", 101), "Route", "Done"), within: 50 * time.Minute},
		"store away for a while": {
			outcomes: repeat("fault bdkerr.Error", 30), want: append(repeat("Step", 31), "Route", "Done"), within: 10 * time.Minute,
		},
		"always failing": {
			outcomes: repeat("fault errorString", 1000), want: append(repeat("Step", 31), "Fail"), ends: []string{"error: the turn could not be finished: a fault of the host; its log has the reason"},
		},
		"always dying": {
			outcomes: repeat("fault Sandbox.Timedout", 1000), want: append(repeat("Step", 6), "Fail"), ends: []string{"error: the turn could not be finished: a step of it took too long"},
		},
		"unknown outcome": {
			outcomes: []string{"dance"}, want: []string{"Step", "Route", "Unknown", "Fail"},
			ends: []string{"error: the turn could not be finished: a fault of the host; its log has the reason"},
		},
		"no outcome": {
			outcomes: []string{""}, want: []string{"Step", "Route", "Unknown", "Fail"},
			ends: []string{"error: the turn could not be finished: a fault of the host; its log has the reason"},
		},
		"parked by nobody": {
			outcomes: []string{"await c1"}, want: append(append([]string{"Step", "Route", "Await"}, repeat("Park", 31)...), "Closed", "Step", "Route", "Done"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var w *world
				w = newWorld(t, steps(&w, tc.outcomes...), noAwait, sfntest.Options{})
				ref := w.begin(t)
				begin := time.Now()
				ended, err := w.await(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				if tc.status == "" {
					tc.status = "SUCCEEDED"
				}
				if tc.ends == nil {
					tc.ends = []string{"completed"}
				}
				if ended.Status != tc.status || tc.within > 0 && time.Since(begin) > tc.within {
					t.Errorf("%s after %s; want %s within %s", ended.Status, time.Since(begin), tc.status, tc.within)
				}
				if diff := cmp.Diff(tc.want, ended.Transitions); diff != "" {
					t.Errorf("transitions (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.ends, w.ends(t, ref.SessionID)); diff != "" {
					t.Errorf("ends of the turn (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// await waits for the end of an execution.
func (w *world) await(ctx context.Context, ref turn.Ref) (sfntest.Execution, error) {
	return w.server.Wait(ctx, ref.TurnID)
}

// A step that hangs is given up when the function cannot be running any more, and called again.
func TestStepThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var calls atomic.Int64
		w = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
			if in.Error != nil {
				return sfnturn.StepOutput{}, errors.New("given up")
			}
			if calls.Add(1) == 1 {
				<-ctx.Done()
				return sfnturn.StepOutput{}, ctx.Err()
			}
			return w.complete(ctx, in.Ref)
		}, noAwait, sfntest.Options{})
		ref, begin := w.begin(t), time.Now()
		x, err := w.await(t.Context(), ref)
		if took := time.Since(begin); err != nil || x.Status != "SUCCEEDED" || took < 900*time.Second || took > 920*time.Second {
			t.Errorf("%s, %v after %s; want SUCCEEDED after about 911 s", x.Status, err, took)
		}
	})
}

// When the turn cannot even be failed, the execution fails; redriven once the fault has passed, it fails the turn.
func TestRedriveAfterFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		broken := true
		w = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
			if broken {
				return sfnturn.StepOutput{}, errors.New("table is gone")
			}
			return sfnturn.StepOutput{Outcome: turn.Done}, w.fail(ctx, in.Ref, in.Error.Message())
		}, noAwait, sfntest.Options{})
		ref := w.begin(t)
		x, err := w.await(t.Context(), ref)
		if err != nil || x.Status != "FAILED" || x.Error != "errorString" || x.Transitions[len(x.Transitions)-1] != "Fail" {
			t.Fatalf("%+v, %v; want the state Fail to fail", x, err)
		}
		broken = false
		arn := strings.Replace(sfntest.Machine, "stateMachine", "execution", 1) + ":" + ref.TurnID
		if _, err := w.client.RedriveExecution(t.Context(), &sfn.RedriveExecutionInput{ExecutionArn: &arn}); err != nil {
			t.Fatal(err)
		}
		if x, err = w.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("redriven: %+v, %v; want SUCCEEDED", x, err)
		}
		if diff := cmp.Diff([]string{"error: the turn could not be finished: a fault of the host; its log has the reason"}, w.ends(t, ref.SessionID)); diff != "" {
			t.Errorf("ends of the turn (-want +got):\n%s", diff)
		}
	})
}

// A stopped execution whose step was redriven finds that the turn has ended.
func TestRedriveAfterStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
			time.Sleep(time.Minute)
			return w.complete(ctx, in.Ref)
		}, noAwait, sfntest.Options{})
		ref := w.begin(t)
		synctest.Wait()
		if _, err := w.sessions.Stop(t.Context(), ref.SessionID, ""); err != nil {
			t.Fatal(err)
		}
		if err := w.runner.Stop(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		arn := strings.Replace(sfntest.Machine, "stateMachine", "execution", 1) + ":" + ref.TurnID
		if _, err := w.client.RedriveExecution(t.Context(), &sfn.RedriveExecutionInput{ExecutionArn: &arn}); err != nil {
			t.Fatal(err)
		}
		if x, err := w.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("%+v, %v; want SUCCEEDED", x, err)
		}
		if diff := cmp.Diff([]string{"cancelled: the turn was stopped"}, w.ends(t, ref.SessionID)); diff != "" {
			t.Errorf("ends of the turn (-want +got):\n%s", diff)
		}
	})
}

// An execution that meets the machine's time limit ends, and the sweeper ends its turn.
func TestTimeLimitOfTheMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, steps(&w, repeat("await c1", 10)...), func(context.Context, sfnturn.AwaitInput) (struct{}, error) { return struct{}{}, nil }, sfntest.Options{})
		ref, begin := w.begin(t), time.Now()
		time.Sleep(29 * 24 * time.Hour)
		if got := w.server.Execution(ref.TurnID).Status; got != "RUNNING" {
			t.Fatalf("%s after 29 days; want RUNNING", got)
		}
		time.Sleep(25 * time.Hour)
		x := w.server.Execution(ref.TurnID)
		if x.Status != "TIMED_OUT" {
			t.Fatalf("%s after %s; want TIMED_OUT", x.Status, time.Since(begin))
		}
		sweeper := sfnturn.NewSweeper(w.runner, w.sessions, "a", sfnturn.SweepOptions{})
		for range 60 * 24 * 60 { // two months of minutes
			if row, err := w.sessions.Get(t.Context(), ref.SessionID); err != nil || row.Turn.ID == "" {
				break
			}
			if err := sweeper.Sweep(t.Context(), w.fail); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if got := w.ends(t, ref.SessionID); len(got) != 1 || !strings.HasPrefix(got[0], "error: the turn could not be finished") {
			t.Errorf("ends of the turn: %q; want one error", got)
		}
	})
}

// The function that the machine calls does not know the machine, but its execution.
func TestTurnsOfTheMachineOfAnExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, steps(&w), noAwait, sfntest.Options{})
		r := sfnturn.New(w.client, "", w.tokens)
		ref := w.accept(t)
		for _, arn := range []string{"", "arn:aws:states:us-east-1:0:activity:x", sfntest.Machine} {
			if err := r.Start(sfnturn.WithExecution(t.Context(), arn), ref); err == nil {
				t.Errorf("started with %q", arn)
			}
		}
		arn := strings.Replace(sfntest.Machine, ":stateMachine:", ":execution:", 1) + ":other"
		if err := r.Start(sfnturn.WithExecution(t.Context(), arn), ref); err != nil {
			t.Fatal(err)
		}
		if x, err := w.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("%+v, %v; want SUCCEEDED", x, err)
		}
		if err := r.Stop(sfnturn.WithExecution(t.Context(), arn), ref); err != nil {
			t.Error(err)
		}
	})
}
