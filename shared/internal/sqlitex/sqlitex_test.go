package sqlitex_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
)

func open(t testing.TB, path string, opt sqlitex.Options) *sqlitex.DB {
	t.Helper()
	db, err := sqlitex.Open(t.Context(), path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func openTemp(t testing.TB) *sqlitex.DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "x.db"), options())
}

func insert(owner string, n int) func(*sqlitex.Tx) error {
	return func(tx *sqlitex.Tx) error {
		_, err := tx.Exec("INSERT INTO t(owner, n) VALUES(?, ?)", owner, n)
		return err
	}
}

func count(t testing.TB, db *sqlitex.DB, owner string) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM t WHERE owner = ?", owner).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// gate holds the writer inside a function until it is opened, so that everything written meanwhile forms one group.
func gate(t *testing.T, db *sqlitex.DB) (release func()) {
	t.Helper()
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.Write(context.Background(), false, func(*sqlitex.Tx) error {
			close(entered)
			<-leave
			return nil
		})
	}()
	<-entered
	return func() {
		close(leave)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWriteFromManyGoroutinesLosesNothing(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	const writers, each = 16, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			owner := fmt.Sprint("w", w)
			for n := range each {
				if err := db.Write(t.Context(), n%50 == 0, insert(owner, n)); err != nil {
					t.Error(err)
				}
				var got int
				err := db.QueryRow(t.Context(), "SELECT n FROM t WHERE owner = ? ORDER BY n DESC LIMIT 1", owner).Scan(&got)
				if err != nil || got != n {
					t.Errorf("after Write(%d): read %d, %v", n, got, err)
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		if got := count(t, db, fmt.Sprint("w", w)); got != each {
			t.Errorf("writer %d: got %d rows, want %d", w, got, each)
		}
	}
}

func TestGroupIsolatesFaults(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	cases := map[string]struct {
		fn    func(*sqlitex.Tx) error
		check func(error) bool
	}{
		"error": {func(tx *sqlitex.Tx) error {
			return errors.Join(insert("bad", 1)(tx), boom)
		}, func(err error) bool { return errors.Is(err, boom) }},
		"panic": {func(tx *sqlitex.Tx) error {
			_ = insert("bad", 1)(tx)
			panic("boom")
		}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "panicked: boom") }},
		"constraint": {func(tx *sqlitex.Tx) error {
			return errors.Join(insert("bad", 1)(tx), insert("bad", 1)(tx))
		}, func(err error) bool { return errors.Is(err, sqlitex.ErrConstraint) }},
		"syntax": {func(tx *sqlitex.Tx) error {
			_, err := tx.Exec("INSERT INTO nowhere VALUES(1)")
			return err
		}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "nowhere") }},
		"panic in a row": {func(tx *sqlitex.Tx) error {
			_ = insert("bad", 1)(tx)
			return tx.Query("SELECT n FROM t", func(sqlitex.Row) error { panic("boom") })
		}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "panicked: boom") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := openTemp(t)
				if err := db.Write(t.Context(), false, tc.fn); !tc.check(err) { // alone
					t.Errorf("alone: got %v", err)
				}
				release := gate(t, db)
				var wg sync.WaitGroup
				for i := range 9 {
					wg.Go(func() {
						if i == 4 {
							if err := db.Write(t.Context(), true, tc.fn); !tc.check(err) {
								t.Errorf("in a group: got %v", err)
							}
							return
						}
						if err := db.Write(t.Context(), false, insert("good", i)); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait() // all are queued
				release()
				wg.Wait()
				if got := [2]int{count(t, db, "good"), count(t, db, "bad")}; got != [2]int{8, 0} {
					t.Errorf("got %v rows of good and bad, want [8 0]", got)
				}
			})
		})
	}
}

func TestWriteFunctionThatEndsTheTransactionFailsItsGroupOnly(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	err := db.Write(t.Context(), false, func(tx *sqlitex.Tx) error {
		_, err := tx.Exec("ROLLBACK")
		return err
	})
	if err == nil {
		t.Error("got no error")
	}
	if err := db.Write(t.Context(), false, insert("a", 1)); err != nil {
		t.Errorf("the next write: %v", err)
	}
}

