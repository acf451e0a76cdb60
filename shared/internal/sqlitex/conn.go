package sqlitex

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// maxStatements bounds the prepared statements kept by a connection. Queries are constants of the adapters, so it is not met in practice.
const maxStatements = 256

// conn is one connection and its prepared statements. It is used by one goroutine at a time.
type conn struct {
	raw   *sqlite3.Conn
	path  string
	stmts map[string]*stmt
	open  int // statements that are between acquire and release
}

type stmt struct {
	*sqlite3.Stmt

	params int
	busy   bool
	cached bool
}

func openConn(ctx context.Context, path, pragmas string) (*conn, error) {
	raw, err := sqlite3.OpenContext(ctx, path)
	c := &conn{raw: raw, path: path, stmts: make(map[string]*stmt)}
	if err != nil {
		return nil, fmt.Errorf("opening database %s: %w", path, c.wrap(err, "open"))
	}
	if err := raw.Exec(pragmas); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up database %s: %w", path, c.wrap(err, pragmas)), c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	errs := make([]error, 0, len(c.stmts)+1)
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	clear(c.stmts)
	if err := errors.Join(append(errs, c.raw.Close())...); err != nil {
		return fmt.Errorf("closing database %s: %w", c.path, err)
	}
	return nil
}

// acquire returns the statement of query with args bound. It must be released.
func (c *conn) acquire(query string, args []any) (*stmt, error) {
	st, ok := c.stmts[query]
	if !ok || st.busy {
		var err error
		if st, err = c.prepare(query, !ok); err != nil {
			return nil, err
		}
	}
	st.busy = true
	c.open++
	if err := c.bind(st, query, args); err != nil {
		c.release(st)
		return nil, err
	}
	return st, nil
}

func (c *conn) prepare(query string, keep bool) (*stmt, error) {
	raw, tail, err := c.raw.PrepareFlags(query, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, c.wrap(err, query)
	}
	if raw == nil || strings.TrimSpace(tail) != "" {
		return nil, errors.Join(fmt.Errorf("running %q: want exactly one statement", shorten(query)), raw.Close())
	}
	st := &stmt{Stmt: raw, params: raw.BindCount(), cached: keep && len(c.stmts) < maxStatements}
	if st.cached {
		c.stmts[query] = st
	}
	return st, nil
}

func (c *conn) release(st *stmt) {
	c.open--
	st.busy = false
	if st.cached {
		_ = st.Reset() // repeats the error of the last step, which the caller has
		return
	}
	_ = st.Close()
}

// reset releases statements that a function left open, such as a QueryRow without a Scan.
func (c *conn) reset() {
	if c.open == 0 {
		return
	}
	for _, st := range c.stmts {
		if st.busy {
			c.release(st)
		}
	}
}

// bind never lets an argument escape, so that calls do not allocate for their arguments.
func (c *conn) bind(st *stmt, query string, args []any) error {
	if len(args) != st.params {
		return fmt.Errorf("running %q: got %d arguments, want %d", shorten(query), len(args), st.params)
	}
	for i, arg := range args {
		var err error
		switch v := arg.(type) {
		case nil:
			err = st.BindNull(i + 1)
		case string:
			err = st.BindText(i+1, v)
		case []byte:
			err = st.BindBlob(i+1, v)
		case int64:
			err = st.BindInt64(i+1, v)
		case int:
			err = st.BindInt64(i+1, int64(v))
		case bool:
			err = st.BindBool(i+1, v)
		case float64:
			err = st.BindFloat(i+1, v)
		default:
			return fmt.Errorf("running %q: argument %d is of a type that cannot be stored", shorten(query), i+1)
		}
		if err != nil {
			return c.wrap(err, query)
		}
	}
	return nil
}

func (c *conn) exec(query string, args []any) (int64, error) {
	st, err := c.acquire(query, args)
	if err != nil {
		return 0, err
	}
	err = st.Exec()
	c.release(st)
	if err != nil {
		return 0, c.wrap(err, query)
	}
	return c.raw.Changes(), nil
}

func (c *conn) query(query string, fn func(row Row) error, args []any) error {
	st, err := c.acquire(query, args)
	if err != nil {
		return err
	}
	defer c.release(st)
	for st.Step() {
		if err := fn(Row{st: st.Stmt}); err != nil {
			return err
		}
	}
	return c.wrap(st.Err(), query)
}

// first runs query up to its first row, ErrNoRows if there is none. It returns a statement only without an error.
func (c *conn) first(query string, args []any) (*stmt, error) {
	st, err := c.acquire(query, args)
	if err != nil {
		return nil, err
	}
	if st.Step() {
		return st, nil
	}
	err = c.wrap(st.Err(), query)
	c.release(st)
	if err == nil {
		err = ErrNoRows
	}
	return nil, err
}
