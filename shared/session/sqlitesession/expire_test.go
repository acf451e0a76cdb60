package sqlitesession_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

func TestExpiryLeavesNothingInTheFile(t *testing.T) {
	t.Parallel()
	d := open(t, filepath.Join(t.TempDir(), "bdk.db"))
	s := session.New(d, session.Options{Clock: clock.Fixed(goldenTime), TTL: time.Hour})
	for range 2 {
		acc := goldenStart(t, s, session.Start{Key: session.RequestKey{Name: "key"}})
		if acc.Repeated {
			acc = goldenStart(t, s, session.Start{})
		}
		w := goldenOpen(t, s, acc)
		for range 25 { // more than one write of Expire removes
			fatal(t, second(w.Append(t.Context(), skills(100)...)))
		}
		fatal(t, s.PutSnapshot(t.Context(), acc.SessionID, session.Snapshot{Next: 1}))
		fatal(t, second(w.Finish(t.Context(), event.TurnCompleted{}, event.SessionWaiting{})))
	}
	n, err := d.Expire(t.Context(), goldenTime.Add(24*time.Hour), 10)
	fatal(t, err)
	if n != 3 {
		t.Errorf("removed %d sessions and keys, want 3", n)
	}
	got := make(map[string]int)
	for _, table := range []string{"sessions", "session_events", "session_snapshots", "session_keys", "sessions_trash"} {
		var rows int
		fatal(t, d.db.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows))
		got[table] = rows
	}
	want := map[string]int{"sessions": 0, "session_events": 0, "session_snapshots": 0, "session_keys": 0, "sessions_trash": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows left (-want +got):\n%s", diff)
	}
}

func skills(n int) []event.Data {
	all := make([]event.Data, n)
	for i := range all {
		all[i] = event.SkillLoaded{Name: "name"}
	}
	return all
}
