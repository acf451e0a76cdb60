package sqlitesession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/session"
)

// The statements on rows. columns are in the order of scanRow, and without the first two in that of rowArgs.
const (
	columns = `no, version, id, agent, owner, channel, mode, purpose, title, dry_run, as_of, files, created, updated, expires,
token_hash, turn, holder, until, next, ended, parked, approvals`
	selectRow = `SELECT ` + columns + ` FROM sessions WHERE id = ?`
	insertRow = `INSERT INTO sessions(` + columns + `) VALUES(NULL, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(id) DO NOTHING RETURNING no`
	updateRow = `UPDATE sessions SET version = version + 1, id = ?, agent = ?, owner = ?, channel = ?, mode = ?, purpose = ?, title = ?,
dry_run = ?, as_of = ?, files = ?, created = ?, updated = ?, expires = ?, token_hash = ?, turn = ?, holder = ?, until = ?, next = ?, ended = ?,
parked = ?, approvals = ? WHERE id = ? AND version = ? RETURNING no`

	byOwner = `SELECT ` + columns + ` FROM sessions WHERE agent = ? AND owner = ? AND (updated, no) < (?, ?)
ORDER BY updated DESC, no DESC LIMIT ?`
	byUpdate = `SELECT ` + columns + ` FROM sessions WHERE agent = ? AND (updated, no) < (?, ?)
ORDER BY updated DESC, no DESC LIMIT ?`
	byActive = `SELECT ` + columns + ` FROM sessions WHERE agent = ? AND turn IS NOT NULL AND no < ? ORDER BY no DESC LIMIT ?`
)

// Get implements [session.Driver].
func (d *Driver) Get(ctx context.Context, id string) (session.Record, error) {
	rec := session.Record{}
	err := d.db.Query(ctx, selectRow, func(row sqlitex.Row) error {
		var err error
		rec, err = scanRow(row)
		return err
	}, id)
	if err == nil && rec.Version == 0 {
		err = session.ErrNotFound
	}
	return rec, err
}

// putRow stores the row of a batch and returns the session's number.
func putRow(tx *sqlitex.Tx, r session.Record) (no int64, err error) {
	args, err := rowArgs(r)
	if err != nil {
		return 0, err
	}
	if r.Version == 0 {
		err = tx.QueryRow(insertRow, args...).Scan(&no)
	} else {
		err = tx.QueryRow(updateRow, append(args, r.ID, r.Version)...).Scan(&no)
	}
	if errors.Is(err, sqlitex.ErrNoRows) {
		return 0, session.ErrStale
	}
	return no, err
}

func rowArgs(r session.Record) ([]any, error) {
	var turn, approvals any
	if r.Turn.ID != "" {
		turn = r.Turn.ID
	}
	if len(r.Turn.Approvals) > 0 {
		text, err := json.Marshal(r.Turn.Approvals)
		if err != nil {
			return nil, fmt.Errorf("writing the approvals of session %s: %w", r.ID, err)
		}
		approvals = string(text)
	}
	return append(make([]any, 0, 23), r.ID, r.Agent, r.Owner, r.Channel, string(r.Mode), r.Purpose, r.Title, r.DryRun, millis(r.AsOf), r.Files,
		millis(r.CreatedAt), millis(r.UpdatedAt), millis(r.ExpiresAt), r.TokenHash, turn, r.Turn.Holder, millis(r.Turn.Until), r.Next, r.Ended,
		r.Turn.Parked, approvals), nil
}

func scanRow(row sqlitex.Row) (session.Record, error) {
	r := session.Record{
		Version: row.Int(1), ID: row.Text(2), Agent: row.Text(3), Owner: row.Text(4), Channel: row.Text(5), Mode: session.Mode(row.Text(6)),
		Purpose: row.Text(7), Title: row.Text(8), DryRun: row.Int(9) != 0, AsOf: scanTime(row, 10), Files: row.Text(11),
		CreatedAt: scanTime(row, 12), UpdatedAt: scanTime(row, 13), ExpiresAt: scanTime(row, 14), TokenHash: row.Text(15),
		Turn: session.Turn{ID: row.Text(16), Holder: row.Text(17), Until: scanTime(row, 18), Parked: row.Int(21) != 0}, Next: row.Int(19), Ended: row.Text(20),
	}
	if row.Null(22) {
		return r, nil
	}
	if err := json.Unmarshal([]byte(row.Text(22)), &r.Turn.Approvals); err != nil {
		return r, fmt.Errorf("reading the approvals of session %s: %w", r.ID, err)
	}
	return r, nil
}

// millis returns the column of t.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func scanTime(row sqlitex.Row, i int) time.Time {
	if row.Null(i) {
		return time.Time{}
	}
	return time.UnixMilli(row.Int(i)).UTC()
}

