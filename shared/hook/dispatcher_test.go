package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
)

// bed is a store of sessions whose events are told.
type bed struct {
	sessions *session.Store
	*hook.Dispatcher
}

func newBed(t *testing.T, cursors *hook.Cursors, subs ...hook.Subscriber) *bed {
	t.Helper()
	b := &bed{}
	b.Dispatcher = hook.NewDispatcher(t.Context(), hook.Options{
		Sessions: func() *session.Store { return b.sessions }, Cursors: cursors, Log: slog.New(slog.DiscardHandler),
	})
	b.sessions = session.New(memsession.New(), session.Options{Committed: b.Told})
	b.Subscribe(subs...)
	return b
}

func (b *bed) start(t *testing.T) session.Accepted {
	t.Helper()
	acc, err := b.sessions.Start(t.Context(), session.Start{Agent: "a", Owner: "ann", Message: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	return acc
}

// seen is what a subscriber was told, by session.
type seen struct {
	mu  sync.Mutex
	all map[string][]int64
}

func (s *seen) add(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string][]int64{}
	}
	s.all[e.SessionID] = append(s.all[e.SessionID], e.Index)
}

func (s *seen) of(id string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all[id])
}

func all(event.Event) bool { return true }

// Whoever appends, and however many at once: each event is told once, in order, and one at a time.
func TestEventsAreToldInOrder(t *testing.T) {
	t.Parallel()
	var got seen
	var running sync.Map
	b := newBed(t, nil, hook.Subscriber{Name: "s", Wants: all, Handle: func(_ context.Context, e event.Event) error {
		if _, busy := running.LoadOrStore(e.SessionID, true); busy {
			t.Error("two events of a session are told at once")
		}
		got.add(e)
		running.Delete(e.SessionID)
		return nil
	}})
	const sessions, writers, each = 4, 8, 20
	var ids []string
	var group sync.WaitGroup
	for range sessions {
		id := b.start(t).SessionID
		ids = append(ids, id)
		for range writers {
			group.Go(func() {
				for range each {
					if _, err := b.sessions.Record(t.Context(), id, "x", 0, event.SkillLoaded{Name: "s"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	b.Close(t.Context())
	for _, id := range ids {
		list := got.of(id)
		if len(list) != 2+writers*each {
			t.Errorf("%d events were told of %d", len(list), 2+writers*each)
		}
		for i, index := range list {
			if index != int64(i) {
				t.Fatalf("event %d was told in place of %d", index, i)
			}
		}
	}
}

// A slow subscriber holds the next events of its session, but no other session, no other subscriber and no append.
func TestSlowSubscribersHoldTheirSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow, quick seen
		var first atomic.Value
		b := newBed(t, nil,
			hook.Subscriber{Name: "slow", Wants: all, Handle: func(_ context.Context, e event.Event) error {
				if first.CompareAndSwap(nil, e.SessionID) || first.Load() == e.SessionID {
					time.Sleep(time.Second)
				}
				slow.add(e)
				return nil
			}},
			hook.Subscriber{Name: "quick", Wants: all, Handle: func(_ context.Context, e event.Event) error { quick.add(e); return nil }},
		)
		begin := time.Now()
		acc := b.start(t)
		synctest.Wait()
		other := b.start(t)
		synctest.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("the appends took %s", took)
		}
		if len(quick.of(acc.SessionID)) != 2 || len(slow.of(other.SessionID)) != 2 {
			t.Error("others wait for the slow one")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := slow.of(acc.SessionID); len(got) != 2 {
			t.Errorf("got %v", got)
		}
		b.Close(t.Context())
	})
}

// Fifty events a second in twenty sessions, and a subscriber that takes two seconds for each: the other one is told each at once.
func TestASlowSubscriberLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const sessions, rate, seconds = 20, 50, 10
		var mu sync.Mutex
		var slowest time.Duration
		told := 0
		b := newBed(t, nil,
			hook.Subscriber{Name: "slow", Wants: all, Handle: func(ctx context.Context, _ event.Event) error {
				select {
				case <-time.After(2 * time.Second):
				case <-ctx.Done():
				}
				return nil
			}},
			hook.Subscriber{Name: "quick", Wants: all, Handle: func(_ context.Context, e event.Event) error {
				mu.Lock()
				defer mu.Unlock()
				slowest = max(slowest, time.Since(e.At))
				told++
				return nil
			}},
		)
		var ids []string
		for range sessions {
			ids = append(ids, b.start(t).SessionID)
		}
		for i := range rate * seconds {
			if _, err := b.sessions.Record(t.Context(), ids[i%sessions], "x", 0, event.SkillLoaded{Name: "s"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second / rate)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.Close(ctx)
		if want := 2*sessions + rate*seconds; told != want || slowest >= time.Second {
			t.Errorf("told %d of %d, the slowest after %s", told, want, slowest)
		}
	})
}

// An error or a panic ends nothing: the next event follows.
func TestFaultsAreSkipped(t *testing.T) {
	t.Parallel()
	var got seen
	b := newBed(t, nil, hook.Subscriber{Name: "s", Wants: all, Handle: func(_ context.Context, e event.Event) error {
		got.add(e)
		if e.Index == 0 {
			panic("boom")
		}
		return errors.New("no")
	}})
	id := b.start(t).SessionID
	b.Close(t.Context())
	if diff := cmp.Diff([]int64{0, 1}, got.of(id)); diff != "" {
		t.Error(diff)
	}
}

// With Retry an event is told again until it is accepted, before the next one; what is never accepted is skipped in the end.
func TestRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got seen
		fails := map[int64]int{0: 2, 1: 1000}
		cursors := hook.NewCursors(kv.New(memkv.New(), kv.Options{}), "a")
		b := newBed(t, cursors, hook.Subscriber{Name: "s", Retry: true, Wants: all, Handle: func(_ context.Context, e event.Event) error {
			got.add(e)
			if fails[e.Index]--; fails[e.Index] >= 0 {
				return errors.New("not yet")
			}
			return nil
		}})
		id := b.start(t).SessionID
		if _, err := b.sessions.Record(t.Context(), id, "x", 0, event.SkillLoaded{Name: "s"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		b.Close(t.Context())
		want := []int64{0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2}
		if diff := cmp.Diff(want, got.of(id)); diff != "" {
			t.Error(diff)
		}
		if at, err := cursors.At(t.Context(), "s", id); at != 2 || err != nil {
			t.Errorf("the cursor is at %d, %v", at, err)
		}
	})
}

// What waits for long keeps no memory: it is read again.
func TestManyLargeEventsWait(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	var texts []string
	b := newBed(t, nil, hook.Subscriber{Name: "s", Wants: all, Handle: func(_ context.Context, e event.Event) error {
		<-hold
		var data struct{ Name string }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Error(err)
		}
		if e.Type == event.TypeSkillLoaded {
			texts = append(texts, data.Name[:8])
		}
		return nil
	}})
	id := b.start(t).SessionID
	var want []string
	for i := range 40 {
		name := fmt.Sprintf("%08d", i)
		want = append(want, name)
		if _, err := b.sessions.Record(t.Context(), id, "x", 0, event.SkillLoaded{Name: name + strings.Repeat("x", 1<<20)}); err != nil {
			t.Fatal(err)
		}
	}
	close(hold)
	b.Close(t.Context())
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// Close does not wait longer than it may; nothing is told after it.
func TestCloseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got seen
		b := newBed(t, nil, hook.Subscriber{Name: "s", Wants: all, Handle: func(ctx context.Context, e event.Event) error {
			<-ctx.Done()
			got.add(e)
			return nil
		}})
		id := b.start(t).SessionID
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		b.Close(ctx)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Close took %s", took)
		}
		b.start(t)
		synctest.Wait()
		if diff := cmp.Diff([]int64{0}, got.of(id)); diff != "" {
			t.Error(diff)
		}
	})
}

// Of all who advance a cursor to an index one does, and nobody moves it back.
func TestCursors(t *testing.T) {
	t.Parallel()
	c := hook.NewCursors(kv.New(memkv.New(), kv.Options{}), "a")
	if at, err := c.At(t.Context(), "s", "1"); at != -1 || err != nil {
		t.Errorf("a new cursor is at %d, %v", at, err)
	}
	const to = 20
	var wins [to]int
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range to {
				moved, err := c.Advance(t.Context(), "s", "1", int64(i))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				if moved {
					wins[i]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for i, n := range wins {
		if n > 1 || i == to-1 && n != 1 {
			t.Errorf("%d callers advanced to %d", n, i)
		}
	}
	if moved, err := c.Advance(t.Context(), "s", "1", 3); moved || err != nil {
		t.Errorf("it was moved back: %v", err)
	}
	if moved, err := c.Advance(t.Context(), "s", "2", 0); !moved || err != nil {
		t.Errorf("another session's: %v, %v", moved, err)
	}
}
