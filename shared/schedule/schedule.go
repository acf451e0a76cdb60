// Package schedule has the schedules of an agent happen, where nothing else wakes the process: a loop that looks at the clock.
//
// The entries of a [kv.Store] say up to when each schedule was taken care of, so that a process that comes later makes up for what was
// missed: for the last time alone, and only within [CatchUp]. Any number of processes may run the loop over one store; whoever
// dispatches has to tell a tick that was dispatched before. Ticks are whole minutes, and nothing is added to them: a loop is late by what
// a timer is late, or, after the machine was asleep, by [Look] at most.
package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/kv"
)

const (
	// CatchUp is how long ago the last missed tick of a schedule may be to be made up for.
	CatchUp = 24 * time.Hour
	// Look is the longest time after which the loop looks at the clock again: timers stand still while a machine is asleep.
	Look = 30 * time.Second
	// retry is how soon a tick that could not be dispatched is tried again.
	retry = 5 * time.Second
)

// Options configure a Loop. All but Clock are required.
type Options struct {
	Agent     string // slug
	Schedules []bdk.NamedSchedule
	Entries   *kv.Store
	Log       *slog.Logger
	Clock     clock.Clock // default: the system clock

	// Dispatch has a schedule happen for a tick. It is called for one tick at a time, though while an earlier one still is; an error means that nothing
	// happened yet. It may be called again for a tick that was dispatched, by this process or another.
	Dispatch func(ctx context.Context, schedule string, at time.Time) error
}

// Loop has the schedules of one agent happen. [Loop.Run] may be called once.
type Loop struct {
	opts Options
	runs sync.WaitGroup
	poke chan struct{} // wakes the loop

	mu    sync.Mutex
	lines []*line
}

// line is a schedule on its way through time.
type line struct {
	bdk.NamedSchedule

	done   time.Time // ticks up to it are taken care of; zero: not known yet
	failed time.Time // when the tick after it could not be dispatched; zero if it could
}

// New returns a loop. It panics if Options.Agent is no slug, which would mix up the entries of agents.
func New(opts Options) *Loop {
	if opts.Agent == "" || strings.Contains(opts.Agent, "/") {
		panic(fmt.Sprintf("schedule: Options.Agent is %q", opts.Agent))
	}
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	l := &Loop{opts: opts, poke: make(chan struct{}, 1)}
	for _, s := range opts.Schedules {
		l.lines = append(l.lines, &line{NamedSchedule: s})
	}
	return l
}

// Run dispatches what is due until ctx ends, and returns when all that it has dispatched is over.
func (l *Loop) Run(ctx context.Context) {
	defer l.runs.Wait()
	if len(l.lines) == 0 {
		return
	}
	for {
		due, stop := l.opts.Clock.After(max(l.step(ctx), time.Millisecond))
		select {
		case <-due:
		case <-l.poke:
		case <-ctx.Done():
			stop()
			return
		}
		stop()
	}
}

// step dispatches what is due and returns how long nothing else is.
func (l *Loop) step(ctx context.Context) time.Duration {
	wait := Look
	for _, s := range l.lines {
		now := l.opts.Clock.Now()
		if err := l.advance(ctx, s, now); err != nil && ctx.Err() == nil {
			l.opts.Log.WarnContext(ctx, "schedule waits", slog.String("schedule", s.Name), slog.Any("error", err))
			wait = min(wait, retry)
			continue
		}
		l.mu.Lock()
		if !s.failed.IsZero() {
			wait = min(wait, retry)
		}
		if next := s.Schedule.Next(now); !next.IsZero() {
			wait = min(wait, next.Sub(l.opts.Clock.Now()))
		}
		l.mu.Unlock()
	}
	return wait
}

