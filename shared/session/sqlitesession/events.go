package sqlitesession

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/session"
)

const (
	insertEvent  = `INSERT INTO session_events(key, id, type, turn, at, data) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO NOTHING`
	selectEvents = `SELECT key & 0xffffffff, id, type, turn, at, data FROM session_events
WHERE key >= (SELECT no << 32 FROM sessions WHERE id = ?1) + ?2 AND key < (SELECT (no + 1) << 32 FROM sessions WHERE id = ?1)
ORDER BY key LIMIT ?3`
)

// eventKey returns the key of an event. A session holds up to 2^32 events, a file up to 2^31 sessions.
func eventKey(no, index int64) int64 { return no<<32 + index }

// errOwn says that an earlier try of the same call wrote the batch.
var errOwn = errors.New("the batch is there already")

// Commit implements [session.Driver].
func (d *Driver) Commit(ctx context.Context, b session.Batch) error {
	if b.At < 0 || b.At+int64(len(b.Events)) > math.MaxUint32 {
		return fmt.Errorf("committing to session %s: no event can have index %d", b.SessionID, b.At)
	}
	err := d.db.Write(ctx, mustLast(b), func(tx *sqlitex.Tx) error {
		err := d.apply(tx, b)
		if err != nil && len(b.Events) > 0 {
			there, found, lookup := d.at(tx, b.SessionID, b.At)
			switch {
			case lookup != nil:
				return errors.Join(err, lookup)
			case found && there.ID == b.Events[0].ID:
				return errOwn // undoes what was applied
			}
		}
		return err
	})
	if errors.Is(err, errOwn) {
		return nil
	}
	return err
}

// mustLast reports whether a loss of power must not undo b: all but what a turn writes anew when it is resumed.
func mustLast(b session.Batch) bool {
	return slices.ContainsFunc(b.Events, func(e event.Event) bool {
		switch e.Type {
		case event.TypeTurnStarted, event.TypeStepRestarted, event.TypeMessageAppended, event.TypeReasoningAppended:
			return b.Row != nil
		default:
			return true
		}
	})
}

func (d *Driver) apply(tx *sqlitex.Tx, b session.Batch) error {
	if b.Key != nil {
		if err := putKey(tx, *b.Key, b.Events[0].At); err != nil {
			return err
		}
	}
	no, err := number(tx, b)
	if err != nil {
		return err
	}
	for _, e := range b.Events {
		n, err := tx.Exec(insertEvent, eventKey(no, e.Index), e.ID, string(e.Type), e.TurnID, e.At.UnixMilli(), []byte(e.Data))
		if err != nil {
			return err
		}
		if n == 0 {
			there, _, err := d.at(tx, b.SessionID, e.Index)
			if err != nil {
				return err
			}
			return &session.ConflictError{Event: there}
		}
	}
	return nil
}

// number returns the number of the batch's session, after storing the row if there is one.
func number(tx *sqlitex.Tx, b session.Batch) (no int64, err error) {
	if b.Row != nil {
		return putRow(tx, *b.Row)
	}
	err = tx.QueryRow(`SELECT no FROM sessions WHERE id = ?`, b.SessionID).Scan(&no)
	if errors.Is(err, sqlitex.ErrNoRows) {
		return 0, session.ErrNotFound
	}
	return no, err
}

// at returns the event at an index, if there is one.
func (d *Driver) at(tx *sqlitex.Tx, id string, index int64) (event.Event, bool, error) {
	p := page{id: id, types: d.types}
	err := tx.Query(selectEvents, p.add, id, index, 1)
	if err != nil || len(p.events) == 0 || p.events[0].Index != index {
		return event.Event{}, false, err
	}
	return p.events[0], true, nil
}

// Events implements [session.Driver].
func (d *Driver) Events(ctx context.Context, id string, from int64, limit int) ([]event.Event, error) {
	p := page{id: id, types: d.types}
	if err := d.db.Query(ctx, selectEvents, p.add, id, max(from, 0), limit); err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	return p.events, nil
}

const (
	maxPage  = 1 << 20 // bytes of data in a page, if it holds more than one event
	minChunk = 1 << 10
	maxChunk = 1 << 15
)

