package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/bdk-lambda/bdk/shared/event"
)

// ErrFenced says that a turn was ended, or taken over, by somebody else: whoever runs it must stop at once.
var ErrFenced = errors.New("session: the turn was ended or is run by somebody else")

// Writer appends the events of one turn. It is safe for concurrent use. Once a method returned ErrFenced, all do for ever.
type Writer struct {
	store  *Store
	turnID string

	mu     sync.Mutex // guards what follows, and keeps appends in order
	row    Record
	next   int64
	loaded bool
	fenced bool
}

// Open returns the writer of an active turn, or ErrFenced if the turn is not the active one of its session.
// Replay or Skip must be called before the first append.
func (s *Store) Open(ctx context.Context, id, turnID string) (*Writer, error) {
	row, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if row.Turn.ID != turnID {
		return nil, ErrFenced
	}
	return &Writer{store: s, turnID: turnID, row: row}, nil
}

// Row returns the session's row as the writer last saw it.
func (w *Writer) Row() Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.row
}

// Replay calls yield for every event from index from on and leaves the writer behind the last. It returns ErrFenced when it
// meets the end of the writer's turn.
func (w *Writer) Replay(ctx context.Context, from int64, yield func(event.Event) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replay(ctx, Cursor{store: w.store, id: w.row.ID, next: from}, yield)
}

// Skip does what Replay does for who needs nothing of what is in the log. It works although data of events cannot be read.
func (w *Writer) Skip(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := Cursor{store: w.store, id: w.row.ID, next: w.row.Next, heads: true}
	return w.replay(ctx, c, func(event.Event) error { return nil })
}

func (w *Writer) replay(ctx context.Context, c Cursor, yield func(event.Event) error) error {
	for {
		events, err := c.Read(ctx)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			w.next, w.loaded = c.Next(), true
			return nil
		}
		for _, e := range events {
			if e.TurnID == w.turnID && (e.Type == event.TypeTurnFailed || e.Type == event.TypeTurnCompleted) {
				w.fenced = true // between Open and here
				return ErrFenced
			}
			if err := yield(e); err != nil {
				return err
			}
		}
	}
}

// Append records events of the turn, all of them or none, and returns them as recorded. Without data it does nothing.
func (w *Writer) Append(ctx context.Context, data ...event.Data) ([]event.Event, error) {
	if len(data) == 0 {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events(data)
	return w.write(ctx, func(at int64) Batch { return w.store.batch(w.row.ID, at, events...) })
}

// Finish records the last events of the turn, at least one, and leaves the session without an active turn, in one step. Calls that
// still wait for approval are cancelled before. An event that is scoped to the session gets no turn id. Afterwards the writer returns ErrFenced.
func (w *Writer) Finish(ctx context.Context, data ...event.Data) ([]event.Event, error) {
	if len(data) == 0 {
		return nil, errors.New("session: a turn ends with at least one event")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.events(data)
	events, err := w.write(ctx, func(at int64) Batch { return w.store.idle(w.row, at, append(w.row.Turn.cancelled(), last...)) })
	w.fenced = w.fenced || err == nil
	return events, err
}

func (w *Writer) events(data []event.Data) []event.Event {
	events := make([]event.Event, len(data))
	for i, d := range data {
		turn := w.turnID
		switch d.Type() {
		case event.TypeSessionWaiting, event.TypeSessionCompleted, event.TypeSessionFailed:
			turn = ""
		default:
		}
		events[i] = event.New(turn, d)
	}
	return events
}

// write commits a batch at the next free index, walking past events of other writers but never past a fence. A batch without
// events is not written.
func (w *Writer) write(ctx context.Context, batch func(at int64) Batch) ([]event.Event, error) {
	if !w.loaded && !w.fenced {
		return nil, errors.New("session: a writer appends before it has replayed the log")
	}
	for range maxTries {
		if w.fenced {
			return nil, ErrFenced
		}
		b := batch(w.next)
		if len(b.Events) == 0 {
			return nil, nil
		}
		err := w.store.commit(ctx, b)
		if err == nil {
			w.next += int64(len(b.Events))
			return b.Events, nil
		}
		if conflict, ok := errors.AsType[*ConflictError](err); ok {
			err = w.walk(ctx, conflict.Event)
		} else {
			err = w.reload(ctx, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("appending to session %s: too many writers", w.row.ID)
}

// walk moves the writer behind the event that beat it and those after it, or up to the first fence.
func (w *Writer) walk(ctx context.Context, first event.Event) error {
	c := Cursor{store: w.store, id: w.row.ID, next: first.Index + 1, heads: true}
	for events := []event.Event{first}; len(events) > 0; {
		for _, e := range events {
			if w.fenced = w.isFence(e); w.fenced {
				return nil
			}
			w.next = e.Index + 1
		}
		var err error
		if events, err = c.Read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isFence reports whether an event that this writer did not append ends its turn: the end of the turn, the work of
// another process on the same turn, which a person's decision is not, or the beginning of another turn.
func (w *Writer) isFence(e event.Event) bool {
	return e.TurnID == w.turnID && e.Type != event.TypeApprovalResolved || e.Type == event.TypeMessageReceived || e.Type == event.TypeTurnStarted
}

// reload reads the row again after it changed under the writer; any other error is returned.
func (w *Writer) reload(ctx context.Context, err error) error {
	if !errors.Is(err, ErrStale) {
		return fmt.Errorf("changing session %s: %w", w.row.ID, err)
	}
	row, err := w.store.Get(ctx, w.row.ID)
	if err != nil {
		return err
	}
	w.row = row
	w.fenced = row.Turn.ID != w.turnID || row.Turn.Holder != "" && row.Turn.Holder != w.store.opts.Holder
	return nil
}
