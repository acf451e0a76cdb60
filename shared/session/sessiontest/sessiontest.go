// Package sessiontest is the conformance suite of [session.Driver] and of the rules that [session.Store] builds on it. Every
// adapter runs it.
//
// The suite asks for what the contract promises and no more: nothing is changed in two sessions at once, and rows that
// changed at different times may be listed in any order that the query does not name.
package sessiontest

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Harness makes the stores under test.
type Harness struct {
	// New returns a driver over an empty store, which ends with the test. Required.
	New func(t *testing.T) session.Driver

	// Other returns a driver over the same store as another process has it. Nil: a store has one driver, which is used twice.
	Other func(t *testing.T, d session.Driver) session.Driver

	// Plant stores e at its index whatever is before it. Nil: the medium cannot hold a log with a hole.
	Plant func(t *testing.T, d session.Driver, e event.Event)

	// Lose takes away the data of large events, which the medium keeps apart from the log. Nil: it keeps all in one place.
	Lose func(t *testing.T, d session.Driver)
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Other == nil {
		h.Other = func(_ *testing.T, d session.Driver) session.Driver { return d }
	}
	for _, part := range []struct {
		name  string
		cases []testCase
	}{
		{"commit", commitCases()},
		{"read", readCases()},
		{"list", listCases()},
		{"expire", expireCases()},
		{"accept", acceptCases()},
		{"turn", turnCases()},
		{"approval", approvalCases()},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range part.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newBench(t, h))
				})
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*bench)
}

// bench is what one case works with: a fresh store and a clock that stands still until it is moved.
type bench struct {
	*testing.T

	h      Harness
	driver session.Driver
	clock  *manualClock
	store  *session.Store // without a holder
}

var errGone = errors.New("the caller has gone")

const (
	agent = "agent"
	alice = "bearer:alice"
	bob   = "bearer:bob"
)

func newBench(t *testing.T, h Harness) *bench {
	t.Helper()
	b := &bench{T: t, h: h, driver: h.New(t), clock: &manualClock{now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), waits: make(chan time.Duration, 16)}}
	b.store = session.New(b.driver, session.Options{Clock: b.clock})
	return b
}

// must ends the test if err is not nil.
func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// wantErr checks that err is target.
func (b *bench) wantErr(err, target error) {
	b.Helper()
	if !errors.Is(err, target) {
		b.Fatalf("got error %v, want %v", err, target)
	}
}

// wantCode checks the code of err.
func (b *bench) wantCode(err error, code bdkerr.Code) {
	b.Helper()
	if err == nil || bdkerr.CodeOf(err) != code {
		b.Fatalf("got error %v, want code %s", err, code)
	}
}

func (b *bench) diff(what string, want, got any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// start accepts a new session of Alice.
func (b *bench) start() session.Accepted {
	b.Helper()
	acc, err := b.store.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "hello"})
	b.must(err)
	return acc
}

// open returns a writer of the turn that has replayed the log.
func (b *bench) open(s *session.Store, acc session.Accepted) *session.Writer {
	b.Helper()
	w, err := s.Open(b.Context(), acc.SessionID, acc.TurnID)
	b.must(err)
	b.must(w.Replay(b.Context(), 0, func(event.Event) error { return nil }))
	return w
}

// finish ends the turn well.
func (b *bench) finish(acc session.Accepted) {
	b.Helper()
	_, err := b.open(b.store, acc).Finish(b.Context(), event.TurnCompleted{Result: "done"}, event.SessionWaiting{})
	b.must(err)
}

// log returns all events of a session, read page by page, and checks their indexes.
func (b *bench) log(id string) []event.Event {
	b.Helper()
	return b.readFrom(b.store, id, 0)
}

func (b *bench) readFrom(s *session.Store, id string, from int64) []event.Event {
	b.Helper()
	c := s.Cursor(id, from)
	defer c.Close()
	var all []event.Event
	for {
		page, err := c.Read(b.Context())
		b.must(err)
		if len(page) == 0 {
			return all
		}
		for _, e := range page {
			if e.Index != from || e.SessionID != id {
				b.Fatalf("got event %d of %q, want %d of %q", e.Index, e.SessionID, from, id)
			}
			all = append(all, e)
			from++
		}
	}
}

// types returns the types of events in order.
func types(events []event.Event) []event.Type {
	all := make([]event.Type, len(events))
	for i, e := range events {
		all[i] = e.Type
	}
	return all
}

// row returns a complete row of a session that does not exist yet.
func (b *bench) row(id string) session.Record {
	now := b.clock.Now()
	return session.Record{
		ID: id, Agent: agent, Owner: alice, Channel: "http", Mode: session.Chat, Purpose: "eval", Title: "tïtle", DryRun: true,
		AsOf: time.Unix(0, 0).UTC(), Files: "sha256:00", CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour), TokenHash: "hash",
		Next: 1, Ended: "completed",
		Turn: session.Turn{ID: "turn_1", Holder: "here", Until: now.Add(time.Minute), Parked: true, Approvals: []session.Approval{
			{CallID: "call_1", ToolName: "t", Index: 7, ExpiresAt: now, Decision: "deny", By: bob, Note: "n\u00f6"}, {CallID: "call_2"},
		}},
	}
}

// create commits a session with one event.
func (b *bench) create(id string) session.Record {
	b.Helper()
	row := b.row(id)
	b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: id, Events: b.events(id, 0, event.SessionStarted{Agent: agent}), Row: &row}))
	row.Version = 1
	return row
}

// events returns complete events at consecutive indexes.
func (b *bench) events(id string, at int64, data ...event.Data) []event.Event {
	all := make([]event.Event, len(data))
	for i, d := range data {
		all[i] = event.New("", d)
		all[i].SessionID, all[i].Index, all[i].At = id, at+int64(i), b.clock.Now()
		all[i].ID = rand.Text()
	}
	return all
}

// side appends one event as a writer without a turn does, walking from at, and returns the index it got.
func (b *bench) side(id string, at int64, data event.Data) (int64, error) {
	for {
		err := b.driver.Commit(b.Context(), session.Batch{SessionID: id, At: at, Events: b.events(id, at, data)})
		var conflict *session.ConflictError
		if !errors.As(err, &conflict) {
			return at, err
		}
		at = conflict.Event.Index + 1
	}
}

// parallel runs fn n times at once and returns the errors.
func parallel(n int, fn func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// manualClock stands still until it is moved.
type manualClock struct {
	waits chan time.Duration // receives the length of each wait that begins

	mu     sync.Mutex
	now    time.Time
	timers []chan time.Time
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// move lets time pass and ends every wait.
func (c *manualClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for _, t := range c.timers {
		t <- c.now
	}
	c.timers = nil
}

func (c *manualClock) After(d time.Duration) (<-chan time.Time, func() bool) {
	t := make(chan time.Time, 1)
	c.mu.Lock()
	c.timers = append(c.timers, t)
	c.mu.Unlock()
	select {
	case c.waits <- d:
	default:
	}
	return t, func() bool { return true }
}

// soon returns a context for what must happen at once; it fails the test rather than hang.
func (b *bench) soon() context.Context {
	ctx, cancel := context.WithTimeoutCause(b.Context(), 30*time.Second, errors.New("nothing happened for 30 s"))
	b.Cleanup(cancel)
	return ctx
}
