package sqlitekv_test

import (
	"path/filepath"
	"testing"

	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/kvtest"
	"github.com/bdk-lambda/bdk/shared/kv/sqlitekv"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T) kvtest.Harness {
		t.Helper()
		path := filepath.Join(t.TempDir(), "x.db")
		return kvtest.Harness{Open: func(t *testing.T) kv.Driver {
			t.Helper()
			db, err := sqlitex.Open(t.Context(), path, sqlitex.Options{Schemas: []sqlitex.Schema{sqlitekv.Schema()}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			return sqlitekv.New(db)
		}}
	})
}
