package dynamosession_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Every write but the last of a call is spoilt in one way. Nothing of that may be seen.
func TestFaultsOfSingleRequestsAreNotSeen(t *testing.T) {
	t.Parallel()
	e := dynamotest.Start(t)
	for name, fault := range map[string]dynamotest.Fault{
		"the answer is lost": dynamotest.Lost, "the request is lost": dynamotest.Dropped, "another transaction is met": dynamotest.Meets,
		"the service is busy": dynamotest.Throttled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spoilt := 0
			transport := &dynamotest.Transport{Spoil: func(operation string, try int) dynamotest.Fault {
				read := operation == "GetItem" || operation == "Query"
				if read && (fault == dynamotest.Meets || fault == dynamotest.Throttled) || try%2 == 0 {
					return dynamotest.None
				}
				spoilt++
				return fault
			}}
			conversation(t, open(t, e, transport))
			if spoilt < 8 {
				t.Errorf("%d requests were spoilt: the test proves nothing", spoilt)
			}
		})
	}
}

// conversation makes each kind of write once and checks what came of it.
func conversation(t *testing.T, d session.Driver) {
	t.Helper()
	ctx := t.Context()
	s := session.New(d, session.Options{Holder: "here", Lease: time.Minute})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	acc, err := s.Start(ctx, session.Start{Agent: "a", Owner: "o", Message: "m", Key: session.RequestKey{Name: "k"}})
	must(err)
	w, err := s.Open(ctx, acc.SessionID, acc.TurnID)
	must(err)
	must(w.Replay(ctx, 0, func(event.Event) error { return nil }))
	_, err = w.Append(ctx, event.TurnStarted{})
	must(err)
	_, err = w.Append(ctx, event.SkillLoaded{}, event.SkillLoaded{})
	must(err)
	row, err := s.Get(ctx, acc.SessionID)
	must(err)
	must(s.Claim(ctx, row))
	must(s.PutSnapshot(ctx, acc.SessionID, session.Snapshot{Next: 2, Data: []byte("snapshot")}))
	_, err = w.Finish(ctx, event.TurnCompleted{}, event.SessionWaiting{})
	must(err)
	acc, err = s.Send(ctx, session.Message{SessionID: acc.SessionID, Owner: "o", Token: acc.Token, Text: "again"})
	must(err)
	_, err = s.Stop(ctx, acc.SessionID, acc.TurnID)
	must(err)

	log, err := d.Events(ctx, acc.SessionID, 0, 100)
	must(err)
	var got []event.Type
	for _, e := range log {
		got = append(got, e.Type)
	}
	want := []event.Type{
		event.TypeSessionStarted, event.TypeMessageReceived, event.TypeTurnStarted, event.TypeSkillLoaded, event.TypeSkillLoaded,
		event.TypeTurnCompleted, event.TypeSessionWaiting, event.TypeMessageReceived, event.TypeTurnFailed, event.TypeSessionWaiting,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
	row, err = s.Get(ctx, acc.SessionID)
	must(err)
	if row.Version != 5 { // start, claim, finish, send, stop
		t.Errorf("got version %d, want 5", row.Version)
	}
	snap, err := s.Snapshot(ctx, acc.SessionID)
	must(err)
	if diff := cmp.Diff(session.Snapshot{Next: 2, Data: []byte("snapshot")}, snap); diff != "" {
		t.Errorf("snapshot (-want +got)\n%s", diff)
	}
}

// The service need not tell every reason why a transaction was cancelled.
func TestOwnBatchIsKnownAgainWhateverReasonIsGiven(t *testing.T) {
	t.Parallel()
	transport := &dynamotest.Transport{Spoil: func(string, int) dynamotest.Fault { return dynamotest.Terse }}
	d := open(t, dynamotest.Start(t), transport)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	batch := func(eventID string) session.Batch {
		started := event.New("", event.SessionStarted{})
		started.SessionID, started.ID, started.At = "s1", eventID, now
		return session.Batch{
			SessionID: "s1", Events: []event.Event{started},
			Row: &session.Record{ID: "s1", Agent: "a", Owner: "o"}, Key: &session.Key{Name: "k", ExpiresAt: now.Add(time.Hour)},
		}
	}
	for range 2 {
		if err := d.Commit(t.Context(), batch("mine")); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := errors.AsType[*session.KeyError](d.Commit(t.Context(), batch("other"))); !ok {
		t.Error("the batch of somebody else was taken for the own")
	}
}

func TestServiceThatStaysBusyIsUnavailable(t *testing.T) {
	t.Parallel()
	e := dynamotest.Start(t)
	for name, fault := range map[string]dynamotest.Fault{"cut off": dynamotest.Dropped, "contended": dynamotest.Meets} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, e, &dynamotest.Transport{Spoil: func(string, int) dynamotest.Fault { return fault }})
			row := &session.Record{ID: "s1", Agent: "a", Owner: "o"}
			err := d.Commit(t.Context(), session.Batch{SessionID: "s1", Row: row})
			if got := bdkerr.CodeOf(err); got != bdkerr.Unavailable {
				t.Errorf("got error %v, want unavailable", err)
			}
			cause := errors.New("gave up")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			if err := d.Commit(ctx, session.Batch{SessionID: "s1", Row: row}); !errors.Is(err, cause) {
				t.Errorf("got error %v, want the cause", err)
			}
		})
	}
}

func TestBatchOfMoreThanATransactionIsRefused(t *testing.T) {
	t.Parallel()
	d := open(t, dynamotest.Start(t), &dynamotest.Transport{})
	events := make([]event.Event, 101)
	for i := range events {
		events[i] = event.New("", event.SkillLoaded{})
		events[i].SessionID, events[i].Index, events[i].ID = "s1", int64(i+1), strings.Repeat("x", i+1)
	}
	err := d.Commit(t.Context(), session.Batch{SessionID: "s1", At: 1, Events: events})
	if err == nil || !strings.Contains(err.Error(), "at most 100") {
		t.Errorf("got error %v", err)
	}
	if err := d.Commit(t.Context(), session.Batch{SessionID: "s1", At: 1, Events: events[:100]}); err != nil {
		t.Error(err)
	}
}
