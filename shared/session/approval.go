package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
)

// Approval is a call of the active turn that a person was asked about. It stays with the turn when it is decided.
type Approval struct {
	CallID    string    `json:"callId"`
	ToolName  string    `json:"toolName"`
	Index     int64     `json:"index"` // of the event that asks
	ExpiresAt time.Time `json:"expiresAt"`
	Decision  string    `json:"decision,omitempty"` // event.Approve, event.Deny or event.Expired; "" while it waits
	By        string    `json:"by,omitempty"`       // the principal who decided
	Note      string    `json:"note,omitempty"`
}

// Pending returns the approvals that are not decided.
func (t Turn) Pending() []Approval {
	return slices.DeleteFunc(slices.Clone(t.Approvals), func(a Approval) bool { return a.Decision != "" })
}

// with returns t with one of its approvals changed. Rows share their approvals, which are never changed in place.
func (t Turn) with(a Approval) Turn {
	t.Approvals = slices.Clone(t.Approvals)
	i := slices.IndexFunc(t.Approvals, func(old Approval) bool { return old.CallID == a.CallID })
	t.Approvals[i] = a
	return t
}

// Decision is what a person says about a call.
type Decision struct {
	SessionID, CallID string
	Decision          string // event.Approve or event.Deny
	By                string // the principal
	Note              string // for the model; "" for none

	// May returns why By may not decide about an approval, nil if it may. It is asked about the approval that the decision would be
	// recorded for; of one of a turn that is over, or of a call that is done, ToolName is not known. Nil: everybody may.
	May func(Approval) error
}

// Decided is what a call's approval came to.
type Decided struct {
	Approval Approval
	TurnID   string   // the turn that waits for it, or did; "" if it is over
	Again    bool     // it was decided so before
	Woken    bool     // the turn was parked and is held by this store now
	Waited   []string // what the turn waited for: this call, and those that are still not decided
}

// Decide records a decision, once: the same again, by whoever, is answered as the first was. A turn that is parked becomes one of
// this store's holder. It fails with bdkerr.NotFound for a call that never waited, and with bdkerr.Decided if it was decided
// otherwise, has expired, or was cancelled.
func (s *Store) Decide(ctx context.Context, in Decision) (Decided, error) {
	var out Decided
	err := s.amend(ctx, in.SessionID, func(row Record) (func(int64) Batch, error) {
		i := slices.IndexFunc(row.Turn.Approvals, func(a Approval) bool { return a.CallID == in.CallID })
		if i < 0 {
			past, err := s.pastApproval(ctx, row.ID, in.CallID)
			if err == nil {
				err = in.check(past, s.now())
			}
			out = Decided{Approval: past, Again: true}
			return nil, err
		}
		a := row.Turn.Approvals[i]
		out = Decided{Approval: a, TurnID: row.Turn.ID, Again: true, Waited: []string{a.CallID}}
		if err := in.check(a, s.now()); err != nil || a.Decision != "" {
			return nil, err
		}
		a.Decision, a.By, a.Note = in.Decision, in.By, in.Note
		next := row
		next.Turn = row.Turn.with(a)
		if row.Turn.Parked {
			next.Turn = s.hold(next.Turn)
		}
		out.Approval, out.Again, out.Woken = a, false, row.Turn.Parked
		out.Waited = nil
		for _, p := range row.Turn.Pending() {
			out.Waited = append(out.Waited, p.CallID)
		}
		return func(at int64) Batch {
			b := s.batch(row.ID, at, event.New(row.Turn.ID, a.resolved()))
			next.Next = at + 1
			b.Row = &next
			return b
		}, nil
	})
	if err != nil {
		return Decided{}, err
	}
	return out, nil
}

func (a Approval) resolved() event.ApprovalResolved {
	return event.ApprovalResolved{CallID: a.CallID, Decision: a.Decision, By: a.By, Note: a.Note}
}

// check returns why a decision may not be made, or comes too late; nil if neither is so or it is the one that was made.
func (in Decision) check(a Approval, now time.Time) error {
	if in.May != nil {
		if err := in.May(a); err != nil {
			return err
		}
	}
	switch {
	case a.Decision == in.Decision:
		return nil
	case a.Decision == event.Expired || a.Decision == "" && !now.Before(a.ExpiresAt):
		return bdkerr.New(bdkerr.Decided, "nobody decided about call %q in time, it was not executed", in.CallID)
	case a.Decision == event.Cancelled:
		return bdkerr.New(bdkerr.Decided, "the turn of call %q was stopped before anybody decided, it was not executed", in.CallID)
	case a.Decision != "":
		return bdkerr.New(bdkerr.Decided, "call %q was decided before: %s, by %s", in.CallID, a.Decision, a.By)
	}
	return nil
}

