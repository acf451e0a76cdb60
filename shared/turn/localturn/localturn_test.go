package localturn_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/localturn"
	"github.com/bdk-lambda/bdk/shared/turn/turntest"
)

// process is a host process on a session store that several may share.
type process struct {
	sessions *session.Store
	runner   *localturn.Runner
}

func boot(driver session.Driver, name string, change func(*localturn.Options)) process {
	s := session.New(driver, session.Options{Holder: name, Lease: time.Minute})
	o := localturn.Options{Sessions: s, Agent: "a", Holder: name, Lease: time.Minute, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	return process{s, localturn.New(o)}
}

func (p process) serve(t *testing.T, step turn.Step) {
	t.Helper()
	p.runner.Serve(t.Context(), step, func(ctx context.Context, ref turn.Ref, message string) error {
		return end(ctx, p.sessions, ref, event.TurnFailed{Message: message, Status: event.StatusError})
	})
	t.Cleanup(func() { p.runner.Close(context.Background()) })
}

func (p process) accept(t *testing.T) turn.Ref {
	t.Helper()
	acc, err := p.sessions.Start(t.Context(), session.Start{Agent: "a", Owner: "local", Message: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	return turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}
}

func end(ctx context.Context, s *session.Store, ref turn.Ref, last event.Data) error {
	w, err := s.Open(ctx, ref.SessionID, ref.TurnID)
	if err != nil {
		return err
	}
	if err := w.Replay(ctx, 0, func(event.Event) error { return nil }); err != nil {
		return err
	}
	_, err = w.Finish(ctx, last, event.SessionWaiting{})
	return err
}

func TestConformance(t *testing.T) {
	t.Parallel()
	turntest.Run(t, func(*testing.T) turntest.Harness {
		p := boot(memsession.New(), "self", nil)
		return turntest.Harness{
			Run: func(t *testing.T, step turn.Step) turn.Runner {
				t.Helper()
				p.serve(t, step)
				return p.runner
			},
			Sessions: p.sessions,
			NewTurn:  func(t *testing.T) turn.Ref { t.Helper(); return p.accept(t) },
			End: func(ctx context.Context, ref turn.Ref) error {
				return end(ctx, p.sessions, ref, event.TurnCompleted{})
			},
		}
	})
}

// A tool that takes four minutes with a lease of one is not run by a second process.
func TestLeaseIsRenewedWhileATurnRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		var runs atomic.Int64
		one, two := boot(driver, "one", nil), boot(driver, "two", nil)
		step := func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			runs.Add(1)
			time.Sleep(4 * time.Minute)
			return turn.Done, end(ctx, one.sessions, ref, event.TurnCompleted{})
		}
		one.serve(t, step)
		two.serve(t, step)
		if err := one.runner.Start(t.Context(), one.accept(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if n := runs.Load(); n != 1 {
			t.Errorf("the turn ran %d times; want once", n)
		}
	})
}

// The turn of a dead process is taken over: at once if its death shows, else when its lease ends.
func TestTurnsOfDeadProcessesAreTakenOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		alive  func(string) bool
		within time.Duration
	}{
		"death shows":           {alive: func(string) bool { return false }, within: 3 * time.Second},
		"only the lease counts": {within: 63 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				driver := memsession.New()
				ref := boot(driver, "dead", nil).accept(t)
				heir := boot(driver, "heir", func(o *localturn.Options) { o.Alive = tc.alive })
				taken := make(chan turn.Ref, 2)
				begin := time.Now()
				heir.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
					taken <- ref
					return turn.Done, end(ctx, heir.sessions, ref, event.TurnCompleted{})
				})
				if got := <-taken; got != ref {
					t.Errorf("took %v; want %v", got, ref)
				}
				if took := time.Since(begin); took > tc.within {
					t.Errorf("taken over after %s; want at most %s", took, tc.within)
				}
			})
		})
	}
}

// Several processes that find the same turn of a dead one: one takes it.
func TestOneOfManyHeirsTakesTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		boot(driver, "dead", nil).accept(t)
		var runs atomic.Int64
		for _, name := range []string{"b", "c", "d", "e"} {
			p := boot(driver, name, func(o *localturn.Options) { o.Alive = func(h string) bool { return h != "dead" } })
			p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
				runs.Add(1)
				time.Sleep(time.Second)
				return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
			})
		}
		time.Sleep(time.Minute)
		if n := runs.Load(); n != 1 {
			t.Errorf("the turn ran %d times; want once", n)
		}
	})
}

