package sessiontest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Bench measures a driver. Open returns one over an empty store, which ends with the benchmark.
func Bench(b *testing.B, open func(b *testing.B) session.Driver) {
	b.Helper()
	b.Run("commit", func(b *testing.B) { benchCommit(b, open(b)) })
	b.Run("turn", func(b *testing.B) { benchTurn(b, open(b), 1) })
	b.Run("turns of 16 clients", func(b *testing.B) { benchTurn(b, open(b), 16) })
	b.Run("scan of 10000 events", func(b *testing.B) { benchScan(b, open(b)) })
	b.Run("list", func(b *testing.B) { benchList(b, open(b)) })
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func benchCommit(b *testing.B, d session.Driver) {
	b.Helper()
	s := session.New(d, session.Options{})
	acc, err := s.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "hello"})
	check(b, err)
	w, err := s.Open(b.Context(), acc.SessionID, acc.TurnID)
	check(b, err)
	check(b, w.Replay(b.Context(), 0, func(event.Event) error { return nil }))
	b.ReportAllocs()
	for b.Loop() {
		_, err := w.Append(b.Context(), event.SkillLoaded{Name: "name"})
		check(b, err)
	}
}

// Turn runs one turn of seven events in five commits, as the engine does for a reply without tools, in a new session.
func Turn(tb testing.TB, s *session.Store) {
	tb.Helper()
	acc, err := s.Start(tb.Context(), session.Start{Agent: "pr-approver", Owner: "bearer:alice", Message: "Please look at pull request 42."})
	check(tb, err)
	w, err := s.Open(tb.Context(), acc.SessionID, acc.TurnID)
	check(tb, err)
	check(tb, w.Replay(tb.Context(), 0, func(event.Event) error { return nil }))
	const reply = "Pull request 42 looks fine: all checks have passed and one reviewer has approved it."
	usage := &event.Usage{InputTokens: 512, OutputTokens: 24}
	for _, data := range []event.Data{
		event.TurnStarted{Model: "scripted:rules"},
		event.MessageAppended{Text: reply},
		event.MessageCompleted{Text: reply, FinishReason: "stop", Usage: usage, UsageOf: "scripted:rules"},
	} {
		_, err = w.Append(tb.Context(), data)
		check(tb, err)
	}
	_, err = w.Finish(tb.Context(), event.TurnCompleted{Result: reply, Usage: usage}, event.SessionWaiting{})
	check(tb, err)
}

func benchTurn(b *testing.B, d session.Driver, clients int) {
	b.Helper()
	s := session.New(d, session.Options{Holder: "here", Lease: time.Minute})
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	err := parallel(clients, func(int) error {
		for left.Add(-1) >= 0 {
			Turn(b, s)
		}
		return nil
	})
	check(b, err)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

func benchScan(b *testing.B, d session.Driver) {
	b.Helper()
	const n = 10_000
	s := session.New(d, session.Options{})
	acc, err := s.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "hello"})
	check(b, err)
	w, err := s.Open(b.Context(), acc.SessionID, acc.TurnID)
	check(b, err)
	check(b, w.Replay(b.Context(), 0, func(event.Event) error { return nil }))
	data := make([]event.Data, 100)
	for i := range data {
		data[i] = event.MessageAppended{Text: fmt.Sprintf("a piece of a reply, number %d, as long as they usually are", i)}
	}
	for range n / len(data) {
		_, err = w.Append(b.Context(), data...)
		check(b, err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		c, read := s.Cursor(acc.SessionID, 0), 0
		for {
			page, err := c.Read(b.Context())
			check(b, err)
			if len(page) == 0 {
				break
			}
			read += len(page)
		}
		c.Close()
		if read != n+2 {
			b.Fatalf("read %d events", read)
		}
	}
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "events/s")
}

func benchList(b *testing.B, d session.Driver) {
	b.Helper()
	const sessions, perPage = 100_000, 100
	check(b, parallel(256, func(i int) error {
		for at := i; at < sessions; at += 256 {
			id := fmt.Sprintf("ses_%026d", at*7919%sessions)
			now := time.UnixMilli(1_772_600_000_000 + int64(at/10)).UTC() // ten in a millisecond
			row := session.Record{ID: id, Agent: agent, Owner: alice, Channel: "http", Mode: session.Chat, CreatedAt: now, UpdatedAt: now}
			if err := d.Commit(b.Context(), session.Batch{SessionID: id, Row: &row}); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, kind := range []session.Query{{Owner: alice}, {All: true}} {
		name := "all"
		if kind.Owner != "" {
			name = "owner"
		}
		for _, page := range []int{1, 10, 1000} {
			q := kind
			q.Agent, q.Limit = agent, perPage
			for range page - 1 {
				_, next, err := d.List(b.Context(), q)
				check(b, err)
				q.Cursor = next
			}
			b.Run(fmt.Sprintf("%s page %d", name, page), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					rows, _, err := d.List(b.Context(), q)
					check(b, err)
					if len(rows) != perPage {
						b.Fatalf("a page of %d rows", len(rows))
					}
				}
			})
		}
	}
}
