package sessiontest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

func readCases() []testCase {
	return []testCase{
		{"events are read back whole, from any index and with any limit", readBack},
		{"odd text and a payload of 1 MiB come back as they are", oddText},
		{"a reader stops at a hole and goes on when it is filled", hole},
		{"a reader sees the log grow", tailGrowth},
		{"a reader gets every event, whoever appends it and how many at once", fed},
		{"an append wakes the readers of its store", wakeUp},
		{"an append of another store is found by polling", polling},
		{"a wait ends with its context", waitEnds},
		{"ten thousand events in a burst are resumed at any index without a gap", burst},
		{"the tail is found wherever the row says it is at least", tail},
	}
}

func readBack(b *bench) {
	b.create("s1")
	b.create("s2") // a neighbour
	all := []event.Data{
		event.MessageReceived{Text: "a"},
		event.TurnStarted{Model: "m"},
		event.ActionsRequested{Calls: []event.ActionCall{{CallID: "c", Args: json.RawMessage(`{"x":[1, 2]}`)}}},
		event.TurnFailed{Message: "x"},
		event.SessionWaiting{},
	}
	want := b.events("s1", 1, all...)
	for i := range want {
		want[i].At = want[i].At.Add(time.Duration(i) * time.Millisecond)
		if i%2 == 0 {
			want[i].TurnID = fmt.Sprint("turn_", i)
		}
	}
	want[4].Type = "a.type.of.tomorrow"
	b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", At: 1, Events: want}))
	b.pages(b.driver.Events, want)
	if h, ok := b.driver.(session.Header); ok {
		for i := range want {
			want[i].Data = nil
		}
		b.pages(h.Heads, want)
	}
}

// pages checks what read returns of session s1, which has want at index 1 and behind it.
func (b *bench) pages(read func(ctx context.Context, id string, from int64, limit int) ([]event.Event, error), want []event.Event) {
	b.Helper()
	for from := int64(1); from <= 7; from++ {
		for _, limit := range []int{1, 3, 100} {
			got, err := read(b.Context(), "s1", from, limit)
			b.must(err)
			rest := want[min(int(from)-1, len(want)):]
			if len(got) == 0 && len(rest) > 0 || len(got) > min(limit, len(rest)) {
				b.Fatalf("from %d with limit %d: got %d events", from, limit, len(got))
			}
			if len(got) > 0 {
				b.diff(fmt.Sprintf("events from %d", from), rest[:len(got)], got)
			}
		}
	}
}

func oddText(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	texts := []string{
		"", "\x00", "a\x00b", "\ufeffbom", "你好🌍👩\u200d👩\u200d👧e\u0301", "\u2028\u2029", `{"not":"parsed"}`, "'; DROP TABLE events; --",
		"\xff", "a\xed\xa0\xbdb", strings.Repeat("🌍", 1<<18),
	}
	for _, text := range texts {
		_, err := w.Append(b.Context(), event.MessageAppended{Text: text})
		b.must(err)
	}
	raw := []string{`{"a":"\ud83d"}`, `"\udc00\ud800"`, `1e400`, `"` + strings.Repeat("x", 1<<20) + `"`, `[[[[]]]]`}
	for _, r := range raw {
		_, err := w.Append(b.Context(), event.ActionResult{CallID: "c", Output: json.RawMessage(r)})
		b.must(err)
	}
	log := b.log(acc.SessionID)[2:]
	b.diff("length of the log", len(texts)+len(raw), len(log))
	for i, e := range log {
		if !utf8.Valid(e.AppendJSON(nil)) {
			b.Errorf("event %d is not UTF-8", e.Index)
		}
		if i < len(texts) {
			d, err := event.Decode[event.MessageAppended](e)
			b.must(err)
			if want := string([]rune(texts[i])); d.Text != want { // U+FFFD for every byte that is not UTF-8
				b.Errorf("text %d: got %.40q, want %.40q", i, d.Text, want)
			}
			continue
		}
		d, err := event.Decode[event.ActionResult](e)
		b.must(err)
		if want := raw[i-len(texts)]; string(d.Output) != want {
			b.Errorf("output %d: got %.40q, want %.40q", i, d.Output, want)
		}
	}
}

func hole(b *bench) {
	if b.h.Plant == nil {
		b.Skip("skipped: this medium cannot hold a log with a hole")
	}
	b.create("s1")
	later := b.events("s1", 1, event.SkillLoaded{Name: "hole"}, event.SkillLoaded{Name: "behind"})
	b.h.Plant(b.T, b.driver, later[1])
	c := b.store.Cursor("s1", 0)
	defer c.Close()
	page, err := c.Read(b.Context())
	b.must(err)
	b.diff("before the hole", []event.Type{event.TypeSessionStarted}, types(page))
	page, err = c.Read(b.Context())
	b.must(err)
	b.diff("at the hole", 0, len(page))
	b.diff("next index", int64(1), c.Next())
	b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", At: 1, Events: later[:1]}))
	page, err = c.Read(b.Context())
	b.must(err)
	b.diff("after it was filled", later, slices.Clone(page))
}

