package sqlitex

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Tx is what a function given to [DB.Write] or [DB.Read] works with. It is valid until that function returns.
//
// Statements are prepared once per connection and found again by their text: queries should be constants, with values as
// arguments. Arguments are nil, string, []byte, int, int64, bool or float64; a nil []byte is NULL.
type Tx struct{ c *conn }

// Exec runs one statement and returns how many rows it inserted, changed or deleted. Such an INSERT … ON CONFLICT DO NOTHING
// tells by 0 that the row exists; without that clause the error is [ErrConstraint].
func (tx *Tx) Exec(query string, args ...any) (changed int64, err error) {
	return tx.c.exec(query, args)
}

// Query calls fn with each row of the result. The Row is valid until fn returns. An error of fn ends the query and is
// returned as it is. fn may run other statements.
func (tx *Tx) Query(query string, fn func(row Row) error, args ...any) error {
	return tx.c.query(query, fn, args)
}

// QueryRow returns the first row of the result, to be scanned at once.
func (tx *Tx) QueryRow(query string, args ...any) Result {
	st, err := tx.c.first(query, args)
	return Result{c: tx.c, st: st, err: err}
}

// Result is the first row of a query, or the reason why there is none.
type Result struct {
	c    *conn
	st   *stmt
	err  error
	pool *pool // takes c back; nil when c belongs to a Tx
}

// Scan copies the columns into dest, as [Row.Scan] does. It returns [ErrNoRows] when the query found nothing.
func (r Result) Scan(dest ...any) error {
	err := r.err
	if err == nil {
		err = Row{st: r.st.Stmt}.Scan(dest...)
		r.c.release(r.st)
	}
	if r.pool != nil && r.c != nil {
		r.pool.put(r.c)
	}
	return err
}

// Row is one row of a result. Columns count from 0; a column that does not exist reads as NULL. The methods convert as SQLite does: NULL is
// 0, "" and nil.
type Row struct{ st *sqlite3.Stmt }

// Int returns column i as an integer.
func (r Row) Int(i int) int64 { return r.st.ColumnInt64(i) }

// Text returns a copy of column i.
func (r Row) Text(i int) string { return string(r.st.ColumnRawText(i)) }

// Blob returns a copy of column i, nil for NULL and for an empty value.
func (r Row) Blob(i int) []byte { return r.st.ColumnBlob(i, nil) }

// Raw returns column i, a text or a blob, without copying it. It must not be changed, and is valid until the next use of the row's query.
func (r Row) Raw(i int) []byte { return r.st.ColumnRawBlob(i) }

// Null reports whether column i is NULL.
func (r Row) Null(i int) bool { return r.st.ColumnType(i) == sqlite3.NULL }

// Scan copies the first columns into dest: pointers to int, int64, bool, float64, string or []byte.
func (r Row) Scan(dest ...any) error {
	if n := r.st.ColumnCount(); len(dest) > n {
		return fmt.Errorf("scanning a row: got %d destinations for %d columns", len(dest), n)
	}
	for i, d := range dest {
		switch p := d.(type) {
		case *string:
			*p = r.Text(i)
		case *[]byte:
			*p = r.Blob(i)
		case *int64:
			*p = r.Int(i)
		case *int:
			*p = int(r.Int(i))
		case *bool:
			*p = r.Int(i) != 0
		case *float64:
			*p = r.st.ColumnFloat(i)
		default:
			return fmt.Errorf("scanning a row: destination %d is of a type that cannot be filled", i+1)
		}
	}
	if err := r.st.Err(); err != nil {
		return errors.Join(errors.New("scanning a row"), err)
	}
	return nil
}
