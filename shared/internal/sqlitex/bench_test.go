package sqlitex_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
)

func benchWrite(b *testing.B, db *sqlitex.DB, owner string, n int, data []byte) {
	b.Helper()
	err := db.Write(b.Context(), false, func(tx *sqlitex.Tx) error {
		_, err := tx.Exec("INSERT INTO t(owner, n, data) VALUES(?, ?, ?)", owner, n, data)
		return err
	})
	if err != nil {
		b.Error(err)
	}
}

func BenchmarkWrite1(b *testing.B) {
	db, data := openTemp(b), make([]byte, 200)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		benchWrite(b, db, "a", n, data)
	}
}

func BenchmarkWriteParallel16(b *testing.B) {
	var next, commits atomic.Int64
	opt := options()
	opt.AfterCommit = func(int64) { commits.Add(1) }
	db, data := open(b, b.TempDir()+"/x.db", opt), make([]byte, 200)
	b.SetParallelism(8) // times two cores
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		owner := fmt.Sprint("w", next.Add(1))
		for n := 0; pb.Next(); n++ {
			benchWrite(b, db, owner, n, data)
		}
	})
	b.ReportMetric(float64(b.N)/float64(commits.Load()), "writes/commit")
}

func BenchmarkScan10k(b *testing.B) {
	opt := sqlitex.Options{Schemas: []sqlitex.Schema{{Name: "ev", Steps: []string{
		"CREATE TABLE ev(sid TEXT, n INTEGER, id TEXT, type TEXT, turn TEXT, at INTEGER, data BLOB, PRIMARY KEY(sid, n)) WITHOUT ROWID",
	}}}}
	db, data := open(b, b.TempDir()+"/x.db", opt), []byte(strings.Repeat("x", 200))
	err := db.Write(b.Context(), false, func(tx *sqlitex.Tx) error {
		for n := range 10_000 {
			_, err := tx.Exec("INSERT INTO ev VALUES('s', ?, 'ev_0123456789abcdef', 'message.delta', 'turn_0123456789', 1700000000000, ?)", n, data)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		size := 0
		err := db.Query(b.Context(), "SELECT n, id, type, turn, at, data FROM ev WHERE sid = ? AND n >= ? ORDER BY n LIMIT 10000", func(row sqlitex.Row) error {
			_, _, _, _, _ = row.Int(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4)
			size += len(row.Blob(5))
			return nil
		}, "s", 0)
		if err != nil || size != 2_000_000 {
			b.Fatal(size, err)
		}
	}
}

func BenchmarkQueryRow(b *testing.B) {
	db := openTemp(b)
	benchWrite(b, db, "a", 1, make([]byte, 200))
	b.ReportAllocs()
	for b.Loop() {
		var data []byte
		if err := db.QueryRow(b.Context(), "SELECT data FROM t WHERE owner = ? AND n = ?", "a", 1).Scan(&data); err != nil {
			b.Fatal(err)
		}
	}
}