func TestUnscannedRowIsReleasedWithItsFunction(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	for n := range 3 {
		err := db.Write(t.Context(), false, func(tx *sqlitex.Tx) error {
			_ = tx.QueryRow("SELECT 1")
			return insert("a", n)(tx)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := count(t, db, "a"); got != 3 {
		t.Errorf("got %d rows, want 3", got)
	}
}

func TestWriteWithEndedContextDoesNotRun(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	cause := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := db.Write(ctx, false, insert("a", 1)); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	if got := count(t, db, "a"); got != 0 {
		t.Errorf("got %d rows, want 0", got)
	}
}

func TestWriteWhoseContextEndsInTheQueueDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openTemp(t)
		cause := errors.New("gave up")
		release := gate(t, db)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 2)
		go func() { done <- db.Write(ctx, true, insert("a", 1)) }()
		synctest.Wait() // it is queued
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
		go func() { done <- db.Write(t.Context(), false, insert("b", 1)) }()
		synctest.Wait()
		release()
		if err := <-done; err != nil {
			t.Errorf("the write behind it: %v", err)
		}
		if got := [2]int{count(t, db, "a"), count(t, db, "b")}; got != [2]int{0, 1} {
			t.Errorf("got %v rows, want [0 1]", got)
		}
	})
}

func TestWriteThatBeganIsFinished(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Write(ctx, false, func(tx *sqlitex.Tx) error {
		cancel()
		return insert("a", 1)(tx)
	})
	if got := count(t, db, "a"); err != nil || got != 1 {
		t.Errorf("got %v and %d rows, want nil and 1", err, got)
	}
}

func TestWriteWaitsForAPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openTemp(t)
		release := gate(t, db)
		const callers = 3000
		var done atomic.Int64
		var wg sync.WaitGroup
		for n := range callers {
			wg.Go(func() {
				if err := db.Write(t.Context(), false, insert("a", n)); err != nil {
					t.Error(err)
				}
				done.Add(1)
			})
		}
		synctest.Wait()
		if got := done.Load(); got != 0 {
			t.Errorf("%d writes returned before they ran", got)
		}
		release()
		wg.Wait()
		if got := count(t, db, "a"); got != callers {
			t.Errorf("got %d rows, want %d", got, callers)
		}
	})
}

func TestPauseMovesTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	synctest.Test(t, func(t *testing.T) {
		db := open(t, path, options())
		err := db.Write(t.Context(), false, func(tx *sqlitex.Tx) error {
			_, err := tx.Exec("INSERT INTO t(owner, n, data) VALUES('a', 1, ?)", make([]byte, 1<<20))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		size := func() int64 {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		if got := size(); got > 1<<19 {
			t.Errorf("the file has %d bytes before the pause", got)
		}
		time.Sleep(time.Second) // of the bubble
		synctest.Wait()
		if got := size(); got < 1<<20 {
			t.Errorf("the file has %d bytes after the pause", got)
		}
	})
}

func TestReadSeesOneSnapshotAndCannotWrite(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	err := db.Read(t.Context(), func(tx *sqlitex.Tx) error {
		var before, after int
		if err := tx.QueryRow("SELECT count(*) FROM t").Scan(&before); err != nil {
			return err
		}
		if err := db.Write(t.Context(), false, insert("a", 1)); err != nil {
			return err
		}
		if err := tx.QueryRow("SELECT count(*) FROM t").Scan(&after); err != nil {
			return err
		}
		if before != 0 || after != 0 {
			t.Errorf("got %d then %d rows, want 0 twice", before, after)
		}
		if err := insert("a", 2)(tx); err == nil {
			t.Error("a write inside Read succeeded")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := count(t, db, "a"); got != 1 {
		t.Errorf("got %d rows, want 1", got)
	}
}

func TestQueryStops(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	endless := "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c"
	stop := errors.New("enough")
	if err := db.Query(t.Context(), endless, func(sqlitex.Row) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("after the function's error: got %v, want it", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := db.Query(ctx, endless, func(sqlitex.Row) error { cancel(stop); return nil }); !errors.Is(err, stop) {
		t.Errorf("after the end of the context: got %v, want its cause", err)
	}
	if got := count(t, db, "a"); got != 0 {
		t.Errorf("the connection is unusable: %d", got)
	}
}

func TestValuesComeBackAsTheyWereStored(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	type row struct {
		Int   int64
		Text  string
		Blob  []byte
		Bool  bool
		Float float64
		Null  bool
	}
	for _, want := range []row{
		{0, "", nil, false, 0, true},
		{-1 << 63, "a\x00b\xff", []byte{0, 255}, true, 0.25, true},
		{1<<63 - 1, strings.Repeat("é", 100_000), bytes.Repeat([]byte{7}, 1<<20), true, -1e300, true},
	} {
		var got row
		err := db.QueryRow(t.Context(), "SELECT ?, ?, ?, ?, ?, ? IS NULL", want.Int, want.Text, want.Blob, want.Bool, want.Float, nil).
			Scan(&got.Int, &got.Text, &got.Blob, &got.Bool, &got.Float, &got.Null)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestMisuseIsAnError(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	var n int
	var c chan int
	cases := map[string]func() error{
		"no rows":            func() error { return db.QueryRow(t.Context(), "SELECT 1 WHERE 0").Scan(&n) },
		"too few arguments":  func() error { return db.QueryRow(t.Context(), "SELECT ?").Scan(&n) },
		"too many arguments": func() error { return db.QueryRow(t.Context(), "SELECT 1", 1).Scan(&n) },
		"argument type":      func() error { return db.QueryRow(t.Context(), "SELECT ?", c).Scan(&n) },
		"destination type":   func() error { return db.QueryRow(t.Context(), "SELECT 1").Scan(&c) },
		"destinations":       func() error { return db.QueryRow(t.Context(), "SELECT 1").Scan(&n, &n) },
		"no statement":       func() error { return db.QueryRow(t.Context(), "").Scan(&n) },
		"two statements":     func() error { return db.QueryRow(t.Context(), "SELECT 1; SELECT 2").Scan(&n) },
	}
	for name, call := range cases {
		for range 10 { // more often than there are connections
			if err := call(); err == nil || (name == "no rows") != errors.Is(err, sqlitex.ErrNoRows) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

func TestClosedDatabaseRefusesEverything(t *testing.T) {
	t.Parallel()
	db := openTemp(t)
	if err := errors.Join(db.Write(t.Context(), false, insert("a", 1)), db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	calls := map[string]error{
		"Write":    db.Write(t.Context(), false, insert("a", 2)),
		"Query":    db.Query(t.Context(), "SELECT 1", nil),
		"QueryRow": db.QueryRow(t.Context(), "SELECT 1").Scan(),
		"Read":     db.Read(t.Context(), nil),
	}
	for name, err := range calls {
		if !errors.Is(err, sqlitex.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
}

func TestCloseFinishesQueuedWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := open(t, path, options())
	acknowledged := make(chan int, 100)
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			switch err := db.Write(context.Background(), false, insert("a", n)); {
			case err == nil:
				acknowledged <- n
			case !errors.Is(err, sqlitex.ErrClosed):
				t.Error(err)
			}
		})
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if got := count(t, open(t, path, options()), "a"); got != len(acknowledged) {
		t.Errorf("got %d rows, want the %d acknowledged", got, len(acknowledged))
	}
}

func TestHooksSeeEveryCommit(t *testing.T) {
	t.Parallel()
	var got []string
	opt := options()
	opt.BeforeCommit = func(n int64) { got = append(got, fmt.Sprint("before ", n)) }
	opt.AfterCommit = func(n int64) { got = append(got, fmt.Sprint("after ", n)) }
	db := open(t, filepath.Join(t.TempDir(), "x.db"), opt)
	boom := errors.New("boom")
	err := errors.Join(
		db.Write(t.Context(), false, insert("a", 1)),
		db.Write(t.Context(), false, func(*sqlitex.Tx) error { return boom }),
		db.Write(t.Context(), true, insert("a", 2)),
	)
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"before 1", "after 1", "before 2", "after 2"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLogStaysBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := open(t, path, options())
	data := make([]byte, 100_000)
	for n := range 800 { // 80 MB
		err := db.Write(t.Context(), false, func(tx *sqlitex.Tx) error {
			_, err := tx.Exec("INSERT INTO t(owner, n, data) VALUES('a', ?, ?)", n, data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(32 << 20); info.Size() > limit {
		t.Errorf("the log has %d bytes, want at most %d", info.Size(), limit)
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	db := open(t, filepath.Join(dir, "x?y%20#z.db"), options())
	if err := db.Write(t.Context(), false, insert("a", 1)); err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		got[filepath.Base(path)] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{"b": fs.ModeDir | 0o700, "x?y%20#z.db": 0o600, "x?y%20#z.db-wal": 0o600, "x?y%20#z.db-shm": 0o600}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSchemasMigrateOnceAndRefuseToGoBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	v1 := sqlitex.Schema{Name: "a", Steps: []string{"CREATE TABLE a(x); INSERT INTO a VALUES(1)"}}
	v2 := sqlitex.Schema{Name: "a", Steps: append(v1.Steps, "ALTER TABLE a ADD COLUMN y; UPDATE a SET y = x + 1")}
	other := sqlitex.Schema{Name: "b", Steps: []string{"CREATE TABLE b(x)"}}
	for _, opt := range []sqlitex.Options{
		{Program: "bdk v1", Schemas: []sqlitex.Schema{v1}},
		{Program: "bdk v1", Schemas: []sqlitex.Schema{v1}},
		{Program: "bdk v2", Schemas: []sqlitex.Schema{v2, other}},
		{Program: "bdk v3", Schemas: []sqlitex.Schema{v2}},
	} {
		if err := open(t, path, opt).Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := sqlitex.Open(t.Context(), path, sqlitex.Options{Program: "bdk v1", Schemas: []sqlitex.Schema{v1}})
	if !errors.Is(err, sqlitex.ErrNewer) || !strings.Contains(err.Error(), "run bdk v2 or newer") {
		t.Errorf("got %v, want ErrNewer that names bdk v2", err)
	}
	broken := sqlitex.Schema{Name: "a", Steps: append(v2.Steps, "CREATE TABLE c(x)", "CREATE TABLE c(x)")}
	_, err = sqlitex.Open(t.Context(), path, sqlitex.Options{Schemas: []sqlitex.Schema{broken}})
	if err == nil || !strings.Contains(err.Error(), `schema "a" to version 4`) {
		t.Errorf("got %v, want the failed step", err)
	}
	var y, tables int
	db := open(t, path, sqlitex.Options{Schemas: []sqlitex.Schema{v2}})
	if err := db.QueryRow(t.Context(), "SELECT y, (SELECT count(*) FROM sqlite_schema WHERE name = 'c') FROM a").Scan(&y, &tables); err != nil {
		t.Fatal(err)
	}
	if y != 2 || tables != 0 {
		t.Errorf("got y = %d and %d tables of a failed migration, want 2 and 0", y, tables)
	}
}

func TestOpenRefusesFilesThatAreNotItsOwn(t *testing.T) {
	t.Parallel()
	text := func(t *testing.T, path string) error {
		t.Helper()
		return os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600)
	}
	damaged := func(t *testing.T, path string) error {
		t.Helper()
		if err := open(t, path, options()).Close(); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, 4000), 90)
		return errors.Join(err, f.Close())
	}
	foreign := func(t *testing.T, path string) error {
		t.Helper()
		if err := open(t, path, options()).Close(); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte{0, 0, 0, 1}, 68) // the application id
		return errors.Join(err, f.Close())
	}
	newer := func(t *testing.T, path string) error {
		t.Helper()
		if err := open(t, path, options()).Close(); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte{0, 0, 0, 9}, 60) // the user version
		return errors.Join(err, f.Close())
	}
	directory := func(t *testing.T, path string) error { t.Helper(); return os.Mkdir(path, 0o700) }
	for name, tc := range map[string]struct {
		make func(*testing.T, string) error
		want error
	}{
		"text":      {text, sqlitex.ErrBadFile},
		"damaged":   {damaged, sqlitex.ErrBadFile},
		"foreign":   {foreign, sqlitex.ErrBadFile},
		"newer":     {newer, sqlitex.ErrNewer},
		"directory": {directory, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.db")
			if err := tc.make(t, path); err != nil {
				t.Fatal(err)
			}
			_, err := sqlitex.Open(t.Context(), path, options())
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %v naming the file", err, tc.want)
			}
		})
	}
}

func childProcess(t *testing.T, path string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(append(os.Environ(), childEnv+"="+path), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	for _, at := range []int{1, 300, 3000} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		_, _ = os.RemoveAll(path+"-wal"), os.RemoveAll(path+"-shm")
		cmd, lines := childProcess(t, path)
		acknowledged := 0
		for lines.Scan() {
			acknowledged++
			if acknowledged == at {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed")
		}
		db := open(t, path, options())
		if got := count(t, db, "child"); got < acknowledged || acknowledged < at {
			t.Errorf("got %d rows, %d were acknowledged", got, acknowledged)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTwoProcessesShareAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	cmd, lines := childProcess(t, path)
	db := open(t, path, options()) // at the same time as the child
	acknowledged := 0
	for lines.Scan() {
		acknowledged++
		if err := db.Write(t.Context(), false, insert("parent", acknowledged)); err != nil {
			t.Error(err)
		}
		if acknowledged == 500 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if got := count(t, db, "parent"); got != acknowledged || acknowledged < 500 {
		t.Errorf("got %d rows of the parent, want %d", got, acknowledged)
	}
	if got := count(t, db, "child"); got < acknowledged {
		t.Errorf("got %d rows of the child, want at least %d", got, acknowledged)
	}
}

func TestLockedDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for the busy timeout of five seconds")
	}
	path := filepath.Join(t.TempDir(), "x.db")
	a, b := open(t, path, options()), open(t, path, options())
	release := gate(t, a)
	err := b.Write(t.Context(), false, insert("b", 1))
	release()
	if got := bdkerr.CodeOf(err); got != bdkerr.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
	if err := b.Write(t.Context(), false, insert("b", 2)); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
}

func TestManyOpenANewFileAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			db, err := sqlitex.Open(t.Context(), path, options())
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(db.Write(t.Context(), false, insert("a", n)), db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := count(t, open(t, path, options()), "a"); got != 8 {
		t.Errorf("got %d rows, want 8", got)
	}
}
