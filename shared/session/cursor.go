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
	feed  *feed // nil: what is appended is found in the store only
	tail  bool  // the store had no more, and what this process appended since is in feed
	quiet bool  // the last event left the session without a turn
	heads bool  // the Data of events may be left out
}

// Cursor returns a reader that begins at index from, which must not be negative.
func (s *Store) Cursor(id string, from int64) *Cursor {
	return &Cursor{store: s, id: id, next: from, feed: s.hub.join(id)}
}

// Next returns the index of the next event the cursor will return.
func (c *Cursor) Next() int64 { return c.next }

// Read returns the events that are there now, at most a page of them, in order and without a hole. It returns none at the end of the log.
// Once it did, what other processes append is found after the next Wait.
func (c *Cursor) Read(ctx context.Context) ([]event.Event, error) {
	events, err := c.read(ctx)
	if n := len(events); n > 0 {
		switch events[n-1].Type {
		case event.TypeSessionWaiting, event.TypeSessionCompleted, event.TypeSessionFailed:
			c.quiet = true
		default:
			c.quiet = false
		}
	}
	return events, err
}

func (c *Cursor) read(ctx context.Context) ([]event.Event, error) {
	if events := c.fed(); len(events) > 0 || c.tail {
		return events, nil
	}
	page := c.store.driver.Events
	if h, ok := c.store.driver.(Header); ok && c.heads {
		page = h.Heads
	}
	events, err := page(ctx, c.id, c.next, pageSize)
	if err != nil {
		return nil, fmt.Errorf("reading events of session %s: %w", c.id, err)
	}
	c.tail = len(events) == 0 && c.feed != nil
	for i, e := range events {
		if e.Index != c.next {
			return events[:i], nil
		}
		c.next++
	}
	return events, nil
}

// fed returns the events that follow and were appended by this process. If some are missing, the store has to be asked.
func (c *Cursor) fed() []event.Event {
	if c.feed == nil {
		return nil
	}
	events, lost := c.store.hub.take(c.feed)
	for len(events) > 0 && events[0].Index < c.next {
		events = events[1:]
	}
	for i, e := range events {
		lost = lost || e.Index != c.next+int64(i)
	}
	if lost {
		c.tail = false
		return nil
	}
	c.next += int64(len(events))
	return events
}

// Wait returns when there may be more to read, or with the cause of the end of ctx.
func (c *Cursor) Wait(ctx context.Context) error {
	poll := c.store.opts.PollTurn
	if c.quiet {
		poll = c.store.opts.Poll
	}
	tick, stop := c.store.opts.Clock.After(poll)
	defer stop()
	select {
	case <-c.feed.woken:
		return nil
	case <-tick:
	case <-ctx.Done():
	}
	c.tail = false // other processes append, too
	return context.Cause(ctx)
}

// Close gives up the place among the readers that appends wake.
func (c *Cursor) Close() { c.store.hub.leave(c.id, c.feed) }

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
	c := Cursor{store: s, id: id, next: from, heads: true}
	for {
		events, err := c.Read(ctx)
		if err != nil || len(events) == 0 {
			return c.next, err
		}
	}
}

// hub tells the readers of this process what it appends. The zero value is ready.
type hub struct {
	mu      sync.Mutex
	readers map[string]map[*feed]bool
}

// feed is what was appended since its reader looked. The hub guards it.
type feed struct {
	woken  chan struct{}
	events []event.Event
	lost   bool // there was more
}

// feedSize bounds the events that wait for a slow reader, who then finds them in the store.
const feedSize = 64

func (h *hub) join(id string) *feed {
	f := &feed{woken: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers == nil {
		h.readers = make(map[string]map[*feed]bool)
	}
	if h.readers[id] == nil {
		h.readers[id] = make(map[*feed]bool)
	}
	h.readers[id][f] = true
	return f
}

func (h *hub) leave(id string, f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers[id], f)
	if len(h.readers[id]) == 0 {
		delete(h.readers, id)
	}
}

// tell hands appended events to the readers of a session.
func (h *hub) tell(id string, events []event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.readers[id] {
		if f.lost = f.lost || len(f.events)+len(events) > feedSize; f.lost {
			f.events = nil
		} else {
			f.events = append(f.events, events...)
		}
		select {
		case f.woken <- struct{}{}:
		default:
		}
	}
}

// take empties a feed.
func (h *hub) take(f *feed) (events []event.Event, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	events, lost = f.events, f.lost
	f.events, f.lost = nil, false
	return events, lost
}
