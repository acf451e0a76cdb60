package sqlitesession_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/sessiontest"
)

// maxBytesPerTurn is the budget of a turn of seven events in a session of its own, with the row and all indexes.
const maxBytesPerTurn = 6000

func TestATurnStaysWithinItsDiskBudget(t *testing.T) {
	t.Parallel()
	const clients, each = 16, 50
	dir := t.TempDir()
	path := filepath.Join(dir, "bdk.db")
	d := open(t, path)
	s := session.New(d, session.Options{Holder: "here", Lease: time.Minute})
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				sessiontest.Turn(t, s)
			}
		})
	}
	wg.Wait()
	if err := d.db.Close(); err != nil { // moves the log into the file
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	perTurn := size / (clients * each)
	t.Logf("%d bytes a turn", perTurn)
	if perTurn > maxBytesPerTurn || perTurn == 0 {
		t.Errorf("a turn takes %d bytes, want at most %d", perTurn, maxBytesPerTurn)
	}
}
