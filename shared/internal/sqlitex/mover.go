package sqlitex

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// mover moves the log into the file on a connection and a goroutine of its own, so that the writer need not wait for the
// disk. It belongs to the writer goroutine.
type mover struct {
	busy   bool
	orders chan struct{}
	done   chan struct{} // receives when an order was carried out; closed at the end
}

func (m *mover) start(ctx context.Context, path string) {
	m.orders, m.done = make(chan struct{}, 1), make(chan struct{}, 1)
	go m.run(ctx, path)
}

// begin gives an order, unless one is being carried out.
func (m *mover) begin() {
	if !m.busy {
		m.busy = true
		m.orders <- struct{}{}
	}
}

// stop waits for the goroutine to end.
func (m *mover) stop() {
	close(m.orders)
	for range m.done {
	}
}

// run ignores faults: what it leaves undone, the writer does when the order is done, and meets the same fault.
func (m *mover) run(ctx context.Context, path string) {
	defer close(m.done)
	var c *conn
	for range m.orders {
		if c == nil {
			// The SELECT opens the log: without it there is nothing to move.
			c, _ = openConn(ctx, path, "PRAGMA wal_autocheckpoint=0; SELECT count(*) FROM sqlite_schema")
		}
		if c != nil {
			_, _, _ = c.raw.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		}
		m.done <- struct{}{}
	}
	if c != nil {
		_ = c.close()
	}
}
