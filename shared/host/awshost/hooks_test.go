package awshost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
)

// heard is what hooks were told.
type heard struct {
	mu  sync.Mutex
	all []string
}

// listen returns a hook that tells what it hears of ends of turns, and fails if it is to.
func (h *heard) listen(name string, fails bool) bdk.NamedHook {
	return bdk.NamedHook{Name: name, Hook: bdk.DefineHook(bdk.HookSpec{}, bdk.On(func(_ context.Context, hc *bdk.HookContext, e bdk.Event, data bdk.TurnCompleted) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, fmt.Sprint(name, " ", e.Index, " ", data.Result, " ", hc.Session.Owner))
		if fails {
			return errors.New("no")
		}
		return nil
	}))}
}

// take returns what was heard since the last time.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	slices.Sort(all)
	return all
}

// appended returns the log of a session as the stream has it: without data.
func appended(list []map[string]any) []event.Event {
	events := make([]event.Event, len(list))
	for i, e := range list {
		index, _ := e["index"].(float64)
		events[i] = event.Event{Index: int64(index), Type: event.Type(fmt.Sprint(e["type"])), SessionID: fmt.Sprint(e["sessionId"])}
	}
	return events
}

// messages takes what is in the queues.
func (c *cloud) messages() (all []hook.Message) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, body := range c.sent {
		var m hook.Message
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			c.t.Error(err)
		}
		all = append(all, m)
	}
	c.sent = nil
	return all
}

// TestRequestsOfHooks fixes what it costs that two hooks are told of the end of a turn, and that each is told once, whatever comes twice.
func TestRequestsOfHooks(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	var ears heard
	c.hooks = []bdk.NamedHook{ears.listen("audit/usage", false), ears.listen("faulty", true)}
	ann, dispatches, tells := c.client(&wire{cloud: c}), &wire{cloud: c}, &wire{cloud: c}
	dispatcher, teller := c.function(dispatches), c.function(tells)
	id, token := ann.start("hello")
	for turn := range 2 {
		if turn > 0 {
			if code, _ := ann.do("POST", "/v1/session/"+id, fmt.Sprintf(`{"message":"hello","continuationToken":%q}`, token)); code != 202 {
				t.Fatal(code)
			}
		}
		events := appended(ann.ended(id, turn+1))
		dispatches.reset()
		for range 2 { // the stream tells again
			if failed, err := dispatcher.Announce(t.Context(), events); failed != -1 || err != nil {
				t.Fatal(failed, err)
			}
		}
		want := map[string]int{"SendMessageBatch": 4}
		if turn == 0 {
			want["GetQueueUrl"] = 2
		}
		if d := cmp.Diff(want, dispatches.counts()); d != "" {
			t.Errorf("dispatching turn %d twice:\n%s", turn, d)
		}
		messages := c.messages()
		if len(messages) != 4 {
			t.Fatalf("%d messages were sent: %v", len(messages), messages)
		}
		tells.reset()
		for i, m := range messages {
			if err := teller.Receive(t.Context(), m); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(map[string]int{"GetItem": 2, "PutItem": 1, "Query": 1}, tells.counts()); i == 0 && turn == 0 && d != "" {
				t.Errorf("telling a hook:\n%s", d)
			}
		}
		index := events[len(events)-2].Index
		told := []string{fmt.Sprint("audit/usage ", index, " ok bearer:ann"), fmt.Sprint("faulty ", index, " ok bearer:ann")}
		if d := cmp.Diff(told, ears.take()); d != "" {
			t.Errorf("turn %d was told (-want +got):\n%s", turn, d)
		}
	}
}

// TestDispatchTellsWhatFailed: from the first event on that a queue did not take.
func TestDispatchTellsWhatFailed(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	var ears heard
	c.hooks = []bdk.NamedHook{ears.listen("usage", false)}
	of := func(session string, index int64) event.Event {
		return event.Event{SessionID: session, Index: index, Type: event.TypeTurnCompleted}
	}
	events := []event.Event{of("a", 3), {SessionID: "b", Index: 1, Type: event.TypeTurnStarted}, of("b", 2), of("a", 8), of("c", 1)}
	w := &wire{cloud: c}
	c.lose = true
	if failed, err := c.function(w).Announce(t.Context(), events); failed != 2 || err == nil {
		t.Errorf("got %d, %v; want the first event of the second message", failed, err)
	}
	if got := c.messages(); len(got) != 2 || fmt.Sprint(got[0].Indexes) != "[3 8]" {
		t.Errorf("sent %v", got)
	}
	w = &wire{cloud: c, around: func(int, bool) bool { return false }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if failed, err := c.function(w).Announce(ctx, events); failed != 0 || err == nil {
		t.Errorf("without a queue: got %d, %v", failed, err)
	}
}

// TestMessagesOfWhatIsGone: hooks, and sessions, that are not there any more are told nothing, and nothing comes again.
func TestMessagesOfWhatIsGone(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	var ears heard
	c.hooks = []bdk.NamedHook{ears.listen("usage", false)}
	h := c.function(&wire{cloud: c})
	id, _ := c.client(&wire{cloud: c}).start("hello")
	c.client(&wire{cloud: c}).ended(id, 1)
	for name, m := range map[string]hook.Message{
		"hook": {Subscriber: "hook/other", SessionID: id, Indexes: []int64{1}}, "session": {Subscriber: "hook/usage", SessionID: "ses_gone", Indexes: []int64{1}},
		"index": {Subscriber: "hook/usage", SessionID: id},
	} {
		if err := h.Receive(t.Context(), m); err != nil {
			t.Errorf("no %s: %v", name, err)
		}
	}
	if err := h.Receive(t.Context(), hook.Message{Subscriber: "hook/usage", SessionID: id, Indexes: []int64{4, 1000}}); err == nil {
		t.Error("an event that is not there yet is lost")
	}
	if got := ears.take(); got != nil {
		t.Errorf("told %v", got)
	}
}
