package session

import (
	"context"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
)

// Record appends events beside the turns of a session, in one step, under turnID, which is no turn of the session. With a version
// that is not 0 they are recorded only if the row is still the one with that version, and no turn is active: otherwise the error is
// bdkerr.SessionBusy or, without a turn, ErrStale, and nothing is recorded. It returns the version of the row afterwards, 0 if none was given.
func (s *Store) Record(ctx context.Context, id, turnID string, version int64, data ...event.Data) (int64, error) {
	events := make([]event.Event, len(data))
	for i, d := range data {
		events[i] = event.New(turnID, d)
	}
	err := s.amend(ctx, id, func(row Record) (func(int64) Batch, error) {
		switch {
		case version != 0 && row.Turn.ID != "":
			return nil, bdkerr.New(bdkerr.SessionBusy, "session %q has an active turn: wait for its end, or stop it", id)
		case version != 0 && row.Version != version:
			return nil, ErrStale
		}
		return func(at int64) Batch {
			b := s.batch(id, at, events...)
			if version != 0 {
				row.Next = at + int64(len(events))
				b.Row = &row
			}
			return b
		}, nil
	})
	if err != nil || version == 0 {
		return 0, err
	}
	return version + 1, nil
}
