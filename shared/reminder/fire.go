package reminder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/kv"
)

// Look is how often [Store.Run] looks for reminders of other processes, and tries again those whose sessions were busy.
const Look = 5 * time.Second

// Send sends a reminder to its session as owner, once for each id however often it is called. The error is bdkerr.SessionBusy while a turn of
// the session is active, and bdkerr.NotFound, SessionClosed or Forbidden if the session cannot be sent anything any more.
type Send func(ctx context.Context, r bdk.ReminderRecord, owner string) error

// Fire sends a reminder, whatever its time is. The error is bdkerr.SessionBusy if that has to wait, because a turn of the session is
// active, and a bdk.ErrNotFound if there is no such reminder, or its session cannot be sent anything any more.
func (s *Store) Fire(ctx context.Context, id string, send Send) error {
	e, err := s.get(ctx, id)
	if err != nil {
		return err
	}
	return s.fire(ctx, e, send)
}

// fire sends a reminder. While it is tried, nobody can cancel it.
func (s *Store) fire(ctx context.Context, e entry, send Send) error {
	if !e.Sending {
		e.Sending = true
		err := s.put(ctx, e)
		if err == nil {
			e, err = s.get(ctx, e.ID)
		}
		switch {
		case errors.Is(err, kv.ErrVersion):
			return bdkerr.New(bdkerr.SessionBusy, "the reminder %s is being sent", e.ID)
		case err != nil:
			return err
		}
	}
	err := send(ctx, e.ReminderRecord, e.Owner)
	switch code := bdkerr.CodeOf(err); {
	case code == bdkerr.NotFound || code == bdkerr.SessionClosed || code == bdkerr.Forbidden:
		s.opts.Log.WarnContext(ctx, "reminder dropped", slog.String("reminder_id", e.ID), slog.String("session_id", e.SessionID), slog.Any("error", err))
		err = fmt.Errorf("reminder %s: %w: %w", e.ID, bdk.ErrNotFound, err)
	case err != nil:
		e.Sending = false
		if perr := s.put(context.WithoutCancel(ctx), e); perr != nil && !errors.Is(perr, kv.ErrVersion) {
			return errors.Join(err, perr)
		}
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, s.entries.Delete(ctx, s.key(e.ID), 0), s.delist(ctx, e))
}

// FireDue sends the reminders that are due at a time. Those that cannot be sent yet stay for the next call. It returns the time
// of the first one that is not due, the zero time if there is none, and the last error.
func (s *Store) FireDue(ctx context.Context, now time.Time, send Send) (next time.Time, err error) {
	var last error
	err = s.each(ctx, func(e entry) (bool, error) {
		if e.At.After(now) {
			next = e.At
			return false, nil
		}
		err := s.fire(ctx, e, send)
		if err != nil && bdkerr.CodeOf(err) != bdkerr.SessionBusy && !errors.Is(err, bdk.ErrNotFound) {
			last = err
		}
		return true, ctx.Err()
	})
	return next, errors.Join(err, last)
}

// Run sends the reminders at their times, until ctx ends.
func (s *Store) Run(ctx context.Context, send Send) {
	for {
		now := s.opts.Clock.Now()
		next, err := s.FireDue(ctx, now, send)
		if err != nil && ctx.Err() == nil {
			s.opts.Log.WarnContext(ctx, "reminders wait", slog.Any("error", err))
		}
		wait := Look
		if !next.IsZero() {
			wait = min(wait, next.Sub(s.opts.Clock.Now()))
		}
		due, stop := s.opts.Clock.After(max(wait, time.Millisecond))
		select {
		case <-due:
		case <-s.poke:
		case <-ctx.Done():
			stop()
			return
		}
		stop()
	}
}
