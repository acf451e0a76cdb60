package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// run is one invocation of Step: a writer at the end of the log and what the log amounts to.
type run struct {
	*Engine
	ref   turn.Ref
	w     *session.Writer
	log   *slog.Logger
	files *files

	connected []model.Tool // what the model is offered of connections, beside the agent's own tools

	mu     sync.Mutex // guards t: calls and delegations record what they do while others run
	t      *transcript
	failed bool // the turn was ended with an error
}

var errTurnTime = errors.New("the turn took too long")

// Step works on a turn until it ends or should be handed back; see [turn.Step].
func (e *Engine) Step(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
	out, err := e.step(ctx, ref)
	switch {
	case errors.Is(err, session.ErrFenced) && e.active(ctx, ref):
		// another call works on it and got ahead; whoever made that one may be gone, so this one is to be made again
	case over(err):
		return turn.Done, nil
	case errors.Is(err, errUnreadable):
		out, err = turn.Done, e.Fail(ctx, ref, err.Error())
	}
	if err != nil {
		return "", fmt.Errorf("running turn %s of session %s: %w", ref.TurnID, ref.SessionID, err)
	}
	return out, nil
}

// active reports whether a turn is still open, as far as can be said.
func (e *Engine) active(ctx context.Context, ref turn.Ref) bool {
	row, err := e.deps.Sessions.Get(ctx, ref.SessionID)
	if err != nil {
		return bdkerr.CodeOf(err) != bdkerr.NotFound
	}
	return row.Turn.ID == ref.TurnID
}

// over reports whether an error says that a turn is not to be run any more: it was ended, or its session is gone.
func over(err error) bool {
	return errors.Is(err, session.ErrFenced) || bdkerr.CodeOf(err) == bdkerr.NotFound
}

func (e *Engine) step(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
	r, err := e.open(ctx, ref)
	if err != nil {
		return "", err
	}
	defer r.files.close(ctx, r.log)
	r.connect(ctx)
	out, err := r.loop(ctx)
	if err != nil {
		return "", err
	}
	if p := r.t.Turn; out == turn.Done {
		r.log.InfoContext(ctx, "turn ended", slog.Bool("failed", r.failed), slog.Int("model_calls", r.t.Steps),
			slog.Int64("input_tokens", p.Spent.Usage.InputTokens), slog.Int64("output_tokens", p.Spent.Usage.OutputTokens),
			slog.Duration("took", e.deps.Clock.Now().Sub(p.StartedAt)))
	}
	e.keep(ctx, r)
	return out, nil
}

func (e *Engine) open(ctx context.Context, ref turn.Ref) (*run, error) {
	w, err := e.deps.Sessions.Open(ctx, ref.SessionID, ref.TurnID)
	if err != nil {
		return nil, err
	}
	t, err := e.load(ctx, ref.SessionID, w.Row().Next)
	if err != nil {
		return nil, err
	}
	if err := w.Replay(ctx, t.Next, t.fold); err != nil {
		return nil, err
	}
	if t.Turn.ID != ref.TurnID {
		return nil, fmt.Errorf("%w: it holds no message of turn %s", errUnreadable, ref.TurnID)
	}
	r := &run{Engine: e, ref: ref, w: w, t: t, log: e.logOf(ref, w.Row())}
	r.files = e.openFiles(t.Files, w.Row().Files)
	return r, nil
}

// logOf returns the log of a turn.
func (e *Engine) logOf(ref turn.Ref, row session.Record) *slog.Logger {
	return e.deps.Log.With(slog.String("session_id", ref.SessionID), slog.String("turn_id", ref.TurnID), slog.String("owner", row.Owner))
}

// loop does what comes next until nothing does.
func (r *run) loop(ctx context.Context) (turn.Outcome, error) {
	if r.t.Turn.StartedAt.IsZero() {
		if err := r.append(ctx, event.TurnStarted{Model: r.deps.Models[0].ID}); err != nil {
			return "", err
		}
	}
	bounded, cancel := context.WithTimeoutCause(ctx, r.left(), errTurnTime)
	defer cancel()
	main := r.lane("", r.main, &r.t.thread)
	for !r.t.Turn.Ended {
		out, err := main.work(bounded)
		if errors.Is(context.Cause(bounded), errTurnTime) && !r.t.Turn.Ended {
			out, err = turn.Done, r.fail(ctx, fmt.Sprintf("limit reached: the turn ran for %s (TurnTime)", r.project.Agent.Limits.TurnTime))
		}
		if err != nil || out == turn.Continue {
			return out, err
		}
		if out == turn.Await && r.waits() {
			parked, err := r.w.Park(ctx)
			if parked {
				r.tellWaits(ctx)
			}
			if parked || err != nil {
				return out, err
			}
		}
	}
	return turn.Done, nil
}

// openCalls returns the calls of all threads that have no result.
func (r *run) openCalls() []event.ActionCall {
	open := r.t.open()
	for _, k := range r.t.Turn.Tasks {
		open = append(open, k.open()...)
	}
	return open
}

// left returns how much of the time of the turn is left. While it waits for people its time stands still.
func (r *run) left() time.Duration {
	p := r.t.Turn
	spent := r.deps.Clock.Now().Sub(p.StartedAt) - p.Waited
	if len(r.w.Row().Turn.Pending()) > 0 {
		spent = p.LastAt.Sub(p.StartedAt) - p.Waited
	}
	return r.project.Agent.Limits.TurnTime - spent
}

// tellWaits logs which calls wait for approval.
func (r *run) tellWaits(ctx context.Context) {
	for _, a := range r.w.Row().Turn.Pending() {
		r.log.InfoContext(ctx, "call waits for approval", slog.String("call_id", a.CallID), slog.String("tool", a.ToolName), slog.Time("until", a.ExpiresAt))
	}
}

// waits reports whether nobody has decided yet about the calls that are open, nor has their time passed.
func (r *run) waits() bool {
	open := r.openCalls()
	now := r.deps.Clock.Now()
	for _, a := range r.w.Row().Turn.Approvals {
		over := a.Decision != "" || !now.Before(a.ExpiresAt)
		if over && slices.ContainsFunc(open, func(c event.ActionCall) bool { return c.CallID == a.CallID }) {
			return false
		}
	}
	return true
}

// append records events of the turn and takes them into the transcript.
func (r *run) append(ctx context.Context, data ...event.Data) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, err := r.w.Append(ctx, data...)
	return r.took(events, err)
}

// finish records the last events of the turn.
func (r *run) finish(ctx context.Context, data ...event.Data) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, err := r.w.Finish(ctx, data...)
	return r.took(events, err)
}

// took folds what was just recorded. Events of others that the writer walked past do not matter to the conversation.
func (r *run) took(events []event.Event, err error) error {
	if err != nil || len(events) == 0 {
		return err
	}
	r.t.Next = events[0].Index
	for _, e := range events {
		if err := r.t.fold(e); err != nil {
			return err
		}
	}
	return nil
}

// fail ends the turn with an error.
func (r *run) fail(ctx context.Context, message string) error {
	r.failed = true
	return r.finish(ctx, failure(r.w.Row(), message)...)
}
