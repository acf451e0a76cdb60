package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

type taskInput struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
}

// taskTool is what the harness offers for delegation, which the engine handles itself.
var taskTool = bdk.NamedTool{Name: bdk.ToolTask, Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Delegate."},
	func(context.Context, *bdk.Call, taskInput) (string, error) { panic("the engine delegates") })}

// A subagent has its own instructions, model and conversation; its events name the call, its usage is the turn's.
func TestDelegation(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	usage := model.Delta{Usage: &model.Usage{InputTokens: 10, OutputTokens: 1}}
	f := &fake{answers: [][]model.Delta{
		{{Text: "I ask."}, call(0, "task", `{"name":"researcher","prompt":"find out"}`), usage, finish(model.FinishToolCalls)},
		{{Text: "so it is"}, usage, finish(model.FinishStop)},
	}}
	sub := &fake{answers: [][]model.Delta{
		{call(0, "add", `{"a":1,"b":2}`), usage, finish(model.FinishToolCalls)},
		{{Text: "it is 3"}, usage, finish(model.FinishStop)},
	}}
	e := newEngine(t, config{
		storage: s, models: f.named(), prompt: "be main", tools: []bdk.NamedTool{c.tool("add", bdk.Write), taskTool},
		subagents: []bdk.Subagent{{Name: "researcher", Instructions: "be thorough"}, {Name: "other"}},
		lanes:     map[string][]engine.NamedModel{"researcher": {{ID: "anthropic:sub", Model: sub}}},
	})
	ref, acc := start(t, e, "go")
	step(t, e, ref)
	log := events(t, s.sessions, ref.SessionID)
	var got []string
	var parent string
	for _, r := range find[event.ActionsRequested](t, log) {
		if r.ParentCallID == "" {
			parent = r.Calls[0].CallID
		}
	}
	for _, ev := range log {
		line := string(ev.Type)
		if strings.Contains(string(ev.Data), `"parentCallId":"`+parent+`"`) {
			line += " of the subagent"
		}
		got = append(got, line)
	}
	want := []string{
		"session.started", "message.received", "turn.started", "message.appended", "message.completed", "actions.requested", "subagent.called",
		"message.completed of the subagent", "actions.requested of the subagent", "action.result of the subagent",
		"message.appended of the subagent", "message.completed of the subagent", "subagent.completed", "action.result",
		"message.appended", "message.completed", "turn.completed", "session.waiting",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := find[event.TurnCompleted](t, log)[0]; got.Usage.InputTokens != 40 || got.Usage.OutputTokens != 4 {
		t.Errorf("usage = %+v; want that of all four model calls", got.Usage)
	}
	first := sub.requests[0]
	if first.Instructions != "be thorough" || len(first.Messages) != 1 || first.Messages[0].Text != "find out" || len(first.Tools) != 1 || first.Tools[0].Name != "add" {
		t.Errorf("the subagent is asked %+v", first)
	}
	if got := f.requests[1].Messages[2].Results[0].Output; got != "it is 3" {
		t.Errorf("the agent reads %q", got)
	}
	checkPairs(t, append(f.requests, sub.requests...))
	f.requests = nil
	next, _ := send(t, e, acc, "again")
	f.answers = [][]model.Delta{hello}
	step(t, e, next)
	if got := len(f.requests[0].Messages); got != 5 {
		t.Errorf("the next turn sees %d messages; want 5: none of the subagent's", got)
	}
}

// Delegations of one step run at the same time, beside each other's and the agent's calls.
func TestDelegationsRunInParallel(t *testing.T) {
	t.Parallel()
	met := make(chan string)
	meet := bdk.NamedTool{Name: "meet", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Meet.", Effect: bdk.Read, Timeout: 20 * time.Second},
		func(ctx context.Context, call *bdk.Call, _ struct{}) (string, error) {
			select {
			case met <- call.ID:
				return "met", nil
			case other := <-met:
				return "met " + other, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})}
	s := newStorage()
	e := newEngine(t, config{
		storage: s, tools: []bdk.NamedTool{meet, taskTool}, subagents: []bdk.Subagent{{Name: "a"}, {Name: "b"}},
		script: `rules: [{when: {message: "^go"}, calls: [{tool: task, args: {name: a, prompt: "meet"}}, {tool: task, args: {name: b, prompt: "meet"}}]},
  {when: {message: "^meet"}, calls: [{tool: meet, args: {}}]}, {text: ok}]`,
	})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	for _, r := range find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)) {
		if r.IsError {
			t.Errorf("%+v", r)
		}
	}
}

