// Package memsession keeps sessions in memory: for tests, and for agents whose conversations may end with their process.
package memsession

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Driver implements [session.Driver] and [session.Expirer]. Every operation is atomic. Listing takes time in proportion to
// the number of sessions.
type Driver struct {
	mu       sync.RWMutex
	sessions map[string]*entry
	keys     map[string]session.Key
	made     int64 // sessions so far
}

type entry struct {
	row    session.Record
	seq    int64 // orders sessions with the same time of update
	events []event.Event
	snap   session.Snapshot
}

// New returns an empty store.
func New() *Driver {
	return &Driver{sessions: make(map[string]*entry), keys: make(map[string]session.Key)}
}

// Get implements [session.Driver].
func (d *Driver) Get(_ context.Context, id string) (session.Record, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if s := d.sessions[id]; s != nil {
		return s.row, nil
	}
	return session.Record{}, session.ErrNotFound
}

// Commit implements [session.Driver]. A batch that would leave a hole in the log is refused.
func (d *Driver) Commit(_ context.Context, b session.Batch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[b.SessionID]
	if s == nil {
		s = &entry{seq: d.made + 1}
	}
	if taken := s.at(b.At); taken != nil && len(b.Events) > 0 && taken.ID == b.Events[0].ID {
		return nil
	}
	if err := d.check(s, b); err != nil {
		return err
	}
	if b.Row != nil {
		if b.Row.Version == 0 {
			d.made++
			d.sessions[b.SessionID] = s
		}
		s.row = *b.Row
		s.row.Version++
	}
	if b.Key != nil {
		key := *b.Key
		key.Answer = bytes.Clone(key.Answer)
		d.keys[key.Name] = key
	}
	s.events = append(s.events, b.Events...)
	return nil
}

// check returns why b cannot be committed to s.
func (d *Driver) check(s *entry, b session.Batch) error {
	if b.Key != nil {
		if k, ok := d.keys[b.Key.Name]; ok && k.ExpiresAt.After(b.Events[0].At) {
			return &session.KeyError{Key: k}
		}
	}
	switch taken := s.at(b.At); {
	case b.Row != nil && b.Row.Version != s.row.Version:
		return session.ErrStale
	case b.Row == nil && s.row.Version == 0:
		return session.ErrNotFound
	case len(b.Events) == 0:
		return nil
	case taken != nil:
		return &session.ConflictError{Event: *taken}
	case b.At != int64(len(s.events)):
		return fmt.Errorf("committing to session %s: index %d is not the next, %d is", b.SessionID, b.At, len(s.events))
	}
	return nil
}

// at returns the event at an index, nil if there is none.
func (s *entry) at(index int64) *event.Event {
	if index < 0 || index >= int64(len(s.events)) {
		return nil
	}
	return &s.events[index]
}

// Events implements [session.Driver].
func (d *Driver) Events(_ context.Context, id string, from int64, limit int) ([]event.Event, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	s := d.sessions[id]
	if s == nil || from >= int64(len(s.events)) {
		return nil, nil
	}
	page := s.events[max(from, 0):]
	return slices.Clone(page[:min(len(page), limit)]), nil
}

// List implements [session.Driver].
func (d *Driver) List(_ context.Context, q session.Query) ([]session.Record, string, error) {
	after, err := decode(q)
	if err != nil {
		return nil, "", err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	var page []*entry
	for _, s := range d.sessions {
		if s.matches(q) && (after == nil || order(q)(after, s) < 0) {
			page = append(page, s)
		}
	}
	slices.SortFunc(page, order(q))
	next := ""
	if len(page) > q.Limit {
		page = page[:q.Limit]
		next = encode(q, page[q.Limit-1])
	}
	rows := make([]session.Record, len(page))
	for i, s := range page {
		rows[i] = s.row
	}
	return rows, next, nil
}

func (s *entry) matches(q session.Query) bool {
	return s.row.Agent == q.Agent && (q.All || q.Active && s.row.Turn.ID != "" || q.Owner != "" && s.row.Owner == q.Owner)
}

// order compares entries by their place in the list: newest update first, active sessions by age.
func order(q session.Query) func(a, b *entry) int {
	if q.Active {
		return func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) }
	}
	return func(a, b *entry) int {
		return cmp.Or(b.row.UpdatedAt.Compare(a.row.UpdatedAt), cmp.Compare(b.seq, a.seq))
	}
}

func encode(q session.Query, s *entry) string {
	return session.EncodeCursor(q, strconv.FormatInt(s.row.UpdatedAt.UnixMilli(), 10)+"."+strconv.FormatInt(s.seq, 10))
}

// decode returns an entry with the place of the cursor, nil for the first page.
func decode(q session.Query) (*entry, error) {
	place, err := session.DecodeCursor(q)
	if place == "" {
		return nil, err
	}
	updated, seq, _ := strings.Cut(place, ".")
	millis, err := strconv.ParseInt(updated, 10, 64)
	if err != nil {
		return nil, session.BadCursor()
	}
	after := &entry{row: session.Record{UpdatedAt: time.UnixMilli(millis)}}
	if after.seq, err = strconv.ParseInt(seq, 10, 64); err != nil {
		return nil, session.BadCursor()
	}
	return after, nil
}

// PutSnapshot implements [session.Driver].
func (d *Driver) PutSnapshot(_ context.Context, id string, snap session.Snapshot) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[id]
	if s == nil {
		return session.ErrNotFound
	}
	if snap.Next >= s.snap.Next {
		s.snap = session.Snapshot{Next: snap.Next, Data: bytes.Clone(snap.Data)}
	}
	return nil
}

// Snapshot implements [session.Driver].
func (d *Driver) Snapshot(_ context.Context, id string) (session.Snapshot, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if s := d.sessions[id]; s != nil {
		return session.Snapshot{Next: s.snap.Next, Data: bytes.Clone(s.snap.Data)}, nil
	}
	return session.Snapshot{}, nil
}

// Key implements [session.Driver].
func (d *Driver) Key(_ context.Context, name string) (session.Key, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	k, ok := d.keys[name]
	if !ok {
		return session.Key{}, session.ErrNotFound
	}
	k.Answer = bytes.Clone(k.Answer)
	return k, nil
}

// Expire implements [session.Expirer].
func (d *Driver) Expire(_ context.Context, now time.Time, limit int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.sessions) + len(d.keys)
	left := limit
	maps.DeleteFunc(d.sessions, func(_ string, s *entry) bool { return gone(s.row.ExpiresAt, now, &left) })
	left = limit
	maps.DeleteFunc(d.keys, func(_ string, k session.Key) bool { return gone(k.ExpiresAt, now, &left) })
	return before - len(d.sessions) - len(d.keys), nil
}

// gone reports whether what expires at the given time is to be removed, and counts it.
func gone(at, now time.Time, left *int) bool {
	if *left <= 0 || at.IsZero() || at.After(now) {
		return false
	}
	*left--
	return true
}
