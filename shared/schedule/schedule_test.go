package schedule_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
	"github.com/bdk-lambda/bdk/shared/schedule"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// board notes what is dispatched.
type board struct {
	mu    sync.Mutex
	ticks []string
	late  time.Duration // the most
	fault error
	block chan struct{} // dispatches wait until it is closed; nil: they do not
}

func (b *board) dispatch(_ context.Context, name string, at time.Time) error {
	if b.block != nil {
		<-b.block
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault != nil {
		return b.fault
	}
	b.ticks = append(b.ticks, name+" "+at.Format("02 15:04"))
	b.late = max(b.late, time.Since(at))
	return nil
}

func (b *board) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.ticks
	b.ticks = nil
	return all
}

func named(name, cron string) bdk.NamedSchedule {
	return bdk.NamedSchedule{Name: name, Schedule: bdk.DefineSchedule(bdk.ScheduleSpec{Cron: cron, Prompt: "go"})}
}

// run runs a loop as a process does, until it is stopped.
func run(t *testing.T, store kv.Driver, c clock.Clock, dispatch func(context.Context, string, time.Time) error, schedules ...bdk.NamedSchedule) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	l := schedule.New(schedule.Options{
		Agent: "test", Schedules: schedules, Entries: kv.New(store, kv.Options{}), Clock: c, Dispatch: dispatch, Log: slog.New(slog.DiscardHandler),
	})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	return func() { cancel(); <-done }
}

// noon begins a test at noon of a day of its own, which synctest begins at midnight.
func noon() { time.Sleep(12 * time.Hour) }

func TestTicksAreOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		var b board
		time.Sleep(10 * time.Second)
		stop := run(t, memkv.New(), nil, b.dispatch, named("often", "*/2 * * * *"), named("hourly", "@hourly"))
		time.Sleep(64*time.Minute - 10*time.Second)
		stop()
		got := b.take()
		if len(got) != 33 || got[0] != "often 01 12:02" || !slices.Contains(got, "hourly 01 13:00") || b.late != 0 {
			t.Errorf("got %d, late by %s: %q", len(got), b.late, got)
		}
	})
}

// A process that was away makes up for the last tick it missed, and no other.
func TestCatchesUpOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cron string
		away time.Duration
		want []string
	}{
		"nothing was missed":                 {"0 15 * * *", time.Hour, nil},
		"one tick":                           {"0 13 * * *", 90 * time.Minute, []string{"s 01 13:00"}},
		"two ticks":                          {"0 * * * *", 150 * time.Minute, []string{"s 01 14:00"}},
		"many ticks":                         {"* * * * *", 20 * time.Hour, []string{"s 02 08:01"}},
		"a day, and not more":                {"0 13 * * *", 25 * time.Hour, []string{"s 02 13:00"}},
		"one that was missed by over a day":  {"0 13 1 * *", 26 * time.Hour, nil},
		"one that was missed by nearly that": {"0 13 1 * *", 24*time.Hour + 59*time.Minute, []string{"s 01 13:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				noon()
				var b board
				store := memkv.New()
				stop := run(t, store, nil, b.dispatch, named("s", tc.cron))
				time.Sleep(time.Minute)
				stop()
				b.take()
				time.Sleep(tc.away)
				for range 2 { // the second time nothing is left
					stop = run(t, store, nil, b.dispatch, named("s", tc.cron))
					synctest.Wait()
					stop()
				}
				if d := cmp.Diff(tc.want, b.take()); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		})
	}
}

// A schedule that is new, or is another one now, has missed nothing.
func TestNewSchedulesMissNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		var b board
		store := memkv.New()
		for _, cron := range []string{"0 11 * * *", "30 11 * * *"} {
			stop := run(t, store, nil, b.dispatch, named("s", cron))
			time.Sleep(time.Second)
			stop()
		}
		if got := b.take(); got != nil {
			t.Errorf("got %q", got)
		}
	})
}

// asleep is a clock of a machine that was asleep: timers that ran then stand still.
type asleep struct {
	clock.System

	mu    sync.Mutex
	slept time.Duration
}

