package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/bdk-lambda/bdk/shared/event"
)

// pageSize is how many events a reader takes at once.
const pageSize = 512

// Cursor reads the log of a session from an index on. It is for one goroutine. Close it when done.
type Cursor struct {
	store *Store
	id    string
	next  int64
	woken chan struct{}
}

// Cursor returns a reader that begins at index from, which must not be negative.
func (s *Store) Cursor(id string, from int64) *Cursor {
	return &Cursor{store: s, id: id, next: from, woken: s.hub.join(id)}
}

// Next returns the index of the next event the cursor will return.
func (c *Cursor) Next() int64 { return c.next }

// Read returns the events that are there now, at most a page of them, in order and without a hole. It returns none at the end of the log.
func (c *Cursor) Read(ctx context.Context) ([]event.Event, error) {
	events, err := c.store.driver.Events(ctx, c.id, c.next, pageSize)
	if err != nil {
		return nil, fmt.Errorf("reading events of session %s: %w", c.id, err)
	}
	for i, e := range events {
		if e.Index != c.next {
			return events[:i], nil
		}
		c.next++
	}
	return events, nil
}

// Wait returns when there may be more to read, or with the cause of the end of ctx.
func (c *Cursor) Wait(ctx context.Context) error {
	tick, stop := c.store.opts.Clock.After(c.store.opts.Poll)
	defer stop()
	select {
	case <-c.woken:
	case <-tick:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Close gives up the place among the readers that appends wake.
func (c *Cursor) Close() { c.store.hub.leave(c.id, c.woken) }

// Tail returns the index that the next event of a session will get.
func (s *Store) Tail(ctx context.Context, id string) (int64, error) {
	row, err := s.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	return s.tail(ctx, row.ID, row.Next)
}

// tail returns the index of the first event from index from on that is not there.
func (s *Store) tail(ctx context.Context, id string, from int64) (int64, error) {
	c := Cursor{store: s, id: id, next: from}
	for {
		events, err := c.Read(ctx)
		if err != nil || len(events) == 0 {
			return c.next, err
		}
	}
}

// hub wakes the readers of this process. The zero value is ready.
type hub struct {
	mu      sync.Mutex
	readers map[string]map[chan struct{}]bool
}

func (h *hub) join(id string) chan struct{} {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers == nil {
		h.readers = make(map[string]map[chan struct{}]bool)
	}
	if h.readers[id] == nil {
		h.readers[id] = make(map[chan struct{}]bool)
	}
	h.readers[id][c] = true
	return c
}

func (h *hub) leave(id string, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers[id], c)
	if len(h.readers[id]) == 0 {
		delete(h.readers, id)
	}
}

func (h *hub) wake(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.readers[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
