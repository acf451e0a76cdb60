package sqlitex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bdk-lambda/bdk/shared/clock"
)

// The log is moved into the file when no write has come for idleDelay and it is worth it, or when it is long; writes wait for
// that only if they outrun it by waitPages. A long log costs disk and start time after a crash; each move costs two flushes.
const (
	idleDelay = 100 * time.Millisecond
	idlePages = 64
	fullPages = 2048
	waitPages = 4096
)

// The states of a request. Who moves it out of queued owns it.
const (
	queued int32 = iota
	running
	dropped
)

type request struct {
	fn    func(*Tx) error
	sync  bool
	err   error
	state atomic.Int32
	done  chan struct{} // receives once when err is final
}

// writer owns the connection that writes. All fields below queue belong to its goroutine.
type writer struct {
	requests sync.Pool
	stopped  chan struct{}

	mu     sync.RWMutex // held for reading while a request enters the queue
	closed bool
	queue  chan *request

	c         *conn
	tx        Tx
	clock     clock.Clock
	before    func(n int64)
	after     func(n int64)
	commits   int64
	full      bool // synchronous=FULL is set
	pages     int  // length of the log after the last commit
	fullPages int  // length at which the log is moved
	mover     mover
}

func (w *writer) start(ctx context.Context, c *conn, opt Options) {
	w.requests.New = func() any { return &request{done: make(chan struct{}, 1)} }
	w.queue = make(chan *request, queueSize)
	w.stopped = make(chan struct{})
	w.c, w.tx, w.clock = c, Tx{c: c}, opt.Clock
	w.before, w.after = opt.BeforeCommit, opt.AfterCommit
	w.fullPages = fullPages
	c.raw.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		w.pages = pages
		return nil
	})
	w.mover.start(ctx, c.path)
	go w.run()
}

// stop lets the goroutine finish what is queued and waits for it.
func (w *writer) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.queue)
	<-w.stopped
}

func (w *writer) do(ctx context.Context, sync bool, fn func(*Tx) error) error {
	r, ok := w.requests.Get().(*request)
	if !ok {
		return ErrClosed
	}
	r.fn, r.sync, r.err = fn, sync, nil
	r.state.Store(queued)
	if err := w.enqueue(ctx, r); err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(queued, dropped) {
			return context.Cause(ctx)
		}
		<-r.done
	}
	err := r.err
	r.fn, r.err = nil, nil
	w.requests.Put(r)
	return err
}

func (w *writer) enqueue(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return ErrClosed
	}
	select {
	case w.queue <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *writer) run() {
	defer close(w.stopped)
	defer w.mover.stop()
	batch := make([]*request, 0, maxBatch)
	for {
		r, ok := w.next()
		if !ok {
			return
		}
		batch = w.collect(append(batch[:0], r))
		w.runBatch(batch)
		clear(batch)
		if w.pages >= w.fullPages {
			w.mover.begin()
		}
		if w.pages >= w.fullPages+waitPages {
			<-w.mover.done
			w.endMove()
		}
	}
}

// next waits for a request, and has the log moved into the file in a pause. It returns false when the queue is closed and empty.
func (w *writer) next() (*request, bool) {
	for {
		select {
		case <-w.mover.done:
			w.endMove()
		default:
		}
		select {
		case r, ok := <-w.queue:
			return r, ok
		default:
		}
		var pause <-chan time.Time
		stop := func() bool { return false }
		if w.pages >= idlePages && !w.mover.busy {
			pause, stop = w.clock.After(idleDelay)
		}
		select {
		case r, ok := <-w.queue:
			stop()
			return r, ok
		case <-w.mover.done:
			w.endMove()
		case <-pause:
			w.mover.begin()
		}
		stop()
	}
}

// endMove moves the little that was written while the mover was busy, without waiting for readers or other processes, so that the
// next commit can begin the log anew.
func (w *writer) endMove() {
	w.mover.busy = false
	logged, moved, err := w.c.raw.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	w.pages, w.fullPages = 0, fullPages
	if err != nil || moved < logged {
		w.fullPages = logged + fullPages // somebody holds it back: do not try again at every commit
	}
}

// collect adds what else is waiting. It first lets callers run that are about to write: their writes then share this commit.
func (w *writer) collect(batch []*request) []*request {
	runtime.Gosched()
	for len(batch) < maxBatch {
		select {
		case r, ok := <-w.queue:
			if !ok {
				return batch
			}
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// runBatch runs the requests of batch in one transaction and answers them.
func (w *writer) runBatch(batch []*request) {
	err := w.begin(batch)
	live := claim(batch)
	if err == nil {
		err = w.runAll(live)
	}
	for _, r := range live {
		if r.err == nil {
			r.err = err
		}
		r.done <- struct{}{}
	}
}

// claim drops the requests whose callers have gone.
func claim(batch []*request) []*request {
	live := batch[:0]
	for _, r := range batch {
		if r.state.CompareAndSwap(queued, running) {
			live = append(live, r)
		}
	}
	return live
}

// runAll runs each request and commits. A request's own fault is left in its err; the error returned concerns all the others.
func (w *writer) runAll(live []*request) error {
	changed := false
	for _, r := range live {
		r.err = w.runOne(r.fn, len(live) == 1)
		changed = changed || r.err == nil
		if w.c.raw.GetAutocommit() {
			return fmt.Errorf("undone because another write ended the transaction: %w", cmp.Or(r.err, errEnded))
		}
	}
	if !changed {
		return w.rollback()
	}
	return w.commit()
}

// runOne runs fn so that a fault undoes fn only. Alone in its transaction it needs no savepoint: runAll then rolls back.
func (w *writer) runOne(fn func(*Tx) error, alone bool) error {
	if alone {
		return w.call(fn)
	}
	if _, err := w.c.exec("SAVEPOINT one", nil); err != nil {
		return err
	}
	err := w.call(fn)
	if w.c.raw.GetAutocommit() {
		return err
	}
	if err != nil {
		if _, undo := w.c.exec("ROLLBACK TO one", nil); undo != nil {
			return errors.Join(err, undo, w.rollback())
		}
	}
	if _, end := w.c.exec("RELEASE one", nil); end != nil {
		return errors.Join(err, end, w.rollback())
	}
	return err
}

func (w *writer) call(fn func(*Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write function panicked: %v\n%s", p, debug.Stack())
		}
		w.c.reset()
	}()
	return fn(&w.tx)
}

func (w *writer) begin(batch []*request) error {
	if err := w.rollback(); err != nil { // left over only if an earlier rollback met a fault
		return err
	}
	full := false
	for _, r := range batch {
		full = full || r.sync
	}
	if err := w.setSync(full); err != nil {
		return err
	}
	_, err := w.c.exec("BEGIN IMMEDIATE", nil)
	return err
}

func (w *writer) setSync(full bool) error {
	if w.full == full {
		return nil
	}
	pragma := "PRAGMA synchronous=NORMAL"
	if full {
		pragma = "PRAGMA synchronous=FULL"
	}
	if err := w.c.raw.Exec(pragma); err != nil {
		return w.c.wrap(err, pragma)
	}
	w.full = full
	return nil
}

func (w *writer) commit() error {
	w.commits++
	if w.before != nil {
		w.before(w.commits)
	}
	if _, err := w.c.exec("COMMIT", nil); err != nil {
		return errors.Join(fmt.Errorf("committing: %w", err), w.rollback())
	}
	if w.after != nil {
		w.after(w.commits)
	}
	return nil
}

func (w *writer) rollback() error {
	if w.c.raw.GetAutocommit() {
		return nil
	}
	_, err := w.c.exec("ROLLBACK", nil)
	return err
}
