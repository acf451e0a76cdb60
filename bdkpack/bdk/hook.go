package bdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Hook runs code of the author after events of sessions have been recorded: an audit line, a metric, a copy of the transcript. The file
// bot/hooks/audit/usage.go defines the hook audit/usage. [DefineHook] makes one; it is immutable and safe for concurrent use.
//
// A hook sees the events of all sessions of the agent, those of a session one at a time and in order. It cannot hold or change a turn:
// what must happen before a tool runs is for NeedsApproval. An error, a panic and a handler that takes too long are logged, and the
// next event follows. Events are told at most once: those that are not handled when a process dies are not told again.
type Hook struct {
	spec     HookSpec
	handlers []HookHandler
}

// HookSpec adjusts a hook. The zero value is usable.
type HookSpec struct {
	// Timeout is how long a handler may take with one event, which it learns by the end of its context. Then the next event follows, whatever
	// the handler does. Default: 30 seconds; at most 5 minutes.
	Timeout time.Duration
}

// The limits of HookSpec.Timeout.
const (
	hookTimeout    = 30 * time.Second
	maxHookTimeout = 5 * time.Minute
)

// HookHandler is what a hook does with events of one type, or of all. [On] and [OnAny] make one.
type HookHandler struct {
	event EventType // "": any
	run   func(context.Context, *HookContext, Event) error
}

// HookContext is what a handler knows about the session of an event. The zero value serves in tests; package bdktest has one with
// services that work.
type HookContext struct {
	Services // of the host, for this session

	Session SessionInfo // the one the event is of
	Agent   string      // the name that people read
	Channel HookChannel // through which the session was begun
}

// HookChannel is the channel of a session.
type HookChannel struct {
	ID string // "http" for the built-in channel

	// ContinuationToken continues the session. It is "" if the session takes no follow-up, and in the built-in channel, whose tokens
	// nobody but the client has.
	ContinuationToken string
}

// DefineHook returns a hook with the given handlers, at most one for each type of event and one for all. The handlers are called
// concurrently for events of different sessions.
func DefineHook(spec HookSpec, handlers ...HookHandler) Hook { return Hook{spec, handlers} }

// On returns a handler for the events whose data is of type T:
//
//	bdk.On(func(ctx context.Context, h *bdk.HookContext, e bdk.Event, data bdk.TurnCompleted) error { … })
func On[T EventData](run func(ctx context.Context, h *HookContext, e Event, data T) error) HookHandler {
	var zero T
	handler := HookHandler{event: zero.Type()}
	if run != nil {
		handler.run = func(ctx context.Context, h *HookContext, e Event) error {
			data, err := DecodeEvent[T](e)
			if err != nil {
				return err
			}
			return run(ctx, h, e, data)
		}
	}
	return handler
}

// OnAny returns a handler for all events. Of an event that has a handler of its own it is told after that one.
func OnAny(run func(ctx context.Context, h *HookContext, e Event) error) HookHandler {
	return HookHandler{run: run}
}

// Err returns all that is wrong with the definition, one mistake a line; nil if nothing is.
func (h Hook) Err() error {
	var errs []error
	if t := h.spec.Timeout; t < 0 || t > maxHookTimeout {
		errs = append(errs, fmt.Errorf("the Timeout is %s: it must be from 0, for %s, to %s", t, hookTimeout, maxHookTimeout))
	}
	seen := map[EventType]bool{}
	for _, handler := range h.handlers {
		name := string(handler.event)
		if name == "" {
			name = "all events"
		}
		if handler.run == nil {
			errs = append(errs, fmt.Errorf("the handler for %s has no function", name))
		}
		if seen[handler.event] {
			errs = append(errs, fmt.Errorf("there are two handlers for %s: make them one", name))
		}
		seen[handler.event] = true
	}
	return errors.Join(errs...)
}

// Spec returns what the hook was defined with, and the defaults of what was not given.
func (h Hook) Spec() HookSpec {
	return HookSpec{Timeout: or(h.spec.Timeout, hookTimeout)}
}

// Events returns the types of the events that the hook is told, in order; "*" stands for all.
func (h Hook) Events() []EventType {
	types := make([]EventType, 0, len(h.handlers))
	for _, handler := range h.handlers {
		types = append(types, or(handler.event, "*"))
	}
	slices.Sort(types)
	return types
}

// Handles reports whether the hook has a handler for events of a type.
func (h Hook) Handles(t EventType) bool {
	return slices.ContainsFunc(h.handlers, func(handler HookHandler) bool { return handler.event == t || handler.event == "" })
}

// Handle calls the handlers for an event, if there are any, and returns their errors. A panic is not caught. A nil HookContext stands
// for the zero one. Tests of a hook call it.
func (h Hook) Handle(ctx context.Context, hc *HookContext, e Event) error {
	if err := h.Err(); err != nil {
		return err
	}
	if hc == nil {
		hc = &HookContext{}
	}
	var errs []error
	for _, wild := range []bool{false, true} {
		for _, handler := range h.handlers {
			if wild && handler.event == "" || !wild && handler.event == e.Type {
				own := e
				own.Data = slices.Clone(e.Data) // what one does to it, no other sees
				errs = append(errs, handler.run(ctx, hc, own))
			}
		}
	}
	return errors.Join(errs...)
}