func tailGrowth(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	c := b.store.Cursor(acc.SessionID, 0)
	defer c.Close()
	want := []event.Type{event.TypeSessionStarted, event.TypeMessageReceived}
	for range 20 {
		page, err := c.Read(b.Context())
		b.must(err)
		b.diff("what is new", want, types(page))
		page, err = c.Read(b.Context())
		b.must(err)
		b.diff("nothing is new", 0, len(page))
		_, err = w.Append(b.Context(), event.SkillLoaded{}, event.SubagentCalled{})
		b.must(err)
		want = []event.Type{event.TypeSkillLoaded, event.TypeSubagentCalled}
	}
}

// fed mixes what a reader is told of and what it has to look up, with more at once than it is told.
func fed(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	c := b.store.Cursor(acc.SessionID, 0)
	defer c.Close()
	var got []event.Event
	drain := func() {
		for {
			page, err := c.Read(b.Context())
			b.must(err)
			if len(page) == 0 {
				return
			}
			got = append(got, page...)
		}
	}
	for _, n := range []int{0, 1, 3, 700, 2, 40, 40, 1} {
		for range n {
			_, err := w.Append(b.Context(), event.SkillLoaded{})
			b.must(err)
		}
		drain()
		_, err := b.side(acc.SessionID, c.Next(), event.ArtifactTagged{}) // of another process
		b.must(err)
	}
	b.finish(acc)
	drain()
	b.diff("what the reader got", b.log(acc.SessionID), got)
}

func wakeUp(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	c, other := b.store.Cursor(acc.SessionID, 2), b.store.Cursor(acc.SessionID, 0)
	defer c.Close()
	defer other.Close()
	for range 3 { // the clock does not move: only an append can end the wait
		done := make(chan error, 1)
		go func() { done <- c.Wait(b.soon()) }()
		<-b.clock.waits
		_, err := w.Append(b.Context(), event.SkillLoaded{})
		b.must(err)
		b.must(<-done)
		page, err := c.Read(b.Context())
		b.must(err)
		b.diff("what is new", 1, len(page))
	}
	b.must(other.Wait(b.soon())) // what came before the wait counts too
	b.finish(acc)
	b.must(c.Wait(b.soon()))
	page, err := c.Read(b.Context())
	b.must(err)
	b.diff("the end", []event.Type{event.TypeTurnCompleted, event.TypeSessionWaiting}, types(page))
}

func polling(b *bench) {
	acc := b.start()
	far := session.New(b.h.Other(b.T, b.driver), session.Options{Clock: b.clock, Poll: 7 * time.Second, PollTurn: 3 * time.Second})
	c := far.Cursor(acc.SessionID, 2)
	defer c.Close()
	done := make(chan error, 1)
	go func() { done <- c.Wait(b.soon()) }()
	b.diff("length of the wait", 3*time.Second, <-b.clock.waits)
	_, err := b.open(b.store, acc).Append(b.Context(), event.SkillLoaded{})
	b.must(err)
	b.clock.move(3 * time.Second)
	b.must(<-done)
	page, err := c.Read(b.Context())
	b.must(err)
	b.diff("what is new", []event.Type{event.TypeSkillLoaded}, types(page))

	b.finish(acc)
	_, err = c.Read(b.Context())
	b.must(err)
	go func() { done <- c.Wait(b.soon()) }()
	b.diff("length of the wait without a turn", 7*time.Second, <-b.clock.waits)
	b.clock.move(7 * time.Second)
	b.must(<-done)
}

func waitEnds(b *bench) {
	acc := b.start()
	c := b.store.Cursor(acc.SessionID, 0)
	defer c.Close()
	ctx, cancel := context.WithCancelCause(b.Context())
	cancel(errGone)
	b.wantErr(c.Wait(ctx), errGone)
}

func burst(b *bench) {
	const n = 10_000
	acc := b.start()
	w := b.open(b.store, acc)
	for at := 0; at < n; at += 50 {
		data := make([]event.Data, 50)
		for i := range data {
			data[i] = event.MessageAppended{Text: fmt.Sprint(at + i)}
		}
		_, err := w.Append(b.Context(), data...)
		b.must(err)
	}
	log := b.log(acc.SessionID)
	b.diff("length of the log", n+2, len(log))
	for i, e := range log[2:] {
		if want := fmt.Sprintf(`{"text":"%d"}`, i); string(e.Data) != want {
			b.Fatalf("event %d is %s, want %s", e.Index, e.Data, want)
		}
	}
	for _, from := range []int64{0, 1, 2, 511, 512, 513, 1023, 1024, 4999, 7777, n - 1, n, n + 1, n + 2, n + 3} {
		got := b.readFrom(b.store, acc.SessionID, from)
		want := log[min(from, n+2):]
		if !slices.EqualFunc(got, want, func(x, y event.Event) bool { return string(x.AppendJSON(nil)) == string(y.AppendJSON(nil)) }) {
			b.Errorf("reading on at %d does not return the rest: got %d events, want %d", from, len(got), len(want))
		}
	}
}

func tail(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	for range 3 {
		for range 300 {
			_, err := w.Append(b.Context(), event.SkillLoaded{}, event.SkillLoaded{})
			b.must(err)
		}
		got, err := b.store.Tail(b.Context(), acc.SessionID)
		b.must(err)
		b.diff("tail", int64(len(b.log(acc.SessionID))), got)
	}
}
