package sqlitex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bdk-lambda/bdk/shared/clock"
)

// createFile makes sure that the file and its directory exist, and returns the absolute path.
func createFile(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("opening database: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating the directory of database %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator chooses the path
	if errors.Is(err, os.ErrExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("creating database: %w", err)
	}
	d, err := os.Open(dir) //nolint:gosec // see above
	if err != nil {
		return "", errors.Join(fmt.Errorf("creating database %s: %w", path, err), f.Close())
	}
	if err := errors.Join(d.Sync(), d.Close(), f.Close()); err != nil { // the name must survive a loss of power, too
		return "", fmt.Errorf("creating database %s: %w", path, err)
	}
	return path, nil
}

// openWriter opens the connection that writes and brings the schemas up to date.
func openWriter(ctx context.Context, path string, opt Options) (*conn, error) {
	c, err := openConn(ctx, path, fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF",
		busyTimeoutMS, writerCacheKiB))
	if err != nil {
		return nil, err
	}
	if err := prepareFile(ctx, c, opt); err != nil {
		return nil, errors.Join(fmt.Errorf("opening database %s: %w", path, err), c.close())
	}
	return c, nil
}

func prepareFile(ctx context.Context, c *conn, opt Options) error {
	if err := identify(c); err != nil {
		return err
	}
	if err := startLog(ctx, c, opt.Clock); err != nil {
		return err
	}
	if err := migrate(c, opt); err != nil {
		return err
	}
	for _, name := range []string{c.path, c.path + "-wal", c.path + "-shm"} {
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("protecting the database: %w", err)
		}
	}
	return nil
}

// startLog switches to write-ahead logging. SQLite does not wait for another process that does the same, so this does.
func startLog(ctx context.Context, c *conn, clk clock.Clock) error {
	const step = 10 * time.Millisecond
	const pragmas = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=NORMAL"
	var err error
	for range busyTimeoutMS / 10 {
		err = c.raw.Exec(pragmas)
		if !errors.Is(err, sqlite3.BUSY) {
			break
		}
		if err := clock.Sleep(ctx, clk, step); err != nil {
			return err
		}
	}
	return c.wrap(err, pragmas)
}
