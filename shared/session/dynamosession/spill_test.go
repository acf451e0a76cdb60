package dynamosession_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/session"
)

// blobs counts what is stored.
type blobs struct {
	*memblob.Driver

	mu   sync.Mutex
	refs map[blob.Ref]bool
}

func (b *blobs) Put(ctx context.Context, ref blob.Ref, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refs[ref] = true
	return b.Driver.Put(ctx, ref, data)
}

func (b *blobs) Delete(ctx context.Context, ref blob.Ref) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.refs, ref)
	return b.Driver.Delete(ctx, ref)
}

func (b *blobs) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.refs)
}

// lose removes all that is stored.
func (b *blobs) lose(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for ref := range b.refs {
		if err := b.Driver.Delete(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	clear(b.refs)
}

// noise returns text that cannot be compressed much.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(' ' + 1 + r.IntN(90))
	}
	return string(text)
}

func TestWhatDataOfEachSizeCosts(t *testing.T) {
	t.Parallel()
	meter := &dynamotest.Transport{Meter: true}
	d := open(t, dynamotest.Start(t), meter)
	s := session.New(d, session.Options{})
	acc, err := s.Start(t.Context(), session.Start{Agent: "a", Owner: "o", Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Open(t.Context(), acc.SessionID, acc.TurnID)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Replay(t.Context(), 0, func(event.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		text  string
		units float64
		blobs int
	}{
		{"a short text", "short", 1, 0},
		{"as long as a unit takes", noise(700), 1, 0},
		{"a text of 8 kB", strings.Repeat("All checks have passed, and one reviewer has approved it. ", 140), 1, 0},
		{"8 kB of noise", noise(8 << 10), 8, 0},
		{"200 kB of noise", noise(200 << 10), 1, 1},
		{"the same again", noise(200 << 10), 1, 1},
		{"a million characters of four bytes", strings.Repeat("🌍", 1<<20) + noise(100<<10), 1, 2},
	} {
		meter.Counts()
		events, err := w.Append(t.Context(), event.MessageAppended{Text: tc.text})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if _, units := meter.Counts(); units["write"] != tc.units || d.blobs.count() != tc.blobs {
			t.Errorf("%s: got %v units and %d blobs, want %v and %d", tc.name, units["write"], d.blobs.count(), tc.units, tc.blobs)
		}
		got, err := d.Events(t.Context(), acc.SessionID, events[0].Index, 10)
		if err != nil || !reflect.DeepEqual(events, got) {
			t.Errorf("%s: not read back as it was: %v", tc.name, err)
		}
		taken, ok := errors.AsType[*session.ConflictError](d.Commit(t.Context(), session.Batch{
			SessionID: acc.SessionID, At: events[0].Index, Events: []event.Event{{SessionID: acc.SessionID, Index: events[0].Index, ID: "other", At: events[0].At}},
		}))
		events[0].Data = nil
		if !ok || !reflect.DeepEqual(events[0], taken.Event) {
			t.Errorf("%s: the conflict does not tell what stands there", tc.name)
		}
	}
	page, err := d.Events(t.Context(), acc.SessionID, 0, 100)
	if err != nil || len(page) != 8 { // the last alone is larger than a page
		t.Errorf("got a page of %d events, %v, want 8", len(page), err)
	}
}

func TestPurgeRemovesWhatBelongsToASession(t *testing.T) {
	t.Parallel()
	d := open(t, dynamotest.Start(t), &dynamotest.Transport{})
	ctx := t.Context()
	for _, id := range []string{"s1", "s2"} {
		var all []event.Event
		for i := range 60 {
			text := "x"
			if i == 7 {
				text = noise(50 << 10) // the same in both sessions
			}
			e := event.New("", event.MessageAppended{Text: text})
			e.SessionID, e.ID, e.Index, e.At = id, strings.Repeat("x", i+1), int64(i), time.UnixMilli(0).UTC()
			all = append(all, e)
		}
		row := &session.Record{ID: id, Agent: "a", Owner: "o"}
		if err := d.Commit(ctx, session.Batch{SessionID: id, Events: all, Row: row}); err != nil {
			t.Fatal(err)
		}
		for _, next := range []int64{3, 5, 4} { // the last comes too late
			if err := d.PutSnapshot(ctx, id, session.Snapshot{Next: next, Data: []byte("the same")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := d.blobs.count(); got != 4 {
		t.Errorf("got %d blobs, want an event and a snapshot of each session", got)
	}
	if err := d.Purge(ctx, "s1", ""); bdkerr.CodeOf(err) != bdkerr.Conflict {
		t.Errorf("a session that exists: got error %v, want a conflict", err)
	}
	removed := d.removeRow(t, "s1")
	for range 2 {
		if err := d.Purge(ctx, "s1", removed); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]int{"s1": 0, "s2": 60} {
		if left, err := d.Events(ctx, id, 0, 100); err != nil || len(left) != want {
			t.Errorf("%s has %d events, %v, want %d", id, len(left), err, want)
		}
	}
	if got := d.blobs.count(); got != 2 {
		t.Errorf("got %d blobs, want those of the other session", got)
	}
	if snap, err := d.Snapshot(ctx, "s2"); err != nil || string(snap.Data) != "the same" {
		t.Errorf("the other session's snapshot: %q, %v", snap.Data, err)
	}
}
