package hook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/bdk-lambda/bdk/shared/kv"
)

// cursorTTL is how long a cursor is kept after it was moved: longer than any queue, and any stream, keeps an event.
const cursorTTL = 30 * 24 * time.Hour

// Cursors say how far subscribers are in the sessions of an agent. They are safe for concurrent use, by many processes too.
type Cursors struct {
	kv     *kv.Store
	prefix string
}

// NewCursors returns the cursors of an agent.
func NewCursors(store *kv.Store, agent string) *Cursors {
	return &Cursors{store, "cursor/" + agent + "/"}
}

// At returns the index of the last event up to which a subscriber has been told, -1 if it has been told none.
func (c *Cursors) At(ctx context.Context, subscriber, session string) (int64, error) {
	at, _, err := c.read(ctx, c.key(subscriber, session))
	return at, err
}

// Advance moves a cursor to an index, and reports whether it was before it: of all callers that advance to an index, one does.
func (c *Cursors) Advance(ctx context.Context, subscriber, session string, index int64) (bool, error) {
	const tries = 64 // each lost one means that another caller moved it
	key, value := c.key(subscriber, session), []byte(strconv.FormatInt(index, 10))
	for range tries {
		at, version, err := c.read(ctx, key)
		switch {
		case err != nil:
			return false, err
		case at >= index:
			return false, nil
		case version == 0:
			err = c.kv.Create(ctx, key, value, cursorTTL)
		default:
			err = c.kv.Swap(ctx, key, version, value, cursorTTL)
		}
		if !errors.Is(err, kv.ErrExists) && !errors.Is(err, kv.ErrVersion) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("the cursor of %s in session %s moves too fast", subscriber, session)
}

func (c *Cursors) key(subscriber, session string) string {
	return c.prefix + subscriber + "/" + session
}

func (c *Cursors) read(ctx context.Context, key string) (at, version int64, err error) {
	e, err := c.kv.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return -1, 0, nil
	}
	if err == nil {
		at, err = strconv.ParseInt(string(e.Value), 10, 64)
	}
	return at, e.Version, err
}
