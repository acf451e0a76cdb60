// Package sqlitekv keeps the entries of package kv in the embedded host's database. Create, Swap and Delete return when
// the change is on the disk.
package sqlitekv

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/kv"
)

var (
	_ kv.Driver  = (*Driver)(nil)
	_ kv.Sweeper = (*Driver)(nil)
)

// Schema returns the tables of this package, to be listed in [sqlitex.Options]. Times are Unix milliseconds, 0 for never.
func Schema() sqlitex.Schema {
	return sqlitex.Schema{Name: "kv", Steps: []string{`
CREATE TABLE kv(
	key     TEXT NOT NULL PRIMARY KEY,
	value   BLOB,
	version INTEGER NOT NULL,
	expires INTEGER NOT NULL
) STRICT;
CREATE INDEX kv_expires ON kv(expires) WHERE expires > 0;
`}}
}

// Driver is a [kv.Driver] over a database, made by [New]. It is safe for concurrent use.
type Driver struct{ db *sqlitex.DB }

// New returns a driver over db, which was opened with [Schema] and stays the caller's to close.
func New(db *sqlitex.DB) *Driver { return &Driver{db: db} }

// Get implements [kv.Driver].
func (d *Driver) Get(ctx context.Context, key string) (kv.Entry, error) {
	e := kv.Entry{Key: key}
	var expires int64
	err := d.db.QueryRow(ctx, "SELECT value, version, expires FROM kv WHERE key = ?", key).Scan(&e.Value, &e.Version, &expires)
	if errors.Is(err, sqlitex.ErrNoRows) {
		return kv.Entry{}, kv.ErrNotFound
	}
	e.ExpiresAt = fromMillis(expires)
	return e, err
}

// Create implements [kv.Driver].
func (d *Driver) Create(ctx context.Context, e kv.Entry, now time.Time) error {
	const query = `INSERT INTO kv(key, value, version, expires) VALUES(?1, ?2, ?3, ?4)
ON CONFLICT(key) DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires
WHERE kv.version = ?3 OR kv.expires > 0 AND kv.expires <= ?5`
	return d.change(ctx, kv.ErrExists, query, e.Key, e.Value, e.Version, millis(e.ExpiresAt), now.UnixMilli())
}

// Swap implements [kv.Driver].
func (d *Driver) Swap(ctx context.Context, e kv.Entry, version int64, now time.Time) error {
	const query = `UPDATE kv SET value = ?2, version = ?3, expires = ?4
WHERE key = ?1 AND (version = ?3 OR version = ?5 AND (expires = 0 OR expires > ?6))`
	return d.change(ctx, kv.ErrVersion, query, e.Key, e.Value, e.Version, millis(e.ExpiresAt), version, now.UnixMilli())
}

// Delete implements [kv.Driver].
func (d *Driver) Delete(ctx context.Context, key string, version int64) error {
	if version == 0 {
		return d.change(ctx, nil, "DELETE FROM kv WHERE key = ?", key)
	}
	return d.change(ctx, kv.ErrVersion, "DELETE FROM kv WHERE key = ? AND version = ?", key, version)
}

// change runs a statement and returns refused if it changed nothing.
func (d *Driver) change(ctx context.Context, refused error, query string, args ...any) error {
	return d.db.Write(ctx, true, func(tx *sqlitex.Tx) error {
		n, err := tx.Exec(query, args...)
		if err == nil && n == 0 {
			err = refused
		}
		return err
	})
}

// List implements [kv.Driver].
func (d *Driver) List(ctx context.Context, prefix, after string, limit int, now time.Time) ([]kv.Entry, error) {
	const query = `SELECT key, value, version, expires FROM kv
WHERE key >= ? AND key > ? AND (expires = 0 OR expires > ?) ORDER BY key`
	var list []kv.Entry
	errDone := errors.New("done")
	err := d.db.Query(ctx, query, func(row sqlitex.Row) error {
		e := kv.Entry{Key: row.Text(0), Value: row.Blob(1), Version: row.Int(2), ExpiresAt: fromMillis(row.Int(3))}
		if len(list) == limit || !strings.HasPrefix(e.Key, prefix) {
			return errDone
		}
		list = append(list, e)
		return nil
	}, prefix, after, now.UnixMilli())
	if err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	return list, nil
}

// Sweep implements [kv.Sweeper]. It does not wait for the disk: an entry that comes back has expired all the same.
func (d *Driver) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	const query = `DELETE FROM kv WHERE rowid IN (SELECT rowid FROM kv WHERE expires > 0 AND expires <= ? LIMIT ?)`
	var n int64
	err := d.db.Write(ctx, false, func(tx *sqlitex.Tx) (err error) {
		n, err = tx.Exec(query, now.UnixMilli(), limit)
		return err
	})
	return int(n), err
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
