package sqlitesession_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/sqlitesession"
)

var update = flag.Bool("update", false, "write the golden file of the newest schema; those of older schemas are never written again")

const (
	goldenAgent = "golden"
	goldenOwner = "bearer:alice"
)

var goldenTime = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// TestFilesOfEveryVersionAreUnderstood opens files that earlier versions of this package wrote: everything in them is there
// (see the .txt beside each), and conversations go on.
func TestFilesOfEveryVersionAreUnderstood(t *testing.T) {
	t.Parallel()
	newest := len(sqlitesession.Schema().Steps)
	if *update {
		writeGolden(t, goldenPath(newest))
	}
	for version := 1; version <= newest; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile(goldenPath(version))
			if err != nil {
				t.Fatalf("%v: run this test with -update once after a new schema step", err)
			}
			if len(file) > 100_000 {
				t.Errorf("the golden file has %d bytes", len(file))
			}
			want, err := os.ReadFile(goldenPath(version) + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "bdk.db")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			d := open(t, path)
			if diff := cmp.Diff(string(want), dump(t, d)); diff != "" {
				t.Errorf("content (-written +read):\n%s", diff)
			}
			goOn(t, goldenStore(d, "new"))
		})
	}
}

func goldenPath(version int) string {
	return filepath.Join("testdata", fmt.Sprintf("v%d.db", version))
}

// goldenStore returns a store whose ids are prefix1, prefix2, …
func goldenStore(d session.Driver, prefix string) *session.Store {
	n := 0
	return session.New(d, session.Options{
		Clock: clock.Fixed(goldenTime), TTL: 1000 * 24 * time.Hour, Holder: "dead", Lease: time.Minute,
		NewID: func() string { n++; return fmt.Sprint(prefix, n) },
	})
}

// writeGolden writes a chat session that waits, one whose turn runs, or is parked, and a task session that has ended.
func writeGolden(t *testing.T, path string) {
	t.Helper()
	tmp := filepath.Join(t.TempDir(), "bdk.db")
	d := open(t, tmp)
	s, ctx := goldenStore(d, "id"), t.Context()
	waiting := goldenStart(t, s, session.Start{Title: "🌍 waiting", Files: "sha256:00", Key: session.RequestKey{Name: "key", Body: []byte("body")}})
	var all []event.Data
	for _, text := range []string{"odd: \x00\xff\u2028", strings.Repeat("x", 20_000)} {
		all = append(all, event.TurnStarted{Model: "m"}, event.MessageAppended{Text: text})
	}
	w := goldenOpen(t, s, waiting)
	fatal(t, second(w.Append(ctx, all...)))
	fatal(t, second(w.Finish(ctx, event.TurnCompleted{Result: "r"}, event.SessionWaiting{})))
	fatal(t, s.PutSnapshot(ctx, waiting.SessionID, session.Snapshot{Next: 4, Data: []byte("snapshot\x00")}))
	running := goldenStart(t, s, session.Start{DryRun: true, AsOf: goldenTime.Add(-time.Hour), Purpose: "eval", Channel: "review"})
	w = goldenOpen(t, s, running)
	fatal(t, second(w.Append(ctx, event.TurnStarted{Model: "m"})))
	fatal(t, second(w.Ask(ctx, nil, event.ApprovalRequested{CallID: "call_1", ToolName: "t", ExpiresAt: goldenTime.Add(time.Hour)})))
	if parked, err := w.Park(ctx); err != nil || !parked {
		t.Fatalf("parked: %t, %v", parked, err)
	}
	task := goldenStart(t, s, session.Start{Mode: session.Task})
	fatal(t, second(goldenOpen(t, s, task).Finish(ctx, event.TurnCompleted{}, event.SessionCompleted{Result: "r"})))
	fatal(t, os.WriteFile(path+".txt", []byte(dump(t, d)), 0o600))
	fatal(t, d.db.Close())
	file, err := os.ReadFile(tmp)
	fatal(t, err)
	fatal(t, os.WriteFile(path, file, 0o600))
}

