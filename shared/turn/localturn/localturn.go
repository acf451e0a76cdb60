// Package localturn runs turns in this process, durably: what it works on is leased in the session store, so that a turn
// whose process died is found and finished by the next one.
package localturn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// Runner runs the turns of one agent. It is safe for concurrent use.
type Runner struct {
	opts Options
	step turn.Step
	fail func(context.Context, turn.Ref, string) error

	yielding atomic.Bool // Close was called: steps hand their turns back
	tasks    sync.WaitGroup
	loops    sync.WaitGroup
	ended    chan struct{} // closed by Close

	mu      sync.Mutex
	base    context.Context //nolint:containedctx // the life of the runner, which outlives the requests that start turns
	cancel  context.CancelFunc
	known   map[string]*task // by turn id: waiting or running
	waiting []*task          // in order of arrival
	running int
	closed  bool
}

// Options configure a Runner. Sessions, Agent and Log are required.
type Options struct {
	Sessions *session.Store
	Agent    string // slug
	Log      *slog.Logger
	Clock    clock.Clock // default: the system clock

	Limit  int                      // turns that run at once; default 64
	Holder string                   // this process, as in session.Options
	Lease  time.Duration            // as in session.Options; default 60 s
	Alive  func(holder string) bool // whether another process on this store still lives; nil: judge by its lease alone
	Sweep  time.Duration            // how often to look for turns that nobody runs; default 2 s
}

var _ turn.Runner = (*Runner)(nil)

// A step that panics, or fails for a reason that may pass, is tried again after a pause that doubles up to longestPause. A turn
// whose step panicked maxPanics times is failed.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 30 * time.Second
	maxPanics    = 3
)

type task struct {
	ref    turn.Ref
	ctx    context.Context //nolint:containedctx // ends when the turn is stopped
	cancel context.CancelCauseFunc
	again  bool // it was resumed before it was over
}

func (t *task) begin(base context.Context) { t.ctx, t.cancel = context.WithCancelCause(base) }

var (
	errStopped  = errors.New("the turn was stopped")
	errPanicked = errors.New("step panicked")
)

// New returns a runner that does nothing until Serve is called; turns that are started before wait.
func New(opts Options) *Runner {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Limit <= 0 {
		opts.Limit = 64
	}
	if opts.Lease <= 0 {
		opts.Lease = time.Minute
	}
	if opts.Sweep <= 0 {
		opts.Sweep = 2 * time.Second
	}
	return &Runner{opts: opts, known: make(map[string]*task), ended: make(chan struct{})}
}

// Serve begins to run turns with step, recovers those that no living process runs, and returns. Turns run until Close, whatever
// becomes of ctx, whose values they see. fail ends a turn that cannot be finished. A runner that was closed serves nothing.
func (r *Runner) Serve(ctx context.Context, step turn.Step, fail func(context.Context, turn.Ref, string) error) {
	base, cancel := context.WithCancel(turn.WithYield(context.WithoutCancel(ctx), func(time.Duration) bool { return r.yielding.Load() }))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		cancel()
		return
	}
	r.base, r.cancel, r.step, r.fail = base, cancel, step, fail
	r.dispatch()
	r.loops.Go(func() { r.every(base, r.ended, r.opts.Sweep, r.recover) })
	r.loops.Go(func() { r.every(base, base.Done(), r.opts.Lease/3, r.renew) }) // turns that come to their end need it too
}

// Start runs a turn as soon as there is room.
func (r *Runner) Start(_ context.Context, ref turn.Ref) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("localturn: the runner is closed")
	}
	if r.known[ref.TurnID] == nil {
		r.enqueue(ref)
	}
	return nil
}

// enqueue has a turn run as soon as there is room. The caller holds mu.
func (r *Runner) enqueue(ref turn.Ref) {
	t := &task{ref: ref}
	r.known[ref.TurnID] = t
	r.waiting = append(r.waiting, t)
	r.dispatch()
}

// Resume runs a turn that was parked. One that was not is run by somebody who finds the decision.
func (r *Runner) Resume(ctx context.Context, ref turn.Ref, parked bool, _ ...string) error {
	if !parked {
		return nil
	}
	r.mu.Lock()
	t := r.known[ref.TurnID]
	if t != nil {
		t.again = true
	}
	r.mu.Unlock()
	if t != nil {
		return nil
	}
	return r.Start(ctx, ref)
}

// Stop ends the context of a turn that runs. One that waits finds out by itself that it was stopped.
func (r *Runner) Stop(_ context.Context, ref turn.Ref) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.known[ref.TurnID]; t != nil && t.cancel != nil {
		t.cancel(errStopped)
	}
	return nil
}

// Close hands the turns over: it waits until each has come to a point where another process can go on, or until ctx ends,
// then cuts off the rest. No turn starts any more. It is idempotent.
func (r *Runner) Close(ctx context.Context) {
	r.mu.Lock()
	first := !r.closed
	r.closed, r.waiting = true, nil
	cancel := r.cancel
	r.mu.Unlock()
	if first {
		r.yielding.Store(true)
		close(r.ended)
	}
	if cancel == nil {
		return
	}
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		r.tasks.Wait()
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	cancel()
	<-idle
	r.loops.Wait()
}