// A process that slept through its lease stops its turn when it sees that another one has it.
func TestTurnThatWasTakenIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		p := boot(driver, "sleepy", nil)
		stopped := make(chan struct{})
		p.serve(t, func(ctx context.Context, _ turn.Ref) (turn.Outcome, error) {
			<-ctx.Done()
			close(stopped)
			return "", ctx.Err()
		})
		ref := p.accept(t)
		if err := p.runner.Start(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		other := session.New(driver, session.Options{Holder: "other", Lease: time.Minute})
		row, err := other.Get(t.Context(), ref.SessionID)
		if err == nil {
			err = other.Claim(t.Context(), row)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-stopped
	})
}

func TestPanicsEndTheTurnNotTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", nil)
		var runs atomic.Int64
		p.serve(t, func(context.Context, turn.Ref) (turn.Outcome, error) { runs.Add(1); panic("boom") })
		ref := p.accept(t)
		if err := p.runner.Start(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		row, err := p.sessions.Get(t.Context(), ref.SessionID)
		if err != nil || row.Turn.ID != "" || runs.Load() != 3 {
			t.Errorf("row = %+v, %v after %d runs; want a failed turn after 3", row, err, runs.Load())
		}
	})
}

func TestLimitKeepsTurnsWaitingInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", func(o *localturn.Options) { o.Limit = 1 })
		var running, most atomic.Int64
		order := make(chan turn.Ref, 10)
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			order <- ref
			time.Sleep(time.Second)
			return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
		})
		var want []turn.Ref
		for range 6 {
			ref := p.accept(t)
			want = append(want, ref)
			if err := p.runner.Start(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for _, ref := range want {
			if got := <-order; got != ref {
				t.Errorf("ran %v; want %v", got, ref)
			}
		}
		if most.Load() != 1 {
			t.Errorf("%d turns ran at once; want 1", most.Load())
		}
	})
}

// Closing lets turns come to a good point, then cuts them off; either way another process goes on.
func TestCloseHandsTurnsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		old := boot(driver, "old", nil)
		old.serve(t, func(ctx context.Context, _ turn.Ref) (turn.Outcome, error) {
			for !turn.ShouldYield(ctx, 0) && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
			return turn.Continue, nil
		})
		ref := old.accept(t)
		if err := old.runner.Start(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin := time.Now()
		old.runner.Close(t.Context())
		old.runner.Close(t.Context())
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("Close took %s", took)
		}
		if err := old.runner.Start(t.Context(), ref); err == nil {
			t.Error("a closed runner starts turns")
		}
		heir := boot(driver, "heir", func(o *localturn.Options) { o.Alive = func(string) bool { return false } })
		done := make(chan struct{})
		heir.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			defer close(done)
			return turn.Done, end(ctx, heir.sessions, ref, event.TurnCompleted{})
		})
		<-done
	})
}

func TestCloseCutsOffWhatDoesNotYield(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", nil)
		p.serve(t, func(ctx context.Context, _ turn.Ref) (turn.Outcome, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		if err := p.runner.Start(t.Context(), p.accept(t)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("time is up"))
		defer cancel()
		begin := time.Now()
		p.runner.Close(ctx)
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("Close took %s; want 10 s", took)
		}
	})
}

// Ending a turn may go wrong just as running it: the process lives, and the turn ends as soon as it can.
func TestFailThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", nil)
		var fails atomic.Int64
		p.runner.Serve(t.Context(), func(context.Context, turn.Ref) (turn.Outcome, error) { panic("boom") },
			func(ctx context.Context, ref turn.Ref, message string) error {
				switch fails.Add(1) {
				case 1:
					panic("boom, too")
				case 2:
					return errors.New("disk full")
				}
				return end(ctx, p.sessions, ref, event.TurnFailed{Message: message, Status: event.StatusError})
			})
		defer p.runner.Close(context.Background())
		ref := p.accept(t)
		if err := p.runner.Start(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		row, err := p.sessions.Get(t.Context(), ref.SessionID)
		if err != nil || row.Turn.ID != "" || fails.Load() != 3 {
			t.Errorf("row = %+v, %v after %d tries to end it; want a failed turn after 3", row, err, fails.Load())
		}
	})
}

// stale is a driver whose listings are behind: they show every turn as another process's.
type stale struct{ session.Driver }

func (d stale) List(ctx context.Context, q session.Query) ([]session.Record, string, error) {
	rows, next, err := d.Driver.List(ctx, q)
	for i := range rows {
		rows[i].Turn.Holder = "before"
	}
	return rows, next, err
}

