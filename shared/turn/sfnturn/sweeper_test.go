package sfnturn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
	"github.com/bdk-lambda/bdk/shared/turn/turntest"
)

func (w *world) sweeper() *sfnturn.Sweeper {
	return sfnturn.NewSweeper(w.runner, w.sessions, "a", sfnturn.SweepOptions{})
}

func (w *world) sweep(t *testing.T) {
	t.Helper()
	if err := w.sweeper().Sweep(t.Context(), w.fail); err != nil {
		t.Error(err)
	}
}

func TestSweepStartsATurnThatWasNotStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, steps(&w), noAwait, sfntest.Options{})
		ref := w.accept(t)
		time.Sleep(30*time.Second - time.Millisecond)
		w.sweep(t)
		if n := w.requests.count("StartExecution"); n != 0 {
			t.Errorf("%d turns started that are younger than 30 s; want none", n)
		}
		time.Sleep(time.Millisecond)
		w.sweep(t)
		if x, err := w.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("%+v, %v; want SUCCEEDED", x, err)
		}
		if diff := cmp.Diff([]string{"completed"}, w.ends(t, ref.SessionID)); diff != "" {
			t.Errorf("ends of the turn (-want +got):\n%s", diff)
		}
	})
}

func TestSweepLeavesTurnsAloneThatRunOrAreParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t, sfntest.Options{}, "await c1")
		ref := p.begin(t)
		for range 6 {
			time.Sleep(time.Minute)
			p.sweep(t)
		}
		if got := p.server.Execution(ref.TurnID); got.Status != "RUNNING" || len(p.ends(t, ref.SessionID)) != 0 {
			t.Errorf("%+v with ends %v; want it to run", got, p.ends(t, ref.SessionID))
		}
		if diff := cmp.Diff([]string{"c1"}, p.calls()); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		if n := p.requests.count("DescribeExecution"); n != 0 {
			t.Errorf("%d requests to describe executions that run; want none", n)
		}
	})
}

// That an execution exists already does not say that it has ended: a service might refuse to start one that runs.
// A call that was decided by a process that ended before it could say so, and one that nobody decides about.
func TestSweepResumesTurnsWhoseCallsAreSettled(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(w *world, ref turn.Ref) error{
		"decided": func(w *world, ref turn.Ref) error {
			_, err := w.sessions.Decide(context.Background(), session.Decision{SessionID: ref.SessionID, CallID: "first", Decision: event.Deny, By: "local"})
			return err
		},
		"expired": func(*world, turn.Ref) error { time.Sleep(time.Hour); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			var w *world
			w = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
				if n++; n > 1 {
					return w.complete(ctx, in.Ref)
				}
				if err := turntest.Park(ctx, w.sessions, in.Ref); err != nil {
					return sfnturn.StepOutput{}, err
				}
				return w.waitFor(ctx, in.Ref)
			}, func(ctx context.Context, in sfnturn.AwaitInput) (struct{}, error) {
				return struct{}{}, w.parkCall(ctx, in)
			}, sfntest.Options{})
			ref := w.begin(t)
			time.Sleep(time.Minute)
			w.sweep(t)
			time.Sleep(time.Minute)
			if n != 1 {
				t.Fatalf("%s: the turn went on before anything happened", name)
			}
			if err := settle(w, ref); err != nil {
				t.Fatal(err)
			}
			w.sweep(t)
			if x, err := w.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" || n != 2 {
				t.Errorf("%s: %+v, %v after %d steps; want SUCCEEDED after 2", name, x, err, n)
			}
		})
	}
}

func TestSweepAsksBeforeItFailsATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, sfnturn.StepInput) (sfnturn.StepOutput, error) {
			time.Sleep(10 * time.Minute)
			return sfnturn.StepOutput{Outcome: turn.Done}, nil
		}, noAwait, sfntest.Options{})
		ref := w.accept(t)
		other := `{"sessionId":"other","turnId":"other"}` // another input of the same name is refused while the first runs
		machine := sfntest.Machine
		if _, err := w.client.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: &machine, Name: &ref.TurnID, Input: &other}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.sweep(t)
		if got := w.ends(t, ref.SessionID); got != nil || w.requests.count("DescribeExecution") != 1 {
			t.Errorf("ends %v after %d looks; want none after 1", got, w.requests.count("DescribeExecution"))
		}
	})
}

