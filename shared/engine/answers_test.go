package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

func call(index int, name, args string) model.Delta {
	return model.Delta{Call: &model.CallDelta{Index: index, ID: fmt.Sprint("id", index), Name: name, Args: args}}
}

func finish(why model.FinishReason) model.Delta { return model.Delta{Finish: why} }

// A model may answer anything. The turn ends well, the next request is in order, and no call runs that was not whole.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	const whole = `{"a":1,"b":2}`
	for name, tc := range map[string]struct {
		answer []model.Delta
		want   []string // the events of the step, without deltas
		reason string   // of message.completed
		text   string
		runs   int
		reads  string // what the model reads of the last call; "" for no matter what
	}{
		"nothing at all":          {answer: []model.Delta{finish(model.FinishStop)}, reason: "stop"},
		"calls without calls":     {answer: []model.Delta{finish(model.FinishToolCalls)}, reason: "other"},
		"reasoning only":          {answer: []model.Delta{{Reasoning: "hm"}, {Signature: "s"}, finish(model.FinishStop)}, reason: "stop"},
		"cut by length":           {answer: []model.Delta{{Text: "and so"}, finish(model.FinishLength)}, reason: "length", text: "and so"},
		"filtered":                {answer: []model.Delta{{Text: "I can"}, finish(model.FinishContentFilter)}, reason: "content_filter", text: "I can"},
		"calls, but stop":         {answer: []model.Delta{call(0, "add", whole), finish(model.FinishStop)}, reason: "tool_calls", runs: 1},
		"whole call cut later":    {answer: []model.Delta{call(0, "add", whole), finish(model.FinishLength)}, reason: "tool_calls", runs: 1},
		"call cut in arguments":   {answer: []model.Delta{call(0, "add", `{"a":1,`), finish(model.FinishLength)}, reason: "tool_calls", reads: "MaxOutputTokens"},
		"call cut before them":    {answer: []model.Delta{call(0, "clear", ""), finish(model.FinishLength)}, reason: "tool_calls", reads: "MaxOutputTokens"},
		"only the last call cut":  {answer: []model.Delta{call(0, "clear", ""), call(1, "clear", ""), finish(model.FinishLength)}, reason: "tool_calls", runs: 1},
		"calls that are filtered": {answer: []model.Delta{{Text: "Sure."}, call(0, "add", whole), finish(model.FinishContentFilter)}, reason: "content_filter", text: "Sure."},
		"text after calls":        {answer: []model.Delta{{Text: "a"}, call(0, "add", whole), {Text: "b"}, finish(model.FinishToolCalls)}, reason: "tool_calls", text: "ab", runs: 1},
		"one index twice":         {answer: []model.Delta{call(0, "add", `{"a":1,`), call(0, "sub", `"b":2}`), finish(model.FinishToolCalls)}, reason: "tool_calls", runs: 1},
		"no name":                 {answer: []model.Delta{call(0, "", whole), finish(model.FinishToolCalls)}, reason: "tool_calls", reads: "there is no tool"},
		"odd name":                {answer: []model.Delta{call(0, "a\xffd\x00d\n", whole), finish(model.FinishToolCalls)}, reason: "tool_calls", reads: "there is no tool"},
		"negative index":          {answer: []model.Delta{call(-1, "add", whole), finish(model.FinishToolCalls)}, reason: "tool_calls", runs: 1},
		"no arguments":            {answer: []model.Delta{call(0, "clear", ""), finish(model.FinishToolCalls)}, reason: "tool_calls", runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newStorage(), &counted{}
			clearAll := bdk.NamedTool{Name: "clear", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Clear."},
				func(_ context.Context, call *bdk.Call, _ struct{}) (string, error) { c.run(call.ID); return "", nil })}
			f := &fake{answers: [][]model.Delta{tc.answer, hello}}
			e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.tool("add", bdk.Write), clearAll}})
			ref, acc := start(t, e, "go")
			step(t, e, ref)
			log := events(t, s.sessions, ref.SessionID)
			first := find[event.MessageCompleted](t, log)[0]
			if first.FinishReason != tc.reason || first.Text != tc.text || len(c.runs) != tc.runs || len(find[event.TurnCompleted](t, log)) != 1 {
				t.Errorf("message.completed = %+v, %d runs; want %q, %q, %d runs and the turn completed: %v", first, len(c.runs), tc.reason, tc.text, tc.runs, types(log))
			}
			ref, _ = send(t, e, acc, "and now")
			step(t, e, ref)
			checkPairs(t, f.requests)
			if msgs := f.requests[1].Messages; tc.reads != "" {
				results := msgs[len(msgs)-1].Results
				if got := results[len(results)-1]; !got.IsError || !strings.Contains(got.Output, tc.reads) {
					t.Errorf("the model reads %+v; want an error about %q", got, tc.reads)
				}
			}
		})
	}
}

