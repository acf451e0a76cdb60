package reminder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/reminder"
)

// inbox is where reminders are sent: once for each id, as a session store does.
type inbox struct {
	mu    sync.Mutex
	got   []string
	seen  map[string]bool
	fault error
}

func (i *inbox) send(_ context.Context, r bdk.ReminderRecord, owner string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fault != nil {
		return i.fault
	}
	if i.seen == nil {
		i.seen = map[string]bool{}
	}
	if !i.seen[r.ID] {
		i.seen[r.ID] = true
		i.got = append(i.got, fmt.Sprintf("%s %s %s %s", r.SessionID, owner, r.Message, time.Now().UTC().Format("15:04:05")))
	}
	return nil
}

func (i *inbox) set(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fault = err
}

func (i *inbox) take() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	got := i.got
	i.got = nil
	return got
}

func store(d kv.Driver) *reminder.Store {
	return reminder.New(kv.New(d, kv.Options{}), reminder.Options{Agent: "test"})
}

func create(t *testing.T, s *reminder.Store, session string, r bdk.Reminder) bdk.ReminderRecord {
	t.Helper()
	record, err := s.Create(t.Context(), session, "ann", r)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func serve(t *testing.T, s *reminder.Store, to *inbox) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, to.send)
	}()
	return func() { cancel(); <-done }
}

func messages(t *testing.T, s *reminder.Store, session string) []string {
	t.Helper()
	list, err := s.List(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range list {
		all = append(all, r.Message)
	}
	return all
}

func TestRemindersAreSentOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var to inbox
		d := memkv.New()
		s := store(d)
		stop := serve(t, s, &to)
		now := time.Now()
		create(t, s, "ses_1", bdk.Reminder{Message: "later", At: now.Add(90 * time.Minute)})
		create(t, s, "ses_1", bdk.Reminder{Message: "soon", After: 1500 * time.Millisecond})
		create(t, s, "ses_2", bdk.Reminder{Message: "late", At: now.Add(-time.Hour)})
		other := create(t, store(d), "ses_2", bdk.Reminder{Message: "of another process", After: 20 * time.Second}) // which is not told of it
		if d := cmp.Diff([]string{"soon", "later"}, messages(t, s, "ses_1")); d != "" {
			t.Error(d)
		}
		time.Sleep(time.Minute)
		want := []string{"ses_2 ann late 00:00:00", "ses_1 ann soon 00:00:01", "ses_2 ann of another process 00:00:20"}
		if d := cmp.Diff(want, to.take()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if err := s.Cancel(t.Context(), "ses_2", other.ID); !errors.Is(err, bdk.ErrNotFound) {
			t.Errorf("one that was sent: %v", err)
		}
		stop()
		time.Sleep(2 * time.Hour)
		stop = serve(t, store(d), &to) // it survives its process
		synctest.Wait()
		stop()
		if d := cmp.Diff([]string{"ses_1 ann later 02:01:00"}, to.take()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if list, err := s.All(t.Context(), 10); err != nil || len(list) > 0 {
			t.Errorf("left over: %v, %v", list, err)
		}
		if entries, err := kv.New(d, kv.Options{}).List(t.Context(), "", "", 0); err != nil || len(entries) > 0 {
			t.Errorf("left over: %v, %v", entries, err)
		}
	})
}

func TestRefusedReminders(t *testing.T) {
	t.Parallel()
	s := store(memkv.New())
	now := time.Now()
	for want, r := range map[string]bdk.Reminder{
		"no Message":        {Message: " \n", After: 1},
		"at most 16384":     {Message: strings.Repeat("x", reminder.MaxMessage+1), After: 1},
		"must be UTF-8":     {Message: "\xff", After: 1},
		"at most 256":       {Message: "x", Key: strings.Repeat("k", 257), After: 1},
		"either At or":      {Message: "x"},
		"either At or Aft":  {Message: "x", After: 1, At: now},
		"more than 0":       {Message: "x", After: -1},
		"a year ahead at m": {Message: "x", After: 367 * 24 * time.Hour},
	} {
		_, err := s.Create(t.Context(), "ses_1", "ann", r)
		if bdkerr.CodeOf(err) != bdkerr.InvalidRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	for _, id := range []string{"", "rem_", "rem_x", "x", strings.Repeat("rem_", 100), "rem_\x00"} {
		if err := s.Cancel(t.Context(), "ses_1", id); err == nil {
			t.Errorf("%q was cancelled", id)
		}
	}
	if list, err := s.All(t.Context(), 10); err != nil || len(list) > 0 {
		t.Errorf("left over: %v, %v", list, err)
	}
}

func TestKeysReplaceAndCancelRemoves(t *testing.T) {
	t.Parallel()
	s := store(memkv.New())
	first := create(t, s, "ses_1", bdk.Reminder{Message: "one", Key: "k", After: time.Hour})
	second := create(t, s, "ses_1", bdk.Reminder{Message: "two", Key: "k", After: time.Minute})
	create(t, s, "ses_1", bdk.Reminder{Message: "three", After: 2 * time.Minute})
	create(t, s, "ses_2", bdk.Reminder{Message: "four", Key: "k", After: time.Minute})
	if d := cmp.Diff([]string{"two", "three"}, messages(t, s, "ses_1")); d != "" {
		t.Error(d)
	}
	for _, c := range []struct{ session, id string }{{"ses_1", first.ID}, {"ses_2", second.ID}} {
		if err := s.Cancel(t.Context(), c.session, c.id); !errors.Is(err, bdk.ErrNotFound) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if err := s.Cancel(t.Context(), "ses_1", second.ID); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"three"}, messages(t, s, "ses_1")); d != "" {
		t.Error(d)
	}
}