// List implements [session.Driver].
func (d *Driver) List(ctx context.Context, q session.Query) ([]session.Record, string, error) {
	after, err := decode(q)
	if err != nil {
		return nil, "", err
	}
	limit := q.Limit + 1 // one more tells whether there is a next page
	query, args := byOwner, []any{q.Agent, q.Owner, after.updated, after.no, limit}
	switch {
	case q.Active:
		query, args = byActive, []any{q.Agent, after.no, limit}
	case q.All:
		query, args = byUpdate, []any{q.Agent, after.updated, after.no, limit}
	}
	var rows []session.Record
	next := ""
	err = d.db.Query(ctx, query, func(row sqlitex.Row) error {
		if len(rows) == q.Limit {
			next = session.EncodeCursor(q, after.String())
			return nil
		}
		r, err := scanRow(row)
		rows, after = append(rows, r), place{row.Int(13), row.Int(0)}
		return err
	}, args...)
	if err != nil {
		return nil, "", err
	}
	return rows, next, nil
}

// place is where a session stands in a list.
type place struct{ updated, no int64 }

func (p place) String() string {
	return strconv.FormatInt(p.updated, 10) + "." + strconv.FormatInt(p.no, 10)
}

// decode returns the place behind which the page begins.
func decode(q session.Query) (place, error) {
	text, err := session.DecodeCursor(q)
	if text == "" {
		return place{math.MaxInt64, math.MaxInt64}, err
	}
	updated, no, _ := strings.Cut(text, ".")
	var p place
	p.updated, err = strconv.ParseInt(updated, 10, 64)
	if err != nil {
		return p, session.BadCursor()
	}
	if p.no, err = strconv.ParseInt(no, 10, 64); err != nil {
		return p, session.BadCursor()
	}
	return p, nil
}

// Expire implements [session.Expirer]. It works in short writes, so that it never holds up a turn for long. Done again after it was
// cut off, it goes on.
func (d *Driver) Expire(ctx context.Context, now time.Time, limit int) (int, error) {
	removed := 0
	for _, part := range []func(tx *sqlitex.Tx, now int64, limit int) (int64, error){trashSessions, deleteKeys} {
		for left := limit; left > 0; {
			var n int64
			slice := min(left, expireSlice)
			err := d.db.Write(ctx, false, func(tx *sqlitex.Tx) (err error) {
				n, err = part(tx, now.UnixMilli(), slice)
				return err
			})
			if err != nil {
				return removed, err
			}
			removed, left = removed+int(n), left-int(n)
			if n < int64(slice) {
				break
			}
		}
	}
	return removed, d.emptyTrash(ctx)
}

// How much one write of Expire removes.
const (
	expireSlice = 64   // sessions or keys
	eventSlice  = 1024 // events
)

// trashSessions takes sessions out of sight. Their events are left to emptyTrash.
func trashSessions(tx *sqlitex.Tx, now int64, limit int) (int64, error) {
	var nos []int64
	err := tx.Query(`SELECT no FROM sessions WHERE expires <= ? ORDER BY expires LIMIT ?`, func(row sqlitex.Row) error {
		nos = append(nos, row.Int(0))
		return nil
	}, now, limit)
	if err != nil {
		return 0, err
	}
	for _, no := range nos {
		for _, query := range []string{
			`INSERT INTO sessions_trash(session) VALUES(?)`,
			`DELETE FROM sessions WHERE no = ?`,
			`DELETE FROM session_snapshots WHERE session = ?`,
		} {
			if _, err := tx.Exec(query, no); err != nil {
				return 0, err
			}
		}
	}
	return int64(len(nos)), nil
}

func deleteKeys(tx *sqlitex.Tx, now int64, limit int) (int64, error) {
	return tx.Exec(`DELETE FROM session_keys WHERE name IN (SELECT name FROM session_keys WHERE expires <= ? LIMIT ?)`, now, limit)
}

// emptyTrash deletes the events of removed sessions.
func (d *Driver) emptyTrash(ctx context.Context) error {
	for more := true; more; {
		err := d.db.Write(ctx, false, func(tx *sqlitex.Tx) error {
			var no int64
			err := tx.QueryRow(`SELECT session FROM sessions_trash LIMIT 1`).Scan(&no)
			if errors.Is(err, sqlitex.ErrNoRows) {
				more = false
				return nil
			}
			if err != nil {
				return err
			}
			n, err := tx.Exec(`DELETE FROM session_events WHERE key IN (SELECT key FROM session_events WHERE key >= ? AND key < ? LIMIT ?)`,
				eventKey(no, 0), eventKey(no+1, 0), eventSlice)
			if err != nil || n == eventSlice {
				return err
			}
			_, err = tx.Exec(`DELETE FROM sessions_trash WHERE session = ?`, no)
			return err
		})
		if err != nil {
			return fmt.Errorf("deleting events of removed sessions: %w", err)
		}
	}
	return nil
}
