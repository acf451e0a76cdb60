package session

import (
	"context"
	"errors"
	"fmt"
)

// Claim makes the store's holder the one who runs the active turn of row, for one lease from now. Row must be as it was
// read: if it was changed since, somebody else was faster and Claim fails with ErrFenced, as it does without an active turn.
func (s *Store) Claim(ctx context.Context, row Record) error {
	if row.Turn.ID == "" {
		return ErrFenced
	}
	row.Turn = s.hold(row.Turn)
	err := s.driver.Commit(ctx, Batch{SessionID: row.ID, Row: &row})
	switch {
	case errors.Is(err, ErrStale):
		return ErrFenced
	case err != nil:
		return fmt.Errorf("claiming a turn of session %s: %w", row.ID, err)
	}
	return nil
}

// hold returns an active turn as one of the store's holder.
func (s *Store) hold(t Turn) Turn {
	held := s.lease(t.ID)
	held.Approvals = t.Approvals
	return held
}