func goldenStart(t *testing.T, s *session.Store, in session.Start) session.Accepted {
	t.Helper()
	in.Agent, in.Owner, in.Message = goldenAgent, goldenOwner, "hello"
	acc, err := s.Start(t.Context(), in)
	fatal(t, err)
	return acc
}

func goldenOpen(t *testing.T, s *session.Store, acc session.Accepted) *session.Writer {
	t.Helper()
	w, err := s.Open(t.Context(), acc.SessionID, acc.TurnID)
	fatal(t, err)
	fatal(t, w.Replay(t.Context(), 0, func(event.Event) error { return nil }))
	return w
}

// dump returns all that a store says about its sessions.
func dump(t *testing.T, d session.Driver) string {
	t.Helper()
	var out strings.Builder
	rows, _, err := d.List(t.Context(), session.Query{Agent: goldenAgent, All: true, Limit: 100})
	fatal(t, err)
	for _, row := range rows {
		fmt.Fprintf(&out, "%s\n", setFields(t, row))
		snap, err := d.Snapshot(t.Context(), row.ID)
		fatal(t, err)
		fmt.Fprintf(&out, "\tsnapshot %d %q\n", snap.Next, snap.Data)
		events, err := d.Events(t.Context(), row.ID, 0, 1000)
		fatal(t, err)
		for _, e := range events {
			fmt.Fprintf(&out, "\t%s %s\n", e.ID, e.AppendJSON(nil))
		}
	}
	return out.String()
}

// setFields returns the fields of a row that are set, so that a field of tomorrow does not show.
func setFields(t *testing.T, row session.Record) []byte {
	t.Helper()
	all := make(map[string]any)
	for v, i := reflect.ValueOf(row), 0; i < v.NumField(); i++ {
		if !v.Field(i).IsZero() {
			all[v.Type().Field(i).Name] = v.Field(i).Interface()
		}
	}
	line, err := json.Marshal(all)
	fatal(t, err)
	return bytes.ReplaceAll(line, []byte(`,"Parked":false,"Approvals":null`), nil)
}

// goOn has every session of a golden file do what it would have done next.
func goOn(t *testing.T, s *session.Store) {
	t.Helper()
	waiting := goldenStart(t, s, session.Start{Key: session.RequestKey{Name: "key", Body: []byte("body")}})
	if !waiting.Repeated {
		t.Fatal("the idempotency key was forgotten")
	}
	next, err := s.Send(t.Context(), session.Message{SessionID: waiting.SessionID, Owner: goldenOwner, Token: waiting.Token, Text: "again"})
	fatal(t, err)
	fatal(t, second(goldenOpen(t, s, next).Finish(t.Context(), event.TurnCompleted{}, event.SessionWaiting{})))

	rows, _, err := s.List(t.Context(), session.Query{Agent: goldenAgent, Active: true, Limit: 10})
	fatal(t, err)
	if len(rows) != 1 {
		t.Fatalf("%d turns run, want 1", len(rows))
	}
	w := goldenOpen(t, s, session.Accepted{SessionID: rows[0].ID, TurnID: rows[0].Turn.ID})
	fatal(t, s.Claim(t.Context(), rows[0]))
	events, err := w.Finish(t.Context(), event.TurnCompleted{}, event.SessionWaiting{})
	fatal(t, err)
	if want := 3 + int64(2*len(rows[0].Turn.Approvals)); events[len(events)-2].Index != want {
		t.Errorf("the turn ended at index %d, want %d", events[len(events)-2].Index, want)
	}
	n, err := sessionsLeft(t.Context(), s)
	fatal(t, err)
	if n != 3 {
		t.Errorf("%d sessions, want 3", n)
	}
}

func sessionsLeft(ctx context.Context, s *session.Store) (int, error) {
	rows, _, err := s.List(ctx, session.Query{Agent: goldenAgent, Owner: goldenOwner, Limit: 10})
	return len(rows), err
}

func second(_ []event.Event, err error) error { return err }

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
