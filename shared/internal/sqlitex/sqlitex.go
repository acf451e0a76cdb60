// Package sqlitex is the embedded host's storage: one SQLite file shared by several adapters, written by one goroutine
// that commits whatever is waiting as a group, and read through a small pool. It is the only importer of the driver.
//
// # Writing
//
// [DB.Write] queues a function. The writer goroutine runs all waiting functions in one transaction and commits once; a
// function that fails is rolled back alone. A function therefore must be short, must not wait for anything, and must not
// call a method of the DB (it gets a [Tx]). Functions run one after another in the order in which they were queued.
//
// # Durability
//
// When Write returns nil, the change survives the death of the process (kill -9) in either mode: it is in the operating
// system's hands. A change written with sync also survives the loss of power: the log was flushed to the disk before
// Write returned, and with it every change written earlier. Without sync, a loss of power may undo the newest
// changes; it never undoes one and keeps a later one, and it never damages the file.
//
// # Reading
//
// [DB.Query] and [DB.QueryRow] see the newest commit, [DB.Read] gives several queries one snapshot. Readers never wait
// for the writer, nor the writer for readers. A change whose Write has returned is visible to every later read. A reader that
// stays open holds back the truncation of the log: copy out what a slow consumer needs, and page.
//
// # Several processes
//
// Processes may share a file on one machine. A write waits up to five seconds for another process's transaction and then
// fails with [bdkerr.Unavailable].
//
// Every type is safe for concurrent use, except [Tx], [Row] and [Result], which belong to the function they were given to.
package sqlitex

import (
	"context"
	"errors"
	"sync"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
)

// Sizes chosen for a process that should idle well below 40 MiB and start within 50 ms, recovery of the log included.
const (
	defaultReaders = 4
	writerCacheKiB = 2048
	readerCacheKiB = 1024
	queueSize      = 1024
	maxBatch       = 256
	busyTimeoutMS  = 5000
)

// Options says how a database is opened. The zero value is a database without tables.
type Options struct {
	// Schemas are the tables of the packages that share the file. They are brought up to date by Open.
	Schemas []Schema
	// Program names the running program and its version. It is recorded beside each schema version, so that an older program
	// can say which one is needed. May be empty.
	Program string
	// Readers bounds the connections that read at the same time. 0 means 4. They are opened when first needed.
	Readers int
	// Clock times the idle checkpoint. Nil means the machine's.
	Clock clock.Clock

	// BeforeCommit and AfterCommit are a seam for crash tests only: the writer goroutine calls them right before and right after
	// its n-th commit, n counting from 1 since Open. Migrations are not counted. Nil in production.
	BeforeCommit func(n int64)
	AfterCommit  func(n int64)
}

// DB is an open database. Make one with [Open].
type DB struct {
	pool    pool
	w       writer
	closing chan struct{}

	closeOnce sync.Once
	closeErr  error
}

// Open opens the database file at path, creating the file (mode 0600) and its directory (mode 0700) if they are missing, and
// brings its schemas up to date. A database written by a newer program is refused with [ErrNewer], a file that is damaged or
// not a database of this program with [ErrBadFile]. ctx bounds the opening only. The caller must Close the DB.
func Open(ctx context.Context, path string, opt Options) (*DB, error) {
	if opt.Clock == nil {
		opt.Clock = clock.System{}
	}
	if opt.Readers <= 0 {
		opt.Readers = defaultReaders
	}
	path, err := createFile(path)
	if err != nil {
		return nil, err
	}
	c, err := openWriter(ctx, path, opt)
	if err != nil {
		return nil, err
	}
	db := &DB{closing: make(chan struct{})}
	db.pool.init(path, opt.Readers, db.closing)
	db.w.start(context.WithoutCancel(ctx), c, opt)
	return db, nil
}

// Write runs fn in a transaction that it may share with other callers' functions, and returns when the transaction is
// committed; sync also waits for the disk (see the package comment). An error of fn undoes what fn did, and is returned as it
// is. A panic of fn does the same. When the commit fails (a full disk, say), every caller of the group gets the error and none of
// their changes remain.
//
// When ctx ends while the function is still queued, the function does not run and the cause is returned; once it runs, Write waits
// for it. The queue is bounded: Write waits for a place. After Close it returns [ErrClosed].
//
// fn runs on the writer goroutine: it must not wait, must not call the DB, and must not end its goroutine (as a test's Fatal does).
func (db *DB) Write(ctx context.Context, sync bool, fn func(tx *Tx) error) error {
	return db.w.do(ctx, sync, fn)
}

// Query calls fn with each row of the result. The Row is valid until fn returns. An error of fn ends the query and is
// returned as it is.
func (db *DB) Query(ctx context.Context, query string, fn func(row Row) error, args ...any) error {
	c, err := db.pool.get(ctx)
	if err != nil {
		return err
	}
	defer db.pool.put(c)
	base := c.raw.SetInterrupt(ctx)
	defer c.raw.SetInterrupt(base)
	return interrupted(ctx, c.query(query, fn, args))
}

// QueryRow returns the first row of the result. Scan must be called on what it returns, exactly once: it gives the connection back.
func (db *DB) QueryRow(ctx context.Context, query string, args ...any) Result {
	c, err := db.pool.get(ctx)
	if err != nil {
		return Result{err: err}
	}
	st, err := c.first(query, args)
	return Result{c: c, st: st, err: err, pool: &db.pool}
}

// Read runs fn with a [Tx] that sees one snapshot of the database and cannot write.
func (db *DB) Read(ctx context.Context, fn func(tx *Tx) error) error {
	c, err := db.pool.get(ctx)
	if err != nil {
		return err
	}
	defer db.pool.put(c)
	if _, err := c.exec("BEGIN", nil); err != nil {
		return err
	}
	base := c.raw.SetInterrupt(ctx)
	defer func() {
		c.raw.SetInterrupt(base)
		c.reset()
		_, _ = c.exec("ROLLBACK", nil) // a read transaction that does not end here ends with the connection
	}()
	return interrupted(ctx, fn(&Tx{c: c}))
}

// Close finishes the queued writes, waits for running reads, moves the log into the file and closes it. Calling it again returns
// the same error.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		close(db.closing)
		db.w.stop()
		db.closeErr = errors.Join(db.pool.close(), db.w.c.close())
	})
	return db.closeErr
}

func unavailable(msg string, err error) error {
	return &bdkerr.Error{Code: bdkerr.Unavailable, Message: msg, Err: err}
}