// Whatever became of the execution of a turn that did not end with it: the turn is failed, once.
func TestSweepFailsTheTurnOfAnExecutionThatEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		step stepFunction
		stop bool
		want string
	}{
		"failed": {
			step: func(context.Context, sfnturn.StepInput) (sfnturn.StepOutput, error) {
				return sfnturn.StepOutput{}, errors.New("disk full")
			},
			want: "error: the turn could not be finished: a fault of the host; its log has the reason",
		},
		"succeeded": {
			step: func(context.Context, sfnturn.StepInput) (sfnturn.StepOutput, error) {
				return sfnturn.StepOutput{Outcome: turn.Done}, nil
			},
			want: "error: the turn could not be finished: a fault of the host; its log has the reason",
		},
		"stopped by hand": {
			step: func(ctx context.Context, _ sfnturn.StepInput) (sfnturn.StepOutput, error) {
				<-ctx.Done()
				return sfnturn.StepOutput{}, ctx.Err()
			},
			stop: true,
			want: "error: the turn could not be finished: a fault of the host; its log has the reason",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tc.step, noAwait, sfntest.Options{})
				ref := w.begin(t)
				time.Sleep(time.Second)
				if tc.stop {
					if err := w.runner.Stop(t.Context(), ref); err != nil {
						t.Fatal(err)
					}
				}
				for range 90 {
					time.Sleep(time.Minute)
					w.sweep(t)
				}
				if diff := cmp.Diff([]string{tc.want}, w.ends(t, ref.SessionID)); diff != "" {
					t.Errorf("ends of the turn (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// However old parked turns get, looks at them become rare, and each age of 30 s times a power of two is followed by a look within
// two minutes: also when the schedule fires late in one minute and early in the next, and the ages fall into the gaps.
func TestLooksBecomeRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t, sfntest.Options{}, "await c1")
		p.begin(t)
		begin := time.Now()
		var looks []time.Duration // ages
		for i := range 5 * 24 * 60 {
			age := time.Duration(i/2+1)*2*time.Minute - time.Duration(2-i%2)*time.Second
			time.Sleep(time.Until(begin.Add(age)))
			before := p.requests.count("StartExecution")
			p.sweep(t)
			if p.requests.count("StartExecution") > before {
				looks = append(looks, age)
			}
		}
		if len(looks) > 32 {
			t.Errorf("%d looks in 5 days; want at most 32", len(looks))
		}
		for age := 30 * time.Second; age < 4*24*time.Hour; age *= 2 {
			found := false
			for _, at := range looks {
				found = found || at >= age && at <= age+2*time.Minute
			}
			if !found {
				t.Errorf("no look in the two minutes after %s", age)
			}
		}
	})
}

func TestSweepDoesAllPagesAndSurvivesFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const turns = 450
		w := newWorld(t, func(context.Context, sfnturn.StepInput) (sfnturn.StepOutput, error) {
			return sfnturn.StepOutput{Outcome: turn.Done}, nil
		}, noAwait, sfntest.Options{})
		for range turns {
			w.begin(t)
		}
		if _, err := w.sessions.Start(t.Context(), session.Start{Agent: "other", Owner: "local", Message: "hi"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var mu sync.Mutex
		failed := map[string]int{}
		var running, most int64
		err := w.sweeper().Sweep(t.Context(), func(_ context.Context, ref turn.Ref, _ string) error {
			mu.Lock()
			failed[ref.TurnID]++
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running--
			return fmt.Errorf("fault of %s", ref.TurnID)
		})
		if err == nil || len(failed) != turns {
			t.Errorf("%d turns failed with error %v; want %d and an error", len(failed), err, turns)
		}
		if most != 8 {
			t.Errorf("%d turns looked after at once; want 8", most)
		}
		for id, n := range failed {
			if n != 1 {
				t.Errorf("turn %s was failed %d times", id, n)
			}
		}
	})
}

func TestSweepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, steps(&w), noAwait, sfntest.Options{})
		for range 50 {
			w.accept(t)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.sweeper().Sweep(ctx, w.fail); !errors.Is(err, context.Canceled) {
			t.Errorf("Sweep = %v; want the end of its context", err)
		}
		if n := w.requests.count("StartExecution"); n != 0 {
			t.Errorf("%d turns started; want none", n)
		}
		w.requests.setDown(true)
		if err := w.sweeper().Sweep(t.Context(), w.fail); err == nil {
			t.Error("a sweep without a service reports no error")
		}
	})
}

// blind is a store that finds turns, but not all.
type blind struct{ session.Driver }

func (b blind) List(ctx context.Context, q session.Query) ([]session.Record, string, error) {
	if q.Cursor != "" {
		return nil, "", errors.New("the table is gone")
	}
	rows, _, err := b.Driver.List(ctx, q)
	return rows, "more", err
}

func TestSweepOfAStoreThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, steps(&w), noAwait, sfntest.Options{})
		w.sessions = session.New(blind{memsession.New()}, session.Options{})
		ref := w.accept(t)
		time.Sleep(time.Minute)
		if err := w.sweeper().Sweep(t.Context(), w.fail); err == nil {
			t.Error("the sweep reports no error")
		}
		if x, err := w.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("the turn that was found: %+v, %v; want SUCCEEDED", x, err)
		}
	})
}