// pastApproval finds in the log what became of a call of a turn that is over, or bdkerr.NotFound.
func (s *Store) pastApproval(ctx context.Context, id, callID string) (Approval, error) {
	c := Cursor{store: s, id: id}
	var found Approval
	for {
		events, err := c.Read(ctx)
		if err != nil {
			return Approval{}, err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if e.Type != event.TypeApprovalResolved {
				continue
			}
			d, err := event.Decode[event.ApprovalResolved](e)
			if err != nil {
				return Approval{}, fmt.Errorf("reading event %d of session %s: %w", e.Index, id, err)
			}
			if d.CallID == callID {
				found = Approval{CallID: callID, Index: e.Index, Decision: d.Decision, By: d.By, Note: d.Note}
			}
		}
	}
	if found.CallID == "" {
		return Approval{}, bdkerr.New(bdkerr.NotFound, "no call %q waits for approval in session %q", callID, id)
	}
	return found, nil
}

// cancelled returns the events that end the waits of a turn.
func (t Turn) cancelled() []event.Event {
	var events []event.Event
	for _, a := range t.Pending() {
		events = append(events, event.New(t.ID, event.ApprovalResolved{CallID: a.CallID, Decision: event.Cancelled}))
	}
	return events
}

// Ask records that calls wait for approval, in the log and in the session's row. Of the approvals in the row those of open calls
// stay, others are in the log.
func (w *Writer) Ask(ctx context.Context, open []string, asked ...event.ApprovalRequested) ([]event.Event, error) {
	events := make([]event.Event, len(asked))
	for i, a := range asked {
		events[i] = event.New(w.turnID, a)
	}
	return w.amend(ctx, func(at int64) Batch {
		b := w.store.batch(w.row.ID, at, events...)
		row := w.row
		row.Turn.Approvals = slices.DeleteFunc(slices.Clone(row.Turn.Approvals), func(a Approval) bool { return !slices.Contains(open, a.CallID) })
		for i, a := range asked {
			row.Turn.Approvals = append(row.Turn.Approvals, Approval{CallID: a.CallID, ToolName: a.ToolName, Index: at + int64(i), ExpiresAt: a.ExpiresAt})
		}
		b.Row = &row
		return b
	})
}

// Expire ends the waits of calls: nobody decided in time. Those that were decided meanwhile stay as they are, which [Writer.Row] shows.
func (w *Writer) Expire(ctx context.Context, callIDs ...string) ([]event.Event, error) {
	return w.amend(ctx, func(at int64) Batch {
		row := w.row
		var events []event.Event
		for _, a := range w.row.Turn.Pending() {
			if slices.Contains(callIDs, a.CallID) {
				a.Decision = event.Expired
				row.Turn = row.Turn.with(a)
				events = append(events, event.New(w.turnID, a.resolved()))
			}
		}
		b := w.store.batch(row.ID, at, events...)
		b.Row = &row
		return b
	})
}

// Park leaves the turn to whoever decides about its calls, or finds that they have expired. It reports false if the row was changed
// since the writer saw it: then [Writer.Row] shows the new one, and the turn is still the writer's. After a true, the writer
// returns ErrFenced.
func (w *Writer) Park(ctx context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fenced {
		return false, ErrFenced
	}
	row := w.row
	row.Turn.Parked, row.Turn.Holder, row.Turn.Until = true, "", time.Time{}
	err := w.store.commit(ctx, Batch{SessionID: row.ID, Row: &row})
	if err == nil {
		w.fenced = true
		return true, nil
	}
	if err := w.reload(ctx, err); err != nil {
		return false, err
	}
	if w.fenced {
		return false, ErrFenced
	}
	return false, nil
}

// amend writes events together with the session's row. A batch without events is not written.
func (w *Writer) amend(ctx context.Context, batch func(at int64) Batch) ([]event.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var row Record
	events, err := w.write(ctx, func(at int64) Batch {
		b := batch(at)
		b.Row.Next = at + int64(len(b.Events))
		row = *b.Row
		return b
	})
	if err == nil && len(events) > 0 {
		w.row = row
		w.row.Version++
	}
	return events, err
}