// dispatch starts waiting turns while there is room. The caller holds mu.
func (r *Runner) dispatch() {
	for r.base != nil && !r.closed && r.running < r.opts.Limit && len(r.waiting) > 0 {
		t := r.waiting[0]
		r.waiting = r.waiting[1:]
		t.begin(r.base)
		r.running++
		r.tasks.Go(func() {
			defer r.done(t)
			r.run(t)
		})
	}
}

func (r *Runner) done(t *task) {
	t.cancel(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, t.ref.TurnID)
	r.running--
	if t.again && !r.closed {
		r.enqueue(t.ref)
	}
	r.dispatch()
}

// run steps a turn until it is done, stopped or to be handed over.
func (r *Runner) run(t *task) {
	pause, panics := firstPause, 0
	log := r.opts.Log.With(slog.String("session_id", t.ref.SessionID), slog.String("turn_id", t.ref.TurnID))
	for {
		out, err := r.try(t)
		switch {
		case err == nil && (out == turn.Done || out == turn.Await):
			return
		case t.ctx.Err() != nil || r.yielding.Load():
			return
		case err == nil:
			pause = firstPause
			continue
		}
		log.ErrorContext(t.ctx, "step failed", slog.Any("error", err))
		if errors.Is(err, errPanicked) {
			panics++
		}
		if panics >= maxPanics && r.giveUp(t, err) == nil {
			return
		}
		if clock.Sleep(t.ctx, r.opts.Clock, pause) != nil {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

func (r *Runner) try(t *task) (out turn.Outcome, err error) {
	defer r.catch(t, &err)
	return r.step(t.ctx, t.ref)
}

func (r *Runner) giveUp(t *task, why error) (err error) {
	defer r.catch(t, &err)
	return r.fail(t.ctx, t.ref, "the turn could not be finished: "+why.Error())
}

// catch turns a panic of the function that defers it into its error.
func (r *Runner) catch(t *task, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errPanicked, p)
		r.opts.Log.ErrorContext(t.ctx, "step panicked", slog.String("stack", string(debug.Stack())))
	}
}

// every calls do now and then every d until end is closed.
func (r *Runner) every(ctx context.Context, end <-chan struct{}, d time.Duration, do func(context.Context) error) {
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			r.opts.Log.WarnContext(ctx, "looking after turns", slog.Any("error", err))
		}
		tick, stop := r.opts.Clock.After(d)
		select {
		case <-tick:
		case <-end:
			stop()
			return
		}
	}
}

// recover starts the turns that no living process runs.
func (r *Runner) recover(ctx context.Context) error {
	return r.active(ctx, func(row session.Record) error {
		ref := turn.Ref{SessionID: row.ID, TurnID: row.Turn.ID}
		if r.holds(ref) || r.waits(row.Turn) || r.heldElsewhere(row.Turn) {
			return nil
		}
		err := r.opts.Sessions.Claim(ctx, row)
		if errors.Is(err, session.ErrFenced) {
			return nil
		}
		if err != nil {
			return err
		}
		r.opts.Log.InfoContext(ctx, "turn recovered", slog.String("session_id", ref.SessionID), slog.String("turn_id", ref.TurnID))
		return r.Start(ctx, ref)
	})
}

// waits reports whether a turn waits for a decision that may still be made.
func (r *Runner) waits(t session.Turn) bool {
	now := r.opts.Clock.Now()
	return t.Parked && !slices.ContainsFunc(t.Approvals, func(a session.Approval) bool { return a.Decision == "" && !now.Before(a.ExpiresAt) })
}

// heldElsewhere reports whether another process is to be left alone with a turn.
func (r *Runner) heldElsewhere(t session.Turn) bool {
	switch {
	case t.Holder == "" || t.Holder == r.opts.Holder || !r.opts.Clock.Now().Before(t.Until):
		return false
	case r.opts.Alive == nil:
		return true
	}
	return r.opts.Alive(t.Holder)
}

// renew extends the leases of this process's turns before they end, and stops turns that another process has taken.
func (r *Runner) renew(ctx context.Context) error {
	return r.active(ctx, func(row session.Record) error {
		ref := turn.Ref{SessionID: row.ID, TurnID: row.Turn.ID}
		switch {
		case !r.holds(ref):
			return nil
		case row.Turn.Holder != r.opts.Holder:
			return r.cede(ctx, ref)
		case row.Turn.Until.Sub(r.opts.Clock.Now()) > r.opts.Lease*2/3:
			return nil
		}
		if err := r.opts.Sessions.Claim(ctx, row); err != nil && !errors.Is(err, session.ErrFenced) {
			return err
		}
		return nil
	})
}

// cede stops a turn that another process seems to have. The row is read again, because a listing may be older than the
// moment when this process took the turn.
func (r *Runner) cede(ctx context.Context, ref turn.Ref) error {
	row, err := r.opts.Sessions.Get(ctx, ref.SessionID)
	if err != nil || row.Turn.Holder == r.opts.Holder {
		return err
	}
	return r.Stop(ctx, ref)
}

func (r *Runner) holds(ref turn.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[ref.TurnID] != nil
}

// active calls do for every session with an active turn and returns the first error. A session that cannot be looked
// after does not keep the others from it.
func (r *Runner) active(ctx context.Context, do func(session.Record) error) error {
	var first error
	q := session.Query{Agent: r.opts.Agent, Active: true, Limit: 200}
	for {
		rows, next, err := r.opts.Sessions.List(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := do(row); first == nil {
				first = err
			}
		}
		if next == "" {
			return first
		}
		q.Cursor = next
	}
}
