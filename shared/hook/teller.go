package hook

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

const (
	// attempts is how often an event is told to a subscriber with Retry; the pauses double from firstPause on, to three minutes in all.
	attempts   = 8
	firstPause = 1500 * time.Millisecond
)

// Options of a [Dispatcher] and a [Receiver]. Those without a default are required.
type Options struct {
	Sessions func() *session.Store // where events are read again
	Cursors  *Cursors              // a Dispatcher without subscribers with Retry needs none
	Clock    clock.Clock           // default: the system clock
	Log      *slog.Logger
}

// teller tells subscribers single events.
type teller struct {
	Options

	claim bool // others may be told the same to tell, more than once
}

func (t teller) clock() clock.Clock {
	if t.Clock == nil {
		return clock.System{}
	}
	return t.Clock
}

// tell tells one event, as often as the subscriber wants. The error is that of a cursor that cannot be used, or of the end of ctx.
func (t teller) tell(ctx context.Context, sub Subscriber, e event.Event) error {
	log := t.Log.With(slog.String("subscriber", sub.Name), slog.String("session_id", e.SessionID), slog.Int64("index", e.Index))
	if due, err := t.due(ctx, sub, e); err != nil || !due {
		return err
	}
	for pause, n := firstPause, 1; ; pause, n = 2*pause, n+1 {
		err := t.try(ctx, sub, e)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && sub.Retry && n < attempts:
			log.WarnContext(ctx, "an event was not told: it is tried again", slog.Any("error", err))
			if err := clock.Sleep(ctx, t.clock(), pause); err != nil {
				return err
			}
			continue
		case err != nil:
			log.ErrorContext(ctx, "an event was not told: it is skipped", slog.Any("error", err), slog.Int("attempts", n))
		}
		if sub.Retry {
			_, err = t.Cursors.Advance(ctx, sub.Name, e.SessionID, e.Index)
			return err
		}
		return nil
	}
}

// due reports whether an event is still to be told.
func (t teller) due(ctx context.Context, sub Subscriber, e event.Event) (bool, error) {
	switch {
	case sub.Retry:
		at, err := t.Cursors.At(ctx, sub.Name, e.SessionID)
		return at < e.Index, err
	case t.claim:
		return t.Cursors.Advance(ctx, sub.Name, e.SessionID, e.Index)
	}
	return true, nil
}

// try tells one event once.
func (t teller) try(ctx context.Context, sub Subscriber, e event.Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if e.Data == nil {
		if e, err = t.read(ctx, e.SessionID, e.Index); err != nil {
			return err
		}
	}
	return sub.Handle(ctx, e)
}

// read returns one event of a session.
func (t teller) read(ctx context.Context, id string, index int64) (event.Event, error) {
	c := t.Sessions().Cursor(id, index)
	defer c.Close()
	events, err := c.Read(ctx)
	if err == nil && len(events) == 0 {
		err = fmt.Errorf("session %s has no event %d", id, index)
	}
	if err != nil {
		return event.Event{}, err
	}
	return events[0], nil
}
