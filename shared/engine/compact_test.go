package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// narrow is a model that reads only so many bytes. It answers, or calls a tool while it is told to.
type narrow struct {
	reads   int
	calls   int // of the tool fetch in a turn
	says    int // bytes of text before a call
	onAsk   func(summary bool) error
	mu      sync.Mutex
	asked   []*model.Request
	summary int // how many summaries were written
}

func (n *narrow) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	n.mu.Lock()
	defer n.mu.Unlock()
	size := 0
	for _, m := range req.Messages {
		size += engine.SizeOf(m)
	}
	summary := strings.HasPrefix(req.Messages[0].Text, "Summarize")
	var err error
	if n.onAsk != nil {
		err = n.onAsk(summary)
	}
	if size > n.reads {
		err = &model.Error{Kind: model.ContextLength, Message: "too long"}
	}
	clone := *req
	clone.Messages = append([]model.Message(nil), req.Messages...)
	if !summary {
		n.asked = append(n.asked, &clone)
	} else if err == nil {
		n.summary++
	}
	return func(yield func(model.Delta, error) bool) {
		switch {
		case err != nil:
			yield(model.Delta{}, err)
		case summary:
			_ = yield(model.Delta{Text: "SUMMARY"}, nil) && yield(finish(model.FinishStop), nil)
		case req.Step <= n.calls:
			_ = yield(model.Delta{Text: strings.Repeat("x", n.says)}, nil) && yield(call(0, "fetch", fmt.Sprintf(`{"a":%d,"b":0}`, req.Step)), nil) && yield(finish(model.FinishToolCalls), nil)
		default:
			_ = yield(model.Delta{Text: "ok"}, nil) && yield(finish(model.FinishStop), nil)
		}
	}
}

func fetch(size int) bdk.NamedTool {
	return bdk.NamedTool{Name: "fetch", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Fetch.", Effect: bdk.Read},
		func(context.Context, *bdk.Call, addInput) (string, error) {
			return strings.Repeat("data ", size/5), nil
		})}
}

// A provider whose model reads less than ContextTokens says: as often as the conversation has grown too long it is
// compacted, and every turn ends well.
func TestProviderFindsTheConversationTooLong(t *testing.T) {
	t.Parallel()
	s, m := newStorage(), &narrow{reads: 8000, calls: 2}
	e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "anthropic:narrow", Model: m}}, tools: []bdk.NamedTool{fetch(1000)}})
	ref, acc := start(t, e, "go")
	step(t, e, ref)
	for range 11 {
		ref, acc = send(t, e, acc, strings.Repeat("blah ", 100))
		step(t, e, ref)
	}
	log := events(t, s.sessions, ref.SessionID)
	n, asked := len(find[event.ContextCompacted](t, log)), len(m.asked)
	if len(find[event.TurnCompleted](t, log)) != 12 || n < 2 || n > 12 || asked > 3*12+n {
		t.Errorf("%d turns completed with %d compactions and %d requests; want 12 turns", len(find[event.TurnCompleted](t, log)), n, asked)
	}
	checkPairs(t, m.asked)
}

// One message that is far too long is cut in a few rounds; when nothing helps the turn fails with the provider's words.
func TestProviderThatFindsEverythingTooLong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		words, reads, most int
		ok                 bool
	}{{10_000, 3000, 4, true}, {10_000, 10, 4, false}, {1, 10, 1, false}} {
		s, m := newStorage(), &narrow{reads: tc.reads}
		e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "anthropic:narrow", Model: m}}})
		ref, _ := start(t, e, strings.Repeat("word ", tc.words))
		step(t, e, ref)
		failed := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID))
		if tc.ok != (len(failed) == 0) || !tc.ok && !strings.Contains(failed[0].Message, "too long") || len(m.asked) > tc.most {
			t.Errorf("%+v: asked %d times, turn.failed = %+v", tc, len(m.asked), failed)
		}
	}
}

// What cannot fit by any measure fails at once: neither is a summary asked for, nor the model after the turn has ended.
func TestNoModelIsAskedWhenNothingFits(t *testing.T) {
	t.Parallel()
	s, m := newStorage(), &narrow{reads: 1 << 30, onAsk: func(bool) error { t.Error("a model was asked"); return nil }}
	e := newEngine(t, config{
		storage: s, models: []engine.NamedModel{{ID: "anthropic:m", Model: m}}, prompt: bdk.Instructions(strings.Repeat("x", 10_000)),
		agent: bdk.Agent{ContextTokens: 2000, MaxOutputTokens: 100},
	})
	ref, _ := start(t, e, "hi")
	step(t, e, ref)
	if got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 || !strings.Contains(got[0].Message, "ContextTokens") {
		t.Errorf("turn.failed = %+v", got)
	}
}