var errFull = errors.New("the page is full")

// page collects events with few allocations: their data shares buffers.
type page struct {
	id     string
	types  map[string]event.Type
	events []event.Event
	size   int
	chunk  []byte // what is left of the last buffer
	next   int    // size of the next one
}

func (p *page) add(row sqlitex.Row) error {
	data := row.Raw(5)
	p.size += len(data)
	if len(p.events) > 0 && p.size > maxPage {
		return errFull
	}
	e := event.Event{Index: row.Int(0), SessionID: p.id, At: time.UnixMilli(row.Int(4)).UTC(), Data: p.keep(data), ID: row.Text(1)}
	raw := row.Raw(2)
	if e.Type = p.types[string(raw)]; e.Type == "" {
		e.Type = event.Type(raw)
	}
	raw = row.Raw(3)
	if n := len(p.events); n > 0 && p.events[n-1].TurnID == string(raw) {
		e.TurnID = p.events[n-1].TurnID
	} else {
		e.TurnID = string(raw)
	}
	p.events = append(p.events, e)
	return nil
}

// keep returns a copy of b.
func (p *page) keep(b []byte) []byte {
	if len(b) > len(p.chunk) {
		if len(b) > maxChunk/4 {
			return append([]byte(nil), b...)
		}
		p.next = min(max(2*p.next, minChunk, len(b)), maxChunk)
		p.chunk = make([]byte, p.next)
	}
	n := copy(p.chunk, b)
	kept := p.chunk[:n:n]
	p.chunk = p.chunk[n:]
	return kept
}

// PutSnapshot implements [session.Driver].
func (d *Driver) PutSnapshot(ctx context.Context, id string, s session.Snapshot) error {
	return d.db.Write(ctx, false, func(tx *sqlitex.Tx) error {
		no, err := number(tx, session.Batch{SessionID: id})
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO session_snapshots(session, next, data) VALUES(?, ?, ?)
ON CONFLICT(session) DO UPDATE SET next = excluded.next, data = excluded.data WHERE excluded.next >= next`, no, s.Next, s.Data)
		return err
	})
}

// Snapshot implements [session.Driver].
func (d *Driver) Snapshot(ctx context.Context, id string) (session.Snapshot, error) {
	var s session.Snapshot
	err := d.db.Query(ctx, `SELECT next, data FROM session_snapshots WHERE session = (SELECT no FROM sessions WHERE id = ?)`,
		func(row sqlitex.Row) error { return row.Scan(&s.Next, &s.Data) }, id)
	return s, err
}

const selectKey = `SELECT name, body_hash, answer, expires FROM session_keys WHERE name = ?`

// putKey stores a key, or returns a KeyError if it is taken at the given time.
func putKey(tx *sqlitex.Tx, k session.Key, now time.Time) error {
	n, err := tx.Exec(`INSERT INTO session_keys(name, body_hash, answer, expires) VALUES(?1, ?2, ?3, ?4)
ON CONFLICT(name) DO UPDATE SET body_hash = ?2, answer = ?3, expires = ?4 WHERE expires <= ?5`,
		k.Name, k.BodyHash, k.Answer, k.ExpiresAt.UnixMilli(), now.UnixMilli())
	if err != nil || n > 0 {
		return err
	}
	taken := &session.KeyError{}
	if err := tx.Query(selectKey, scanKey(&taken.Key), k.Name); err != nil {
		return err
	}
	return taken
}

func scanKey(k *session.Key) func(sqlitex.Row) error {
	return func(row sqlitex.Row) error {
		*k = session.Key{Name: row.Text(0), BodyHash: row.Text(1), Answer: row.Blob(2), ExpiresAt: scanTime(row, 3)}
		return nil
	}
}

// Key implements [session.Driver].
func (d *Driver) Key(ctx context.Context, name string) (session.Key, error) {
	var k session.Key
	err := d.db.Query(ctx, selectKey, scanKey(&k), name)
	if err == nil && k.Name == "" {
		err = session.ErrNotFound
	}
	return k, err
}
