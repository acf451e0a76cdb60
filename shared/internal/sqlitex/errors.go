package sqlitex

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Errors that callers tell apart with errors.Is. A database in use by another process and a full disk are [bdkerr.Unavailable].
var (
	// ErrNoRows is returned by [Result.Scan] when the query found nothing.
	ErrNoRows = errors.New("no rows")
	// ErrConstraint means that a row violates a constraint of its table, such as a primary key that exists.
	ErrConstraint = errors.New("constraint violated")
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("database is closed")
	// ErrNewer means that a newer program wrote the database; the text names it.
	ErrNewer = errors.New("database is of a newer program")
	// ErrBadFile means that the file is damaged or is no database of this program; the text names the file.
	ErrBadFile = errors.New("not a usable database file")

	errEnded = errors.New("the function ran COMMIT or ROLLBACK itself")
)

// wrap gives a driver error the meaning callers act on, and says which statement met it.
func (c *conn) wrap(err error, query string) error {
	if err == nil {
		return nil
	}
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return fmt.Errorf("running %q: %w", shorten(query), err)
	}
	//nolint:exhaustive // every other code is a plain fault
	switch code {
	case sqlite3.CONSTRAINT:
		return fmt.Errorf("%w: %w", ErrConstraint, err)
	case sqlite3.BUSY, sqlite3.LOCKED:
		return unavailable("the storage is in use by another process: retry later", fmt.Errorf("locking %s: %w", c.path, err))
	case sqlite3.FULL:
		return unavailable("the storage is full: free disk space and retry", fmt.Errorf("writing %s: %w", c.path, err))
	case sqlite3.CORRUPT, sqlite3.NOTADB:
		return fmt.Errorf("%w: %s: %w: restore it from a copy or move it away", ErrBadFile, c.path, err)
	}
	return fmt.Errorf("running %q: %w", shorten(query), err)
}

// interrupted replaces the driver's error for a query that ctx ended by the cause of that end.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, sqlite3.INTERRUPT) {
		return context.Cause(ctx)
	}
	return err
}

func shorten(query string) string {
	const limit = 120
	if len(query) > limit {
		return query[:limit] + "…"
	}
	return query
}
