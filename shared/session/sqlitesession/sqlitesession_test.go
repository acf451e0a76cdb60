package sqlitesession_test

import (
	"path/filepath"
	"testing"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/sessiontest"
	"github.com/bdk-lambda/bdk/shared/session/sqlitesession"
)

// store is a driver whose database file is known.
type store struct {
	*sqlitesession.Driver

	db   *sqlitex.DB
	path string
}

func open(tb testing.TB, path string) store {
	tb.Helper()
	db, err := sqlitex.Open(tb.Context(), path, sqlitex.Options{Schemas: []sqlitex.Schema{sqlitesession.Schema()}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store{sqlitesession.New(db), db, path}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, sessiontest.Harness{
		New: func(t *testing.T) session.Driver {
			t.Helper()
			return open(t, filepath.Join(t.TempDir(), "bdk.db"))
		},
		Other: func(t *testing.T, d session.Driver) session.Driver {
			t.Helper()
			return open(t, d.(store).path)
		},
		Plant: func(t *testing.T, d session.Driver, e event.Event) {
			t.Helper()
			if err := d.Commit(t.Context(), session.Batch{SessionID: e.SessionID, At: e.Index, Events: []event.Event{e}}); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func Benchmark(b *testing.B) {
	sessiontest.Bench(b, func(b *testing.B) session.Driver {
		b.Helper()
		return open(b, filepath.Join(b.TempDir(), "bdk.db"))
	})
}