// There is no limit to the calls of a step but the model's: they run ParallelTools at a time.
func TestHundredsOfCallsInOneStep(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	var answer []model.Delta
	for i := range 500 {
		answer = append(answer, call(i, "add", fmt.Sprintf(`{"a":%d,"b":0}`, i)))
	}
	f := &fake{answers: [][]model.Delta{append(answer, finish(model.FinishToolCalls)), hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.tool("add", bdk.Write)}, agent: bdk.Agent{Limits: bdk.Limits{ToolOutput: 1000}}})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	checkPairs(t, f.requests)
	total := 0
	for i, r := range f.requests[1].Messages[2].Results {
		total += len(r.Output)
		if want := fmt.Sprint(i); i < 100 && r.Output != want {
			t.Fatalf("result %d = %q; want %q", i, r.Output, want)
		}
	}
	if len(c.runs) != 500 || total > 1000 {
		t.Errorf("%d calls ran, the model reads %d bytes; want 500 and at most 1000", len(c.runs), total)
	}
}

// What a tool returns, the log keeps and the model reads, whatever it is.
func TestOddResults(t *testing.T) {
	t.Parallel()
	s := newStorage()
	results := []any{"a\xffb", "a\x00b", "", nil, 1e300, uint64(1<<64 - 1), []byte("\xff"), map[string]any{"<": "\u2028"}}
	want := []string{"a\uFFFDb", "a\x00b", "", "null", "1e+300", "18446744073709551615", "/w==", `{"\u003c":"\u2028"}`}
	odd := bdk.NamedTool{Name: "odd", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Odd.", Effect: bdk.Read},
		func(_ context.Context, _ *bdk.Call, in addInput) (any, error) { return results[in.A], nil })}
	var answer []model.Delta
	for i := range results {
		answer = append(answer, call(i, "odd", fmt.Sprintf(`{"a":%d,"b":0}`, i)))
	}
	f := &fake{answers: [][]model.Delta{append(answer, finish(model.FinishToolCalls)), hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{odd}})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	var got []string
	for _, r := range f.requests[1].Messages[2].Results {
		got = append(got, r.Output)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// broken is a model whose calls end in the given way, after a first piece of text.
type broken struct{ end func() error }

func (b broken) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if yield(model.Delta{Text: "half "}, nil) {
			yield(model.Delta{}, b.end())
		}
	}
}

// An adapter that breaks its contract is a model that does not answer: the next one is asked, and the turn ends.
func TestAdaptersThatBreakTheirContract(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() error{
		"panics":           func() error { panic("boom") },
		"plain error":      func() error { return errors.New("boom") },
		"error of no kind": func() error { return &model.Error{Message: "boom"} },
		"nil in the end":   func() error { return nil },
		"false cancel":     func() error { return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorage()
				bad := engine.NamedModel{ID: "anthropic:bad", Model: broken{end}}
				ref, acc := start(t, newEngine(t, config{storage: s, script: "rules: [{text: ok}]"}), "hi")
				step(t, newEngine(t, config{storage: s, models: []engine.NamedModel{bad, {ID: "openai:good", Model: play(t, "rules: [{text: ok}]")}}}), ref)
				alone := newEngine(t, config{storage: s, models: []engine.NamedModel{bad}})
				ref, _ = send(t, alone, acc, "again")
				step(t, alone, ref)
				log := events(t, s.sessions, ref.SessionID)
				if done := find[event.TurnCompleted](t, log); len(done) != 1 || done[0].Result != "ok" {
					t.Errorf("turn.completed = %+v; want ok of the fallback: %v", done, types(log))
				}
				if failed := find[event.TurnFailed](t, log); len(failed) != 1 || !strings.Contains(failed[0].Message, "did not answer") {
					t.Errorf("turn.failed = %+v; want one: %v", failed, types(log))
				}
				time.Sleep(time.Second)
			})
		})
	}
}
