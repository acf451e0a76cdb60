package sqlitex_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
)

const (
	childEnv = "SQLITEX_CHILD" // the path of the database
	limitEnv = "SQLITEX_LIMIT" // run limited instead of child
)

// TestMain lets the test binary be the other process: a writer that is killed, or one that shares a file.
func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		run := child
		if os.Getenv(limitEnv) != "" {
			run = limited
		}
		if err := run(context.Background(), path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child writes numbers from 1 to 100000 and prints each one when it is acknowledged, every fifth with sync.
func child(ctx context.Context, path string) error {
	db, err := sqlitex.Open(ctx, path, options())
	if err != nil {
		return err
	}
	for n := range 100_000 {
		err := db.Write(ctx, n%5 == 0, func(tx *sqlitex.Tx) error {
			_, err := tx.Exec("INSERT INTO t(owner, n) VALUES('child', ?)", n+1)
			return err
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Println(n + 1); err != nil {
			return err
		}
	}
	return db.Close()
}

func options() sqlitex.Options {
	return sqlitex.Options{
		Program: "bdk v1",
		Schemas: []sqlitex.Schema{{Name: "t", Steps: []string{"CREATE TABLE t(owner TEXT, n INTEGER, data BLOB, PRIMARY KEY(owner, n)) WITHOUT ROWID"}}},
	}
}