func (a *asleep) Now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Add(a.slept)
}

func (a *asleep) sleep(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slept += d
}

func TestAMachineThatWasAsleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		var b board
		var c asleep
		stop := run(t, memkv.New(), &c, b.dispatch, named("s", "*/10 * * * *"))
		defer stop()
		time.Sleep(time.Second)
		c.sleep(65 * time.Minute)
		time.Sleep(schedule.Look)
		if d := cmp.Diff([]string{"s 01 13:00"}, b.take()); d != "" {
			t.Errorf("after waking up: -want +got:\n%s", d)
		}
		time.Sleep(5 * time.Minute)
		if d := cmp.Diff([]string{"s 01 13:10"}, b.take()); d != "" {
			t.Errorf("later: -want +got:\n%s", d)
		}
	})
}

// A clock that was a year ahead for a while holds up nothing, neither in the process that saw it nor in the next one.
func TestAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		var b board
		var c asleep
		store := memkv.New()
		stop := run(t, store, &c, b.dispatch, named("s", "*/10 * * * *"))
		time.Sleep(time.Second)
		c.sleep(365 * 24 * time.Hour)
		time.Sleep(schedule.Look)
		c.sleep(-365 * 24 * time.Hour)
		b.take()
		time.Sleep(10 * time.Minute)
		if d := cmp.Diff([]string{"s 01 12:10"}, b.take()); d != "" {
			t.Errorf("in the process: -want +got:\n%s", d)
		}
		stop()
		stop = run(t, store, &c, b.dispatch, named("s", "*/10 * * * *"))
		defer stop()
		time.Sleep(10 * time.Minute)
		if d := cmp.Diff([]string{"s 01 12:20"}, b.take()); d != "" {
			t.Errorf("in the next one: -want +got:\n%s", d)
		}
	})
}