// advance dispatches the last tick of a schedule, if it is not taken care of and not too long ago.
func (l *Loop) advance(ctx context.Context, s *line, now time.Time) error {
	l.mu.Lock()
	known, failed := s.done, s.failed
	l.mu.Unlock()
	if known.IsZero() {
		mark, err := l.load(ctx, s, now)
		if err != nil {
			return err
		}
		known = mark.Done
	}
	ahead := now.Add(Look)
	if known.After(ahead) { // the clock was set back
		known = now
	}
	tick := s.Schedule.Last(now)
	due := tick.After(known) && (failed.IsZero() || now.Sub(failed) >= retry)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.done.Before(known) || s.done.After(ahead) {
		s.done = known
	}
	if !due {
		return nil
	}
	before := s.done
	s.done, s.failed = tick, time.Time{}
	l.runs.Go(func() {
		err := l.dispatch(ctx, s, tick)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.opts.Log.WarnContext(ctx, "schedule not dispatched, it is tried again", slog.String("schedule", s.Name), slog.Time("tick", tick), slog.Any("error", err))
		l.mu.Lock()
		defer l.mu.Unlock()
		if s.done.Equal(tick) {
			s.done, s.failed = before, l.opts.Clock.Now()
			select {
			case l.poke <- struct{}{}:
			default:
			}
		}
	})
	return nil
}

// dispatch has a tick happen, and notes it.
func (l *Loop) dispatch(ctx context.Context, s *line, tick time.Time) error {
	if late := l.opts.Clock.Now().Sub(tick); late > CatchUp {
		l.opts.Log.WarnContext(ctx, "schedule missed", slog.String("schedule", s.Name), slog.Time("tick", tick), slog.Duration("late", late))
	} else if err := l.opts.Dispatch(ctx, s.Name, tick); err != nil {
		return err
	}
	return l.note(context.WithoutCancel(ctx), s, tick)
}

// mark is the entry of a schedule.
type mark struct {
	Cron string    `json:"cron"`
	Done time.Time `json:"done"` // ticks up to it are taken care of

	version int64
}

func (l *Loop) key(s *line) string { return "schedules/" + l.opts.Agent + "/" + s.Name }

// load returns the mark of a schedule, which begins now if it is new or has another cron expression, or was left by a clock that was ahead.
func (l *Loop) load(ctx context.Context, s *line, now time.Time) (mark, error) {
	for {
		m, err := l.get(ctx, s)
		if err != nil || m.Cron == s.Schedule.Spec().Cron && !m.Done.After(now.Add(Look)) {
			return m, err
		}
		m.Cron, m.Done = s.Schedule.Spec().Cron, now.UTC()
		if err := l.put(ctx, s, m); !changed(err) {
			return m, err
		}
	}
}

// note notes that a tick is taken care of.
func (l *Loop) note(ctx context.Context, s *line, tick time.Time) error {
	for {
		m, err := l.get(ctx, s)
		if err != nil || !m.Done.Before(tick) {
			return err
		}
		m.Cron, m.Done = s.Schedule.Spec().Cron, tick
		if err := l.put(ctx, s, m); !changed(err) {
			return err
		}
	}
}

func changed(err error) bool { return errors.Is(err, kv.ErrExists) || errors.Is(err, kv.ErrVersion) }

// get returns the mark of a schedule, the zero mark if there is none that can be read.
func (l *Loop) get(ctx context.Context, s *line) (m mark, err error) {
	e, err := l.opts.Entries.Get(ctx, l.key(s))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return mark{}, nil
	case err != nil:
		return mark{}, err
	}
	if json.Unmarshal(e.Value, &m) != nil {
		m = mark{}
	}
	m.version = e.Version
	return m, nil
}

func (l *Loop) put(ctx context.Context, s *line, m mark) error {
	value, err := json.Marshal(m)
	switch {
	case err != nil:
		return fmt.Errorf("encoding the mark of schedule %s: %w", s.Name, err)
	case m.version == 0:
		return l.opts.Entries.Create(ctx, l.key(s), value, 0)
	}
	return l.opts.Entries.Swap(ctx, l.key(s), m.version, value, 0)
}
