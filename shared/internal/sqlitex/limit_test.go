//go:build unix

package sqlitex_test

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
)

// limited is a child whose files may not grow for a while, as on a full disk. It prints what it finds wrong.
func limited(ctx context.Context, path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var commits []int64
	opt := options()
	opt.AfterCommit = func(n int64) { commits = append(commits, n) }
	db, err := sqlitex.Open(ctx, path, opt)
	if err != nil {
		return err
	}
	if err := db.Write(ctx, false, insert("before", 1)); err != nil {
		return err
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: old.Max}); err != nil {
		return err
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = db.Write(ctx, false, func(*sqlitex.Tx) error { close(entered); <-leave; return errors.New("gate") })
	})
	<-entered
	for n := range 8 { // most of them one group; all of them too large
		wg.Go(func() {
			err := db.Write(ctx, n == 3, func(tx *sqlitex.Tx) error {
				_, err := tx.Exec("INSERT INTO t(owner, n, data) VALUES('full', ?, ?)", n, make([]byte, 100_000))
				return err
			})
			if err == nil {
				fmt.Println("a write that does not fit succeeded")
			}
		})
	}
	close(leave)
	wg.Wait()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := db.Write(ctx, true, insert("after", 1)); err != nil {
		return fmt.Errorf("writing after the failure: %w", err)
	}
	if len(commits) != 2 {
		fmt.Println("commits that succeeded, want 2:", commits)
	}
	return db.Close()
}

func TestFailedCommitFailsItsGroupAndNothingElse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	cmd, lines := childProcess(t, path, limitEnv+"=1")
	for lines.Scan() {
		t.Error(lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	db := open(t, path, options())
	if got := [3]int{count(t, db, "before"), count(t, db, "full"), count(t, db, "after")}; got != [3]int{1, 0, 1} {
		t.Errorf("got %v rows from before, during and after the failure, want [1 0 1]", got)
	}
}