// What cannot be dispatched is tried again, until the next tick takes its place.
func TestFaultsPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		b := board{fault: errors.New("no")}
		stop := run(t, memkv.New(), nil, b.dispatch, named("s", "*/10 * * * *"))
		defer stop()
		time.Sleep(15 * time.Minute)
		b.mu.Lock()
		b.fault = nil
		b.mu.Unlock()
		time.Sleep(10 * time.Second)
		if d := cmp.Diff([]string{"s 01 12:10"}, b.take()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		time.Sleep(20 * time.Minute)
		if d := cmp.Diff([]string{"s 01 12:20", "s 01 12:30"}, b.take()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// One that takes long holds up neither the others nor its own next ticks, and is waited for at the end.
func TestLongRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		b := board{block: make(chan struct{})}
		var quick board
		store := memkv.New()
		dispatch := func(ctx context.Context, name string, at time.Time) error {
			if name == "quick" {
				return quick.dispatch(ctx, name, at)
			}
			return b.dispatch(ctx, name, at)
		}
		stop := run(t, store, nil, dispatch, named("slow", "* * * * *"), named("quick", "* * * * *"))
		time.Sleep(3*time.Minute + time.Second)
		if got := quick.take(); len(got) != 3 {
			t.Errorf("the other: %q", got)
		}
		close(b.block)
		stop()
		if d := cmp.Diff([]string{"slow 01 12:01", "slow 01 12:02", "slow 01 12:03"}, sorted(b.take())); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// A process that dies after a tick was dispatched, before that is noted, leaves a tick that is dispatched again: it has happened.
func TestDeathAfterADispatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		var runs, repeated atomic.Int32
		schedules := []bdk.NamedSchedule{named("prompt", "0 * * * *"), {Name: "run", Schedule: bdk.DefineSchedule(bdk.ScheduleSpec{
			Cron: "0 * * * *", Run: func(context.Context, *bdk.ScheduleContext) error { runs.Add(1); return nil },
		})}}
		sessions, entries := memsession.New(), memkv.New()
		e := process(t, sessions, entries, schedules...)
		dispatch := func(ctx context.Context, name string, at time.Time) error {
			done, err := e.Dispatch(ctx, engine.Tick{Schedule: name, At: at})
			if done.Repeated {
				repeated.Add(1)
			}
			return err
		}
		stop := run(t, entries, nil, dispatch, schedules...)
		time.Sleep(time.Minute)
		stop()
		for _, s := range schedules { // what the process did last
			if _, err := e.Dispatch(t.Context(), engine.Tick{Schedule: s.Name, At: time.Date(2000, 1, 1, 13, 0, 0, 0, time.UTC)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(90 * time.Minute)
		stop = run(t, entries, nil, dispatch, schedules...)
		synctest.Wait()
		stop()
		rows, _, err := session.New(sessions, session.Options{}).List(t.Context(), session.Query{Agent: "test", Owner: "schedule:prompt", Limit: 10})
		if err != nil || len(rows) != 1 || runs.Load() != 1 || repeated.Load() != 2 {
			t.Errorf("%d sessions, %d runs, %d repeated, %v", len(rows), runs.Load(), repeated.Load(), err)
		}
	})
}

// idle is a runner that runs nothing.
type idle struct{}

func (idle) Start(context.Context, turn.Ref) error                   { return nil }
func (idle) Stop(context.Context, turn.Ref) error                    { return nil }
func (idle) Resume(context.Context, turn.Ref, bool, ...string) error { return nil }

// process is one of several on a store.
func process(t *testing.T, sessions session.Driver, entries kv.Driver, schedules ...bdk.NamedSchedule) *engine.Engine {
	t.Helper()
	script, err := scripted.Parse([]byte("rules: [{text: ok}]"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(nil, tool.Options{Claims: kv.New(entries, kv.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(bdk.Project{Slug: "test", Schedules: schedules}, engine.Deps{
		Sessions: session.New(sessions, session.Options{}), Runner: idle{}, Tools: tools, KV: kv.New(entries, kv.Options{}),
		Models: []engine.NamedModel{{ID: "scripted:test", Model: model.Model(scripted.New(script, clock.System{}))}}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Three processes on one store have each tick happen once, in both forms of a schedule, also while one of them is away for two ticks.
func TestThreeProcessesOneStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noon()
		const ticks = 10
		var mu sync.Mutex
		runs := map[time.Time]int{}
		schedules := []bdk.NamedSchedule{named("prompt", "* * * * *"), {Name: "run", Schedule: bdk.DefineSchedule(bdk.ScheduleSpec{
			Cron: "* * * * *", Run: func(ctx context.Context, c *bdk.ScheduleContext) error {
				mu.Lock()
				defer mu.Unlock()
				runs[c.At]++
				_, err := c.Sessions.Send(ctx, bdk.Message{Text: "run"})
				return err
			},
		})}}
		sessions, entries := memsession.New(), memkv.New()
		var stops []func()
		join := func() func() {
			e := process(t, sessions, entries, schedules...)
			return run(t, entries, nil, func(ctx context.Context, name string, at time.Time) error {
				_, err := e.Dispatch(ctx, engine.Tick{Schedule: name, At: at})
				return err
			}, schedules...)
		}
		for range 3 {
			stops = append(stops, join())
		}
		time.Sleep(4*time.Minute + time.Second)
		stops[2]()
		time.Sleep(2 * time.Minute) // two ticks without it
		stops[2] = join()
		time.Sleep(4 * time.Minute)
		for _, stop := range stops {
			stop()
		}
		store := session.New(sessions, session.Options{})
		for _, owner := range []string{"schedule:prompt", "schedule:run"} {
			rows, _, err := store.List(t.Context(), session.Query{Agent: "test", Owner: owner, Limit: 100})
			if err != nil || len(rows) != ticks {
				t.Errorf("%s has %d sessions, %v; want %d", owner, len(rows), err, ticks)
			}
		}
		if len(runs) != ticks {
			t.Errorf("ran for %d ticks; want %d", len(runs), ticks)
		}
		for at, n := range runs {
			if n != 1 {
				t.Errorf("ran %d times for %s", n, at)
			}
		}
	})
}
