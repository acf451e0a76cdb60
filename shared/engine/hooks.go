package engine

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// hookTurn begins the turn ids of what hooks record. Hooks are not told of it: they would never come to an end.
const hookTurn = "hook_"

// hookGrace is how long a handler may take to notice that its time is over before it is left alone.
const hookGrace = 2 * time.Second

// Subscribers returns the agent's hooks, as those that are told of events.
func (e *Engine) Subscribers() []hook.Subscriber {
	subscribers := make([]hook.Subscriber, len(e.project.Hooks))
	for i, h := range e.project.Hooks {
		subscribers[i] = hook.Subscriber{
			Name:  hook.Named(h.Name),
			Wants: func(ev event.Event) bool { return h.Hook.Handles(ev.Type) && !strings.HasPrefix(ev.TurnID, hookTurn) },
			Handle: func(ctx context.Context, ev event.Event) error {
				e.runHook(ctx, h, ev)
				return nil // what went wrong is logged, and not tried again
			},
		}
	}
	return subscribers
}

// runHook calls the handlers of a hook for an event.
func (e *Engine) runHook(ctx context.Context, h bdk.NamedHook, ev event.Event) {
	row, err := e.deps.Sessions.Get(ctx, ev.SessionID)
	if bdkerr.CodeOf(err) == bdkerr.NotFound {
		return // the session has expired meanwhile
	}
	log := e.logOf(turn.Ref{SessionID: ev.SessionID, TurnID: ev.TurnID}, row).With(slog.String("hook", h.Name))
	if err == nil {
		err = e.handle(ctx, h, ev, row, log)
	}
	if err != nil {
		log.ErrorContext(ctx, fmt.Sprintf("hook %q handler for %s threw: %v", h.Name, ev.Type, err)) //nolint:sloglint // people look for this line
	}
}

// handle gives the handlers of a hook their time, whatever they do with it. A panic is an error.
func (e *Engine) handle(ctx context.Context, h bdk.NamedHook, ev event.Event, row session.Record, log *slog.Logger) error {
	timeout := h.Hook.Spec().Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the time of %s is over", timeout))
	defer cancel()
	hc := e.hookContext(row, ev, h.Name, log)
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				log.ErrorContext(ctx, "a hook panicked", slog.String("stack", string(debug.Stack())))
				done <- fmt.Errorf("panic: %v", v)
			}
		}()
		done <- h.Hook.Handle(ctx, hc, ev)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late, stop := e.deps.Clock.After(hookGrace)
	defer stop()
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("%w, and the handler goes on: it is left alone", context.Cause(ctx))
	}
}

// hookContext returns what a handler knows.
func (e *Engine) hookContext(row session.Record, ev event.Event, name string, log *slog.Logger) *bdk.HookContext {
	hc := &bdk.HookContext{Session: infoOf(row, ev.TurnID), Agent: e.name(), Channel: bdk.HookChannel{ID: row.Channel}}
	noFile := func(_ context.Context, path string) ([]byte, error) {
		return nil, bdkerr.New(bdkerr.InvalidRequest, "a hook has no files of the session: leave the Path %q out", path)
	}
	hc.Services = e.services(hc.Session, log, noFile, func(ctx context.Context, data ...event.Data) error {
		_, err := e.deps.Sessions.Record(ctx, row.ID, hookTurn+name, 0, data...)
		return err
	})
	hc.Reminders = e.remindersOf(hc.Session)
	return hc
}

// name returns what people call the agent.
func (e *Engine) name() string {
	if e.project.Agent.Name != "" {
		return e.project.Agent.Name
	}
	return e.project.Slug
}