// A turn that alone is larger than the context is compacted on its way: what is not summarized stays, whole calls only.
func TestTurnLargerThanTheContext(t *testing.T) {
	t.Parallel()
	s, m := newStorage(), &narrow{reads: 35_000 * 4, calls: 20, says: 12_000}
	e := newEngine(t, config{
		storage: s, models: []engine.NamedModel{{ID: "anthropic:m", Model: m}}, tools: []bdk.NamedTool{fetch(9000)},
		agent: bdk.Agent{ContextTokens: 40_000, MaxOutputTokens: 1000},
	})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	log := events(t, s.sessions, ref.SessionID)
	if len(find[event.TurnCompleted](t, log)) != 1 || len(find[event.ActionResult](t, log)) != 20 || len(find[event.StepRestarted](t, log)) != 0 || m.summary == 0 {
		t.Errorf("%d results, %d summaries: %v", len(find[event.ActionResult](t, log)), m.summary, types(log))
	}
	checkPairs(t, m.asked)
	steps := 0
	for _, ev := range log {
		switch ev.Type {
		case event.TypeMessageCompleted:
			steps++
		case event.TypeContextCompacted:
			c, err := event.Decode[event.ContextCompacted](ev)
			if got := len(m.asked[steps].Messages); err != nil || c.Kept == 0 || got != 1+c.Kept {
				t.Errorf("step %d has %d messages after %d were kept, %v", steps+1, got, c.Kept, err)
			}
		default:
		}
	}
}

// A summary is worth some patience, and the fallback's is as good. Only when no model writes one the text is cut.
func TestSummaryFaults(t *testing.T) {
	t.Parallel()
	busy := &model.Error{Kind: model.Overloaded, Message: "busy"}
	for name, tc := range map[string]struct {
		faults  int // of the agent's model
		err     func() error
		summary string
		of      string
	}{
		"busy for a moment":  {2, func() error { return busy }, "SUMMARY", "anthropic:first"},
		"busy for ever":      {1000, func() error { return busy }, "SUMMARY", "openai:second"},
		"panics":             {1000, func() error { panic("boom") }, "SUMMARY", "openai:second"},
		"breaks its promise": {1000, func() error { return errors.New("boom") }, "SUMMARY", "openai:second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorage()
				left := tc.faults
				first := &narrow{reads: 1 << 30}
				first.onAsk = func(summary bool) error {
					if left--; summary && left >= 0 {
						return tc.err()
					}
					return nil
				}
				e := newEngine(t, config{storage: s, agent: bdk.Agent{ContextTokens: 4000, MaxOutputTokens: 100}, models: []engine.NamedModel{
					{ID: "anthropic:first", Model: first}, {ID: "openai:second", Model: &narrow{reads: 1 << 30}},
				}})
				ref, _ := start(t, e, strings.Repeat("word ", 10_000))
				step(t, e, ref)
				got := find[event.ContextCompacted](t, events(t, s.sessions, ref.SessionID))
				if len(got) != 1 || !strings.HasSuffix(got[0].Summary, tc.summary) || got[0].UsageOf != tc.of {
					t.Errorf("context.compacted = %+v; want a summary of %s", got, tc.of)
				}
			})
		})
	}
}

// A provider that hangs in a summary does not hold a turn that is stopped.
func TestStopDuringASummary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := stuck{make(chan struct{}), make(chan struct{})}
		defer close(m.release)
		s := newStorage()
		e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "anthropic:m", Model: m}}, agent: bdk.Agent{ContextTokens: 4000, MaxOutputTokens: 100}})
		ref, _ := start(t, e, strings.Repeat("word ", 10_000))
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stopped")
		time.AfterFunc(time.Second, func() { cancel(stop) })
		begin := time.Now()
		if _, err := e.Step(ctx, ref); !errors.Is(err, stop) || time.Since(begin) != time.Second {
			t.Errorf("Step = %v after %s; want it stopped after a second", err, time.Since(begin))
		}
		if log := events(t, s.sessions, ref.SessionID); len(find[event.ContextCompacted](t, log)) != 0 {
			t.Error("the conversation was cut because the turn was stopped")
		}
	})
}

func TestShortenKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "abc", strings.Repeat("é", 500), strings.Repeat("🌍", 100), strings.Repeat("x", 1000)} {
		for limit := -2; limit < 300; limit++ {
			got := engine.HeadAndTail(text, limit)
			if len(got) > max(0, limit) || !utf8.ValidString(got) || len(text) <= limit && got != text {
				t.Fatalf("cut to %d bytes: %q", limit, got)
			}
		}
	}
	var results []model.Result
	for i := range 200 {
		results = append(results, model.Result{Output: strings.Repeat("x", i*i)})
	}
	total := 0
	for i, r := range engine.Shorten(results, 10_000) {
		total += len(r.Output)
		if i < 7 && len(r.Output) != i*i {
			t.Errorf("a small output of %d bytes was cut to %d", i*i, len(r.Output))
		}
	}
	if total > 10_000 || total < 9000 {
		t.Errorf("outputs share %d bytes; want 10,000 used well", total)
	}
}