// Many create at once: a session has as many as it may have, and one of each key.
func TestSessionsHaveALimit(t *testing.T) {
	t.Parallel()
	s := store(memkv.New())
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for range reminder.MaxOpen + 10 {
		wg.Go(func() {
			_, err := s.Create(t.Context(), "ses_1", "ann", bdk.Reminder{Message: "x", After: time.Hour})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case bdkerr.CodeOf(err) == bdkerr.Conflict:
				refused++
			case err != nil:
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Create(t.Context(), "ses_2", "ann", bdk.Reminder{Message: "x", Key: "k", After: time.Hour}); err != nil && bdkerr.CodeOf(err) != bdkerr.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := len(messages(t, s, "ses_1"))
	if got > reminder.MaxOpen || got+refused != reminder.MaxOpen+10 || len(messages(t, s, "ses_2")) != 1 {
		t.Errorf("%d and %d, %d refused", got, len(messages(t, s, "ses_2")), refused)
	}
	if all, err := s.All(t.Context(), 1000); err != nil || len(all) != got+1 {
		t.Errorf("there are %d, %v; want %d", len(all), err, got+1)
	}
}

// A reminder waits for the end of a turn, and can be cancelled meanwhile.
func TestBusySessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := inbox{fault: bdkerr.New(bdkerr.SessionBusy, "a turn runs")}
		s := store(memkv.New())
		stop := serve(t, s, &to)
		defer stop()
		gone := create(t, s, "ses_1", bdk.Reminder{Message: "gone", After: time.Second})
		create(t, s, "ses_1", bdk.Reminder{Message: "stays", After: 2 * time.Second})
		time.Sleep(time.Hour)
		if err := s.Cancel(t.Context(), "ses_1", gone.ID); err != nil {
			t.Error(err)
		}
		to.set(errors.New("the store is away"))
		time.Sleep(time.Minute)
		to.set(nil)
		time.Sleep(reminder.Look)
		if got := to.take(); len(got) != 1 || !strings.Contains(got[0], "stays") {
			t.Errorf("got %q", got)
		}
	})
}

// Sessions that have ended, or are gone, are not reminded, and nobody is told again and again.
func TestEndedSessions(t *testing.T) {
	t.Parallel()
	for _, code := range []bdkerr.Code{bdkerr.NotFound, bdkerr.SessionClosed, bdkerr.Forbidden} {
		s := store(memkv.New())
		r := create(t, s, "ses_1", bdk.Reminder{Message: "x", After: 1})
		to := inbox{fault: bdkerr.New(code, "no")}
		if err := s.Fire(t.Context(), r.ID, to.send); !errors.Is(err, bdk.ErrNotFound) {
			t.Errorf("%s: %v", code, err)
		}
		if left := messages(t, s, "ses_1"); left != nil {
			t.Errorf("%s: left %q", code, left)
		}
	}
}

// Five processes send what is due, all at once: each reminder is sent once.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	var to inbox
	d := memkv.New()
	for i := range 20 {
		create(t, store(d), fmt.Sprintf("ses_%d", i), bdk.Reminder{Message: "x", After: 1})
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := store(d).FireDue(t.Context(), time.Now().Add(time.Minute), to.send); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := to.take(); len(got) != 20 {
		t.Errorf("sent %d", len(got))
	}
}

// A process that died while it sent a reminder, before or after the session had it, is made up for by the next one.
func TestADeadSender(t *testing.T) {
	t.Parallel()
	for _, sent := range []bool{false, true} {
		var to inbox
		d := memkv.New()
		r := create(t, store(d), "ses_1", bdk.Reminder{Message: "x", After: 1})
		func() {
			defer func() { _ = recover() }() // nothing after it is done
			_ = store(d).Fire(t.Context(), r.ID, func(ctx context.Context, r bdk.ReminderRecord, owner string) error {
				if sent {
					_ = to.send(ctx, r, owner)
				}
				panic("killed")
			})
		}()
		if err := store(d).Cancel(t.Context(), "ses_1", r.ID); !errors.Is(err, bdk.ErrNotFound) {
			t.Errorf("sent %t: cancelled: %v", sent, err)
		}
		for range 2 {
			if _, err := store(d).FireDue(t.Context(), time.Now().Add(time.Minute), to.send); err != nil {
				t.Error(err)
			}
		}
		if got := to.take(); len(got) != 1 {
			t.Errorf("sent %t: got %q", sent, got)
		}
	}
}

// bell is an alarm that can be out of order.
type bell struct {
	fault error
	set   map[string]time.Time
}

func (b *bell) Set(_ context.Context, id string, at time.Time) error {
	b.set[id] = at
	return b.fault
}

func (b *bell) Unset(_ context.Context, id string) error {
	delete(b.set, id)
	return b.fault
}

func TestAlarms(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{nil, errors.New("no")} {
		b := &bell{fault: fault, set: map[string]time.Time{}}
		s := reminder.New(kv.New(memkv.New(), kv.Options{}), reminder.Options{Agent: "test", Alarm: b})
		r := create(t, s, "ses_1", bdk.Reminder{Message: "x", Key: "k", After: time.Hour})
		if at, ok := b.set[r.ID]; !ok || !at.Equal(r.At) {
			t.Errorf("rings at %s; want %s", at, r.At)
		}
		again := create(t, s, "ses_1", bdk.Reminder{Message: "x", Key: "k", After: time.Minute})
		if err := s.Cancel(t.Context(), "ses_1", again.ID); err != nil || len(b.set) > 0 {
			t.Errorf("%v, still rings: %v", err, b.set)
		}
	}
}
