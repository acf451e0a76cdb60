package engine

import (
	"container/list"
	"sync"
)

// What the cache may hold: few enough sessions that an idle host stays small, enough that a busy one rarely reads a log twice.
const (
	cacheSessions = 256
	cacheBytes    = 8 << 20

	// What a transcript and each of its messages take besides their texts, about.
	transcriptBytes = 1024
	messageBytes    = 128
)

// cache holds transcripts of recent sessions. A transcript is taken out while somebody works on it. Entries never go
// stale: a log only grows, and whoever takes an old transcript folds in what followed.
type cache struct {
	sessions, bytes int // limits

	mu    sync.Mutex
	held  int
	order *list.List // of *cached, the most recent first
	byID  map[string]*list.Element
}

type cached struct {
	id    string
	t     *transcript
	bytes int
}

func newCache(sessions, bytes int) *cache {
	return &cache{sessions: sessions, bytes: bytes, order: list.New(), byID: make(map[string]*list.Element)}
}

// take returns the transcript of a session and forgets it, nil if it is not there.
func (c *cache) take(id string) *transcript {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byID[id]; ok {
		return c.remove(el)
	}
	return nil
}

// put keeps a transcript that nobody uses any more.
func (c *cache) put(id string, t *transcript) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byID[id]; ok {
		c.remove(el)
	}
	entry := &cached{id: id, t: t, bytes: transcriptBytes + messageBytes*len(t.Messages) + t.Bytes}
	c.byID[id] = c.order.PushFront(entry)
	c.held += entry.bytes
	for c.order.Len() > c.sessions || c.held > c.bytes && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(el *list.Element) *transcript {
	entry, ok := c.order.Remove(el).(*cached)
	if !ok {
		return nil
	}
	delete(c.byID, entry.id)
	c.held -= entry.bytes
	return entry.t
}
