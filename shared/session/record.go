package session

import (
	"context"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
)

// Record appends events beside the turns of a session, in one step, under turnID, which is no turn of the session. With idle set it
// fails with bdkerr.SessionBusy if a turn is active then, and records nothing.
func (s *Store) Record(ctx context.Context, id, turnID string, idle bool, data ...event.Data) error {
	events := make([]event.Event, len(data))
	for i, d := range data {
		events[i] = event.New(turnID, d)
	}
	return s.amend(ctx, id, func(row Record) (func(int64) Batch, error) {
		if idle && row.Turn.ID != "" {
			return nil, bdkerr.New(bdkerr.SessionBusy, "session %q has an active turn: wait for its end, or stop it", id)
		}
		return func(at int64) Batch {
			b := s.batch(id, at, events...)
			if idle {
				row.Next = at + int64(len(events))
				b.Row = &row
			}
			return b
		}, nil
	})
}
