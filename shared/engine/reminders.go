package engine

import (
	"context"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/reminder"
	"github.com/bdk-lambda/bdk/shared/session"
)

// reminders are those of one session.
type reminders struct {
	store   *reminder.Store
	session bdk.SessionInfo
}

var _ bdk.Reminders = (*reminders)(nil)

// remindersOf returns the reminders of a session, nil if none are kept.
func (e *Engine) remindersOf(s bdk.SessionInfo) bdk.Reminders {
	if e.deps.Reminders == nil {
		return nil
	}
	return &reminders{e.deps.Reminders, s}
}

// Create implements [bdk.Reminders].
func (r *reminders) Create(ctx context.Context, in bdk.Reminder) (bdk.ReminderRecord, error) {
	switch {
	case r.session.DryRun:
		return bdk.ReminderRecord{}, bdk.ErrDryRun
	case r.session.Mode == string(session.Task):
		return bdk.ReminderRecord{}, bdkerr.New(bdkerr.SessionClosed, "a task session ends with its turn: it cannot be reminded of anything")
	}
	return r.store.Create(ctx, r.session.ID, r.session.Owner, in)
}

// List implements [bdk.Reminders].
func (r *reminders) List(ctx context.Context) ([]bdk.ReminderRecord, error) {
	return r.store.List(ctx, r.session.ID)
}

// Cancel implements [bdk.Reminders].
func (r *reminders) Cancel(ctx context.Context, id string) error {
	if r.session.DryRun {
		return bdk.ErrDryRun
	}
	return r.store.Cancel(ctx, r.session.ID, id)
}

// Reminders returns the open reminders of all sessions, the next one first, at most limit of them.
func (e *Engine) Reminders(ctx context.Context, limit int) ([]bdk.ReminderRecord, error) {
	if e.deps.Reminders == nil {
		return []bdk.ReminderRecord{}, nil
	}
	return e.deps.Reminders.All(ctx, limit)
}

// Remind sends a reminder now, see [reminder.Store.Fire].
func (e *Engine) Remind(ctx context.Context, id string) error {
	if e.deps.Reminders == nil {
		return bdk.ErrNotFound
	}
	return e.deps.Reminders.Fire(ctx, id, e.remind)
}

// RemindDue sends the reminders that are due at a time, as far as their sessions are idle.
func (e *Engine) RemindDue(ctx context.Context, at time.Time) error {
	if e.deps.Reminders == nil {
		return nil
	}
	_, err := e.deps.Reminders.FireDue(ctx, at, e.remind)
	return err
}

// RunReminders sends reminders at their times, until ctx ends.
func (e *Engine) RunReminders(ctx context.Context) {
	if e.deps.Reminders != nil {
		e.deps.Reminders.Run(ctx, e.remind)
	}
}

// remind sends a reminder to its session.
func (e *Engine) remind(ctx context.Context, r bdk.ReminderRecord, owner string) error {
	row, err := e.deps.Sessions.Get(ctx, r.SessionID)
	if err == nil && row.Agent != e.project.Slug {
		err = bdkerr.New(bdkerr.NotFound, "no session %q of the agent", r.SessionID)
	}
	if err != nil {
		return err
	}
	_, err = e.Send(ctx, session.Message{
		SessionID: r.SessionID, Owner: owner, Text: r.Message, Inside: true, Key: session.RequestKey{Name: r.ID, Body: []byte(r.ID)},
	})
	return err
}