// What goes wrong in a delegation is a result for the agent, whose turn goes on.
func TestDelegationThatFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args string
		sub  [][]model.Delta
		errs map[int]error
		want string
	}{
		"no such subagent":      {`{"name":"nobody","prompt":"x"}`, nil, nil, `there is no subagent "nobody": the subagents are helper`},
		"bad input":             {`{"name":7,"prompt":"x"}`, nil, nil, "name: must be a string"},
		"the model is out":      {`{"name":"helper","prompt":"x"}`, [][]model.Delta{hello}, map[int]error{0: &model.Error{Kind: model.Invalid, Message: "no credit"}}, "The subagent could not finish: the model did not answer: "},
		"too many steps":        {`{"name":"helper","prompt":"x"}`, [][]model.Delta{{call(0, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}}, nil, "limit reached: the turn made 5 model calls (StepsPerTurn)"},
		"a subagent in another": {`{"name":"helper","prompt":"x"}`, [][]model.Delta{{call(0, "task", `{"name":"helper","prompt":"y"}`), finish(model.FinishToolCalls)}, hello}, nil, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newStorage(), &counted{}
			f := &fake{answers: [][]model.Delta{{call(0, "task", tc.args), finish(model.FinishToolCalls)}, hello}}
			sub := &fake{answers: tc.sub, errs: tc.errs}
			e := newEngine(t, config{
				storage: s, models: f.named(), tools: []bdk.NamedTool{c.tool("add", bdk.Read), taskTool},
				agent: bdk.Agent{Limits: bdk.Limits{StepsPerTurn: 5}}, subagents: []bdk.Subagent{{Name: "helper"}},
				lanes: map[string][]engine.NamedModel{"helper": {{ID: "anthropic:sub", Model: sub}}},
			})
			ref, _ := start(t, e, "go")
			step(t, e, ref)
			if got := f.requests[1].Messages[2].Results[0]; !strings.Contains(got.Output, tc.want) || got.IsError != (tc.want != "hello") {
				t.Errorf("the agent reads %+v", got)
			}
			for i, req := range sub.requests {
				if name == "a subagent in another" && i == 1 && !strings.Contains(fmt.Sprint(req.Messages[2].Results), "subagents cannot delegate") {
					t.Errorf("the subagent reads %+v", req.Messages[2].Results)
				}
			}
			if got := find[event.TurnCompleted](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 {
				t.Errorf("the turn did not end well: %v", types(events(t, s.sessions, ref.SessionID)))
			}
		})
	}
}

// A subagent's conversation is compacted by itself, and so is a main one that goes on after it.
func TestDelegationIsCompacted(t *testing.T) {
	t.Parallel()
	s := newStorage()
	fetching := []model.Delta{call(0, "fetch", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}
	summary := []model.Delta{{Text: "much was said"}, finish(model.FinishStop)}
	f := &fake{answers: [][]model.Delta{{call(0, "task", `{"name":"helper","prompt":"fetch it all"}`), finish(model.FinishToolCalls)}, hello}}
	sub := &byRequest{func(n int, req *model.Request) []model.Delta {
		switch {
		case strings.HasPrefix(req.Messages[0].Text, "Summarize"):
			return summary
		case n < 6:
			return fetching
		}
		return hello
	}, 0}
	e := newEngine(t, config{
		storage: s, models: f.named(), tools: []bdk.NamedTool{fetch(12_000), taskTool}, agent: bdk.Agent{ContextTokens: 6000, MaxOutputTokens: 100},
		subagents: []bdk.Subagent{{Name: "helper"}}, lanes: map[string][]engine.NamedModel{"helper": {{ID: "anthropic:sub", Model: sub}}},
	})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	log := events(t, s.sessions, ref.SessionID)
	compacted := find[event.ContextCompacted](t, log)
	if len(compacted) == 0 {
		t.Fatalf("nothing was compacted: %v", types(log))
	}
	for _, c := range compacted {
		if c.ParentCallID == "" {
			t.Errorf("the agent's own conversation was compacted: %+v", c)
		}
	}
	if got := f.requests[1].Messages[2].Results[0]; got.Output != "hello" || got.IsError {
		t.Errorf("the agent reads %+v", got)
	}
	checkPairs(t, f.requests)
}

// byRequest is a model that answers by what it is asked, for one caller at a time.
type byRequest struct {
	answer func(n int, req *model.Request) []model.Delta
	n      int // requests that were no summaries
}

func (m *byRequest) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	answer := m.answer(m.n, req)
	if !strings.HasPrefix(req.Messages[0].Text, "Summarize") {
		m.n++
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range answer {
			if !yield(d, nil) {
				return
			}
		}
	}
}
