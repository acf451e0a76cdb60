package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
)

// A Driver stores sessions. Adapters implement it and pass the suite in package sessiontest; everybody else uses [Store].
// Implementations are safe for concurrent use by many goroutines and, where the medium is shared, by many processes.
type Driver interface {
	// Get returns the row of a session, or ErrNotFound. It sees every commit that returned before it was called.
	Get(ctx context.Context, id string) (Record, error)

	// Commit makes one change of one session, all of it or nothing, and returns once it is durable.
	//
	// When an event with the ID of the batch's first event stands at Batch.At, an earlier try of the same call wrote the
	// batch: Commit succeeds and changes nothing. Otherwise it fails, and the first of these that applies is its error:
	//   - a *KeyError: Batch.Key is given and its name is taken by a key that expires after the batch's first event;
	//   - ErrStale: Batch.Row is given and the stored version is not Batch.Row.Version (0: no row exists);
	//   - ErrNotFound: Batch.Row is nil and there is no such session; a driver may look only if Batch.At is 0, as whoever tries
	//     another index knows that the one before is taken;
	//   - a *ConflictError: an event stands at the index of one of the batch's events.
	Commit(ctx context.Context, b Batch) error

	// Events returns events of a session in index order, from index from on, at most limit of them, none if there is no
	// such session. It may return fewer, but at least one if there is one at from. It may return events behind a
	// hole: the Store delivers only the contiguous run.
	Events(ctx context.Context, id string, from int64, limit int) ([]event.Event, error)

	// List returns rows that match q, see Query for the order, and the cursor of the next page, "" after the last.
	// While sessions change, no row comes twice in one order, and a row that did not change is not left out.
	// A cursor that List did not give out for the same selection is a bdkerr.InvalidRequest error, see [DecodeCursor].
	List(ctx context.Context, q Query) (rows []Record, next string, err error)

	// PutSnapshot replaces the snapshot of a session unless the stored one covers more events. It returns ErrNotFound if
	// there is no such session.
	PutSnapshot(ctx context.Context, id string, s Snapshot) error

	// Snapshot returns the latest snapshot of a session, the zero Snapshot if there is none.
	Snapshot(ctx context.Context, id string) (Snapshot, error)

	// Key returns what is stored under an idempotency key, or ErrNotFound.
	Key(ctx context.Context, name string) (Key, error)
}

// Expirer is implemented by drivers whose medium does not remove expired sessions by itself.
type Expirer interface {
	// Expire removes sessions, with all that belongs to them, and keys that expired at or before now, at most limit of each,
	// and returns how many it removed.
	Expire(ctx context.Context, now time.Time, limit int) (int, error)
}

// Header is implemented by drivers that need not read the data of an event to tell the rest of it. Where only that matters,
// a session can then be changed although the data of its events cannot be read.
type Header interface {
	// Heads does what Events does and leaves out the events' Data.
	Heads(ctx context.Context, id string, from int64, limit int) ([]event.Event, error)
}

// Record is the row of a session: what is known about it besides its events. Its times are in UTC and in whole milliseconds.
type Record struct {
	ID      string
	Version int64 // counts the changes of the row, 1 after creation; a commit names the version it read

	Agent   string // slug
	Owner   string // principal, see package auth
	Channel string // "http" for the built-in channel
	Mode    Mode
	Purpose string // "chat" or "eval"
	Title   string
	DryRun  bool      // write tools are answered without running them
	AsOf    time.Time // the frozen instant of the session; zero if it follows the clock
	Files   string    // blob reference of the workspace files the client gave; "" if none

	CreatedAt time.Time
	UpdatedAt time.Time // the last turn start or end; the order of listings
	ExpiresAt time.Time // zero: never; a session with an active turn never expires

	TokenHash string // SHA-256 of the continuation token, hex
	Turn      Turn   // the active turn; the zero Turn when none is
	Next      int64  // a lower bound of the next event index: all events below it are there
	Ended     string // "", or the type of the last event of a task session: completed or failed
}

// Status returns running, waiting, completed or failed.
func (r Record) Status() string {
	switch {
	case r.Ended != "":
		return r.Ended
	case r.Turn.ID != "":
		return "running"
	}
	return "waiting"
}

// Mode says what becomes of a session after a turn.
type Mode string

// The modes.
const (
	Chat Mode = "chat" // waits for a follow-up
	Task Mode = "task" // ends with its turn
)

// Turn is the active turn of a session and who runs it.
type Turn struct {
	ID     string
	Holder string    // the process that runs it, "" if nobody does
	Until  time.Time // when its lease ends

	Parked    bool       // nobody runs it until a person decides about one of its calls, or has not in time
	Approvals []Approval // the calls that persons were asked about, in that order; nil for none. Never changed in place
}

// A Batch is one atomic change of a session: events at consecutive indexes and, optionally, its row and an idempotency key.
type Batch struct {
	SessionID string
	At        int64         // index of the first event
	Events    []event.Event // complete: IDs, indexes and times (UTC, whole milliseconds) are set; may be empty if Row is given
	Row       *Record       // the new row; Version is the one that was read and is stored increased by one; nil leaves the row alone
	Key       *Key          // nil for none; only with Events
}

// A Key remembers the answer to a request, so that its repetition gets the same answer.
type Key struct {
	Name      string // unique for owner, route and client key
	BodyHash  string // SHA-256 of the request, hex
	Answer    []byte // what was answered
	ExpiresAt time.Time
}

// A Snapshot is derived state of a session up to an index, kept so that a turn need not read the whole log.
type Snapshot struct {
	Next int64  // the index of the first event that is not in it
	Data []byte // opaque to the store
}

// Query selects rows. Exactly one of Owner, Active and All is set.
type Query struct {
	Owner  string // sessions of this principal, newest update first
	All    bool   // every session, newest update first
	Active bool   // sessions with an active turn, in any order

	Agent  string // only sessions of this agent; required
	Cursor string // "" for the first page
	Limit  int    // rows in a page, 1 to 1000
}

// The faults of a driver that callers tell apart.
var (
	ErrNotFound = errors.New("session: not found")
	ErrStale    = errors.New("session: the row was changed by somebody else")
)

// ConflictError says that the log already holds another event where a batch wanted to begin.
type ConflictError struct {
	Event event.Event // what stands there; a driver may leave out its Data
}

// Error names the index.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("session: index %d already holds %s", e.Event.Index, e.Event.Type)
}

// KeyError says that an idempotency key was used before.
type KeyError struct {
	Key Key // what is stored
}

// Error names the key.
func (e *KeyError) Error() string { return "session: idempotency key was used before" }
