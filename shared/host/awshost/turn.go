package awshost

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/host"
	"github.com/bdk-lambda/bdk/shared/secret"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// Step works on a turn, see [turn.Step]. A turn of an agent that cannot be started, for lack of a key or because of a mistake
// in its definitions, is failed with the reason.
func (h *Host) Step(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
	agent, err := h.full(ctx)
	switch {
	case bdkerr.CodeOf(err) == bdkerr.Unavailable || err != nil && ctx.Err() != nil:
		return "", err // it may pass
	case err != nil:
		h.log.ErrorContext(ctx, "the agent cannot run", slog.Any("error", err))
		return turn.Done, h.Fail(ctx, ref, "the agent cannot run: "+told(err))
	}
	return agent.Step(ctx, ref)
}

// told returns what users may know of an error: of one that has a text for them that text alone.
func told(err error) string {
	if e, ok := errors.AsType[*bdkerr.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// Fail ends a turn with turn.failed, see [engine.Engine.Fail].
func (h *Host) Fail(ctx context.Context, ref turn.Ref, message string) error {
	return h.control.Fail(ctx, ref, message)
}

// Parked returns the calls that a parked turn waits for, see [engine.Engine.Parked].
func (h *Host) Parked(ctx context.Context, ref turn.Ref) ([]string, error) {
	return h.control.Parked(ctx, ref)
}

// Await parks a call until somebody decides about a call of its turn. If that has happened meanwhile, the turn goes on at once.
func (h *Host) Await(ctx context.Context, in sfnturn.AwaitInput) error {
	if err := h.tokens.Park(ctx, in); err != nil {
		return err
	}
	calls, err := h.control.Parked(ctx, in.Ref)
	if err != nil || slices.Contains(calls, in.CallID) {
		return err
	}
	return h.runner.Resume(ctx, in.Ref, false, in.CallID)
}

// late is after which time a reminder is taken for one whose alarm was lost, or whose session was busy when it rang.
const late = 90 * time.Second

// Sweep starts turns that were accepted and not started, and ends those whose execution has ended without them. It sends reminders
// that are late.
func (h *Host) Sweep(ctx context.Context) error {
	return errors.Join(h.sweeper.Sweep(ctx, h.control.Fail), h.control.RemindDue(ctx, h.opts.Clock.Now().Add(-late)))
}

// Dispatch has a schedule happen, see [engine.Engine.Dispatch].
func (h *Host) Dispatch(ctx context.Context, t engine.Tick) (engine.Dispatched, error) {
	return h.control.Dispatch(ctx, t)
}

// Remind sends a reminder, see [engine.Engine.Remind]. One whose session is busy is sent by a later Sweep.
func (h *Host) Remind(ctx context.Context, id string) error {
	err := h.control.Remind(ctx, id)
	if bdkerr.CodeOf(err) == bdkerr.SessionBusy || errors.Is(err, bdk.ErrNotFound) {
		return nil
	}
	return err
}

// Purge removes what is left of a session whose row was removed because it had expired.
func (h *Host) Purge(ctx context.Context, id, snapshot string) error {
	return h.rows.Purge(ctx, id, snapshot)
}

// full returns the engine that runs turns: a new one when a key that it was made with has been replaced. One that could not be made
// is tried again with the next turn.
func (h *Host) full(ctx context.Context) (*engine.Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent != nil && h.current(ctx) {
		return h.agent, nil
	}
	vars := variables{ctx: ctx, env: h.opts.Getenv, secrets: h.secrets, read: map[string]string{}}
	agent, err := h.engine(ctx, host.Models{
		Client: host.ModelClient(), Clock: h.opts.Clock, Getenv: vars.get, Dir: h.opts.Getenv(taskRoot), Keys: "the deployment's secret",
	})
	switch {
	case bdkerr.CodeOf(vars.err) == bdkerr.Unavailable:
		return nil, vars.err
	case vars.err != nil:
		return nil, &bdkerr.Error{Code: bdkerr.Internal, Message: "the deployment's secret cannot be read; the log has the reason", Err: vars.err}
	case err != nil:
		return nil, err
	}
	h.agent, h.keys = agent, vars.read
	return agent, nil
}

// current reports whether the secret has the keys that the engine was made with, as far as it can be read.
func (h *Host) current(ctx context.Context) bool {
	for name, old := range h.keys {
		if value, err := h.secrets.Lookup(ctx, name); err == nil && value != old {
			return false
		}
	}
	return true
}

// variables are those of the function, and of the deployment's secret, which is read once one is asked for that only it can have.
type variables struct {
	ctx     context.Context //nolint:containedctx // of one call
	env     func(string) string
	secrets *secret.Store
	read    map[string]string // what the secret was asked for
	err     error             // the first one
}

func (v *variables) get(name string) string {
	if value := v.env(name); value != "" || name == deploy.EnvModel {
		return value
	}
	value, err := v.secrets.Lookup(v.ctx, name)
	if v.err == nil {
		v.err = err
	}
	v.read[name] = value
	return value
}