// What a listing says may have changed by the time it is read: a turn of this process goes on.
func TestTurnIsNotStoppedForAnOldListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(stale{memsession.New()}, "self", nil)
		var runs, stops atomic.Int64
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			runs.Add(1)
			select {
			case <-ctx.Done():
				stops.Add(1)
				return "", ctx.Err()
			case <-time.After(5 * time.Minute):
			}
			return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
		})
		if err := p.runner.Start(t.Context(), p.accept(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if runs.Load() != 1 || stops.Load() != 0 {
			t.Errorf("the turn ran %d times and was stopped %d times; want one run to its end", runs.Load(), stops.Load())
		}
	})
}

// spoiled is a driver that cannot change the rows of some sessions.
type spoiled struct {
	session.Driver
	bad map[string]bool
}

func (d spoiled) Commit(ctx context.Context, b session.Batch) error {
	if d.bad[b.SessionID] {
		return errors.New("page checksum mismatch")
	}
	return d.Driver.Commit(ctx, b)
}

// A session that cannot be changed keeps no other from being recovered, nor from having its lease renewed.
func TestSpoiledSessionsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := spoiled{memsession.New(), map[string]bool{}}
		dead := boot(driver, "dead", nil)
		for range 6 {
			dead.accept(t)
		}
		rows, _, err := driver.List(t.Context(), session.Query{Agent: "a", Active: true, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[:5] {
			driver.bad[row.ID] = true
		}
		var runs atomic.Int64
		for _, name := range []string{"heir", "other"} {
			heir := boot(driver, name, func(o *localturn.Options) { o.Alive = func(h string) bool { return h != "dead" } })
			heir.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
				runs.Add(1)
				time.Sleep(5 * time.Minute)
				return turn.Done, end(ctx, heir.sessions, ref, event.TurnCompleted{})
			})
		}
		time.Sleep(20 * time.Minute)
		row, err := dead.sessions.Get(t.Context(), rows[5].ID)
		if err != nil || row.Turn.ID != "" || runs.Load() != 1 {
			t.Errorf("row = %+v, %v after %d runs; want the one turn that can be changed finished in one run", row, err, runs.Load())
		}
	})
}

// While a turn comes to its end in a process that closes, no other takes it.
func TestLeaseIsRenewedWhileTheRunnerCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		var runs atomic.Int64
		old, heir := boot(driver, "old", nil), boot(driver, "heir", nil)
		step := func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			runs.Add(1)
			time.Sleep(5 * time.Minute)
			return turn.Done, end(ctx, old.sessions, ref, event.TurnCompleted{})
		}
		old.serve(t, step)
		heir.serve(t, step)
		if err := old.runner.Start(t.Context(), old.accept(t)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		old.runner.Close(t.Context())
		if n := runs.Load(); n != 1 {
			t.Errorf("the turn ran %d times; want once", n)
		}
	})
}

// Turns that are started before Serve run once it is called.
func TestStartBeforeServe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", nil)
		ref := p.accept(t)
		for range 2 {
			if err := p.runner.Start(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		ran := make(chan turn.Ref, 2)
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			ran <- ref
			return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
		})
		if got := <-ran; got != ref {
			t.Errorf("ran %v; want %v", got, ref)
		}
		synctest.Wait()
		if len(ran) != 0 {
			t.Error("a turn that was started twice ran twice")
		}
	})
}

// A process that is told to end before it was ready takes no turn.
func TestServeAfterClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		boot(driver, "dead", nil).accept(t)
		p := boot(driver, "self", func(o *localturn.Options) { o.Alive = func(string) bool { return false } })
		p.runner.Close(t.Context())
		p.serve(t, func(context.Context, turn.Ref) (turn.Outcome, error) {
			t.Error("a turn ran")
			return turn.Done, nil
		})
		time.Sleep(10 * time.Minute)
	})
}

// A fault of the storage does not end the turn: it is tried until it works, ever more rarely.
func TestErrorsAreTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", nil)
		var runs atomic.Int64
		begin := time.Now()
		done := make(chan time.Duration)
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			if runs.Add(1) < 15 {
				return "", errors.New("disk full")
			}
			defer func() { done <- time.Since(begin) }()
			return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
		})
		if err := p.runner.Start(t.Context(), p.accept(t)); err != nil {
			t.Fatal(err)
		}
		if took := <-done; took < time.Minute || took > 4*time.Minute {
			t.Errorf("15 tries took %s; want pauses that grow to half a minute", took)
		}
	})
}

// claims is a driver that counts changes of rows alone, which is what a lease costs.
type claims struct {
	session.Driver
	n *atomic.Int64
}

func (d claims) Commit(ctx context.Context, b session.Batch) error {
	if len(b.Events) == 0 {
		d.n.Add(1)
	}
	return d.Driver.Commit(ctx, b)
}

// A short turn costs no lease beyond the one it was accepted with, however often this process looks at it.
func TestShortTurnsCostNoRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &atomic.Int64{}
		p := boot(claims{memsession.New(), n}, "self", nil)
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			time.Sleep(10 * time.Second)
			return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
		})
		time.Sleep(15 * time.Second) // so that leases are looked after while the turn runs
		if err := p.runner.Start(t.Context(), p.accept(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := n.Load(); got != 0 {
			t.Errorf("the row was changed %d times for its lease; want never", got)
		}
	})
}

// A turn that went to another process comes back when that one dies.
func TestTurnThatWasTakenComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		p := boot(driver, "self", nil)
		var runs atomic.Int64
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			if runs.Add(1) == 1 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
		})
		ref := p.accept(t)
		if err := p.runner.Start(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		other := session.New(driver, session.Options{Holder: "other", Lease: time.Minute})
		row, err := other.Get(t.Context(), ref.SessionID)
		if err == nil {
			err = other.Claim(t.Context(), row)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if row, err = other.Get(t.Context(), ref.SessionID); err != nil || row.Turn.ID != "" || runs.Load() != 2 {
			t.Errorf("row = %+v, %v after %d runs; want it finished in a second run", row, err, runs.Load())
		}
	})
}

// Errors with progress between them do not add up to long pauses.
func TestProgressResetsThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", nil)
		var steps int
		begin, done := time.Now(), make(chan time.Duration, 1)
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			switch steps++; {
			case steps == 40:
				done <- time.Since(begin)
				return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
			case steps%2 == 0:
				return turn.Continue, nil
			}
			return "", errors.New("hiccup")
		})
		if err := p.runner.Start(t.Context(), p.accept(t)); err != nil {
			t.Fatal(err)
		}
		if took := <-done; took > 2*time.Second {
			t.Errorf("20 hiccups took %s", took)
		}
	})
}

// A process that dies with many turns leaves none behind.
func TestAllTurnsOfADeadProcessAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const turns = 450
		driver := memsession.New()
		dead := boot(driver, "dead", nil)
		for range turns {
			dead.accept(t)
		}
		heir := boot(driver, "heir", func(o *localturn.Options) { o.Alive = func(h string) bool { return h != "dead" } })
		var runs atomic.Int64
		heir.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			runs.Add(1)
			return turn.Done, end(ctx, heir.sessions, ref, event.TurnCompleted{})
		})
		time.Sleep(time.Minute)
		if n := runs.Load(); n != turns {
			t.Errorf("%d turns ran; want %d, each once", n, turns)
		}
	})
}

// A parked turn takes part in nothing until its call has waited long enough; then the runner finds it, in any process.
func TestParkedTurnIsFoundWhenItsCallExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memsession.New()
		first, second := boot(driver, "first", nil), boot(driver, "second", nil)
		began := make(chan string, 8)
		step := func(p process, name string) turn.Step {
			return func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
				began <- name
				if name == "second" {
					return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
				}
				return turn.Await, turntest.Park(ctx, p.sessions, ref)
			}
		}
		first.serve(t, step(first, "first"))
		if err := first.runner.Start(t.Context(), first.accept(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		first.runner.Close(context.Background())
		second.serve(t, step(second, "second"))
		time.Sleep(58 * time.Minute)
		if n := len(began); n != 1 {
			t.Errorf("%d steps while the call may be decided about", n)
		}
		time.Sleep(time.Minute + 3*time.Second)
		if one, two := <-began, <-began; one != "first" || two != "second" || len(began) > 0 {
			t.Errorf("steps by %s, %s and %d more", one, two, len(began))
		}
	})
}

// A decision that comes before the step that parked the turn has returned is not lost.
func TestResumeBeforeTheStepReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(memsession.New(), "self", nil)
		steps := 0
		p.serve(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
			if steps++; steps > 1 {
				return turn.Done, end(ctx, p.sessions, ref, event.TurnCompleted{})
			}
			if err := turntest.Park(ctx, p.sessions, ref); err != nil {
				return "", err
			}
			d, err := p.sessions.Decide(ctx, session.Decision{SessionID: ref.SessionID, CallID: "first", Decision: event.Deny, By: "local"})
			if err == nil {
				err = p.runner.Resume(ctx, ref, d.Woken, d.Waited...)
			}
			return turn.Await, err
		})
		if err := p.runner.Start(t.Context(), p.accept(t)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if steps != 2 {
			t.Errorf("%d steps at once; want 2", steps)
		}
	})
}
