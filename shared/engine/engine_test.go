package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
	"github.com/bdk-lambda/bdk/shared/reminder"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// The storage of an agent, which outlives its engines.
type storage struct {
	sessions session.Driver
	claims   kv.Driver
	blobs    blob.Driver // nil: there are no files
}

func newStorage() storage { return storage{sessions: memsession.New(), claims: memkv.New()} }

// config describes an agent under test. Zero fields have useful values.
type config struct {
	storage storage
	agent   bdk.Agent
	tools   []bdk.NamedTool
	models  []engine.NamedModel
	script  string
	prompt  bdk.Instructions
	holder  string // the process; "" if turns are not leased
	runner  turn.Runner
	log     *slog.Logger // nil: shown by go test -v

	subagents []bdk.Subagent
	hooks     []bdk.NamedHook
	lanes     map[string][]engine.NamedModel // the models of subagents
	schedules []bdk.NamedSchedule
}

// idle is a runner that runs nothing: tests call Step themselves.
type idle struct{}

func (idle) Start(context.Context, turn.Ref) error { return nil }
func (idle) Stop(context.Context, turn.Ref) error  { return nil }

func (idle) Resume(context.Context, turn.Ref, bool, ...string) error { return nil }

func newEngine(t testing.TB, c config) *engine.Engine {
	t.Helper()
	if c.storage.sessions == nil {
		c.storage = newStorage()
	}
	if c.runner == nil {
		c.runner = idle{}
	}
	if c.models == nil {
		c.models = []engine.NamedModel{{ID: "scripted:test", Model: play(t, c.script)}}
	}
	for i := range c.subagents {
		if c.subagents[i].Agent.Description == "" {
			c.subagents[i].Agent.Description = "Helps."
		}
	}
	tools := toolSet(t, c.storage, c.tools)
	log := c.log
	switch {
	case log != nil:
	case testing.Verbose() && os.Getenv("CI") == "":
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	default:
		log = quietLog()
	}
	deps := engine.Deps{
		Sessions: session.New(c.storage.sessions, session.Options{Holder: c.holder, Lease: time.Minute}),
		Runner:   c.runner, Tools: tools, Models: c.models, Subagents: c.lanes, KV: kv.New(c.storage.claims, kv.Options{}), Log: log,
	}
	deps.Reminders = reminder.New(deps.KV, reminder.Options{Agent: "test"})
	if c.storage.blobs != nil {
		deps.Blobs = blob.New(c.storage.blobs)
		deps.Artifacts = artifact.New(deps.KV, deps.Blobs, artifact.Options{Agent: "test"})
		deps.Workspaces = workspace.New(deps.Blobs, workspace.Options{TempDir: t.TempDir()})
	}
	e, err := engine.New(bdk.Project{Slug: "test", Agent: c.agent, Instructions: c.prompt, Tools: c.tools, Subagents: c.subagents, Hooks: c.hooks, Schedules: c.schedules}, deps)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func toolSet(t testing.TB, s storage, tools []bdk.NamedTool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(tools, tool.Options{Claims: kv.New(s.claims, kv.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func play(t testing.TB, script string) model.Model {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s, clock.System{})
}

// start begins a session and returns its first turn.
func start(t testing.TB, e *engine.Engine, message string) (turn.Ref, session.Accepted) {
	t.Helper()
	acc, err := e.Start(t.Context(), session.Start{Owner: "local", Message: message})
	if err != nil {
		t.Fatal(err)
	}
	return turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}, acc
}

func send(t testing.TB, e *engine.Engine, acc session.Accepted, message string) (turn.Ref, session.Accepted) {
	t.Helper()
	acc, err := e.Send(t.Context(), session.Message{SessionID: acc.SessionID, Owner: "local", Token: acc.Token, Text: message})
	if err != nil {
		t.Fatal(err)
	}
	return turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}, acc
}

func step(t testing.TB, e *engine.Engine, ref turn.Ref) {
	t.Helper()
	out, err := e.Step(t.Context(), ref)
	if err != nil || out != turn.Done {
		t.Fatalf("Step = %q, %v; want done", out, err)
	}
}

func events(t testing.TB, d session.Driver, id string) []event.Event {
	t.Helper()
	c := session.New(d, session.Options{}).Cursor(id, 0)
	defer c.Close()
	var all []event.Event
	for {
		page, err := c.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

func types(all []event.Event) []string {
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = string(e.Type)
	}
	return out
}

func find[T event.Data](t testing.TB, all []event.Event) []T {
	t.Helper()
	var want T
	var found []T
	for _, e := range all {
		if e.Type != want.Type() {
			continue
		}
		d, err := event.Decode[T](e)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, d)
	}
	return found
}

type addInput struct {
	A int `json:"a"`
	B int `json:"b"`
}

// counted is a tool that counts its runs by call id.
type counted struct {
	mu   sync.Mutex
	runs map[string]int
}

func (c *counted) run(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = make(map[string]int)
	}
	c.runs[id]++
}

func (c *counted) tool(name string, effect bdk.Effect) bdk.NamedTool {
	return bdk.NamedTool{Name: name, Source: name + ".go", Tool: bdk.DefineTool(
		bdk.ToolSpec{Description: "Add two numbers.", Effect: effect},
		func(_ context.Context, call *bdk.Call, in addInput) (int, error) {
			c.run(call.ID)
			return in.A + in.B, nil
		})}
}

const addScript = `
rules:
  - when: {message: "^tool"}
    calls: [{tool: add, args: {a: 2, b: 3}}]
  - when: {toolResult: add}
    text: "five"
  - text: "ok"
`

func TestOneStepTurn(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e := newEngine(t, config{storage: s, script: addScript})
	ref, _ := start(t, e, "hello")
	step(t, e, ref)
	all := events(t, s.sessions, ref.SessionID)
	want := []string{"session.started", "message.received", "turn.started", "message.appended", "message.completed", "turn.completed", "session.waiting"}
	if d := cmp.Diff(want, types(all)); d != "" {
		t.Fatal(d)
	}
	if got := find[event.TurnCompleted](t, all)[0]; got.Result != "ok" || got.Usage == nil || got.Cost != nil {
		t.Errorf("turn.completed = %+v; want result ok, usage, and no cost because the price is unknown", got)
	}
	row, err := e.Sessions().Get(t.Context(), ref.SessionID)
	if err != nil || row.Turn.ID != "" || row.Next != int64(len(all)) || row.Agent != "test" {
		t.Errorf("row = %+v, %v; want one of the agent without an active turn and next %d", row, err, len(all))
	}
}

func TestToolTurn(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	e := newEngine(t, config{storage: s, script: addScript, tools: []bdk.NamedTool{c.tool("add", bdk.Write)}})
	ref, _ := start(t, e, "tool please")
	step(t, e, ref)
	all := events(t, s.sessions, ref.SessionID)
	want := []string{
		"session.started", "message.received", "turn.started", "message.completed", "actions.requested", "action.result",
		"message.appended", "message.completed", "turn.completed", "session.waiting",
	}
	if d := cmp.Diff(want, types(all)); d != "" {
		t.Fatal(d)
	}
	if got := find[event.ActionResult](t, all)[0]; string(got.Output) != "5" || got.IsError {
		t.Errorf("action.result = %+v; want 5", got)
	}
	if got := find[event.MessageCompleted](t, all); got[0].FinishReason != "tool_calls" || got[1].FinishReason != "stop" || got[1].Text != "five" {
		t.Errorf("message.completed = %+v", got)
	}
	for id, n := range c.runs {
		if n != 1 {
			t.Errorf("call %s ran %d times", id, n)
		}
	}
}

// A model may send anything as arguments. The tool does not run, the model reads why, and the turn goes on.
func TestMalformedArgumentsBecomeErrorResults(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"a":?}`, `{"a":1`, `[1,2]`, `"text"`, `12`, `null`, `{"a":1,"a":2,"b":3}`, `{"a":1e400,"b":1}`, `{} {}`,
		strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100), `{"a":"x","b":3}`, `{"a":1}`, `{"a":1,"b":2,"c":3}`, "{\"a\":\"\xff\"}",
	} {
		t.Run(raw[:min(len(raw), 20)], func(t *testing.T) {
			t.Parallel()
			s, c := newStorage(), &counted{}
			m := &fake{answers: [][]model.Delta{
				{{Call: &model.CallDelta{ID: "x", Name: "add", Args: raw}}, {Finish: model.FinishToolCalls}},
				{{Text: "sorry"}, {Finish: model.FinishStop}},
			}}
			e := newEngine(t, config{storage: s, models: m.named(), tools: []bdk.NamedTool{c.tool("add", bdk.Write)}})
			ref, _ := start(t, e, "go")
			step(t, e, ref)
			all := events(t, s.sessions, ref.SessionID)
			res := find[event.ActionResult](t, all)
			if len(res) != 1 || !res[0].IsError || len(c.runs) != 0 {
				t.Fatalf("results = %+v, runs = %v; want one error and no run", res, c.runs)
			}
			if got := find[event.TurnCompleted](t, all); len(got) != 1 || got[0].Result != "sorry" {
				t.Errorf("turn.completed = %+v", got)
			}
			checkPairs(t, m.requests)
			if last := m.requests[1].Messages; !strings.Contains(last[len(last)-1].Results[0].Output, "not run") {
				t.Errorf("the model reads %q", last[len(last)-1].Results[0].Output)
			}
		})
	}
}

func TestUnknownToolListsTheTools(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	e := newEngine(t, config{storage: s, tools: []bdk.NamedTool{c.tool("add", bdk.Read)}, script: `
rules:
  - when: {toolResult: sum}
    text: done
  - calls: [{tool: sum, args: {}}]`})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	if got := find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 || !got[0].IsError || !strings.Contains(string(got[0].Output), "add") {
		t.Errorf("results = %+v", got)
	}
}

// The text a client adds up from deltas is the text of the completed message, wherever the provider cuts it.
func TestDeltasAddUpAtEveryCut(t *testing.T) {
	t.Parallel()
	const text = "你好🌍👩‍👩‍👧e\u0301 end"
	for cut := 1; cut < len(text); cut++ {
		s := newStorage()
		m := &fake{answers: [][]model.Delta{{{Reasoning: text[:cut]}, {Reasoning: text[cut:]}, {Text: text[:cut]}, {Text: text[cut:]}, {Finish: model.FinishStop}}}}
		e := newEngine(t, config{storage: s, models: m.named()})
		ref, _ := start(t, e, "go")
		step(t, e, ref)
		all := events(t, s.sessions, ref.SessionID)
		var joined, thought string
		for _, d := range find[event.MessageAppended](t, all) {
			joined += d.Text
		}
		for _, d := range find[event.ReasoningAppended](t, all) {
			thought += d.Text
		}
		whole := find[event.MessageCompleted](t, all)[0].Text
		if joined != text || whole != text || thought != text || find[event.ReasoningCompleted](t, all)[0].Text != text {
			t.Fatalf("cut at %d: deltas %q, whole %q, reasoning %q", cut, joined, whole, thought)
		}
	}
}

func TestBytesThatAreNoTextAreReplaced(t *testing.T) {
	t.Parallel()
	s := newStorage()
	m := &fake{answers: [][]model.Delta{{{Text: "a\xff"}, {Text: "b\xe4\xbd"}, {Finish: model.FinishStop}}}}
	e := newEngine(t, config{storage: s, models: m.named()})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	if got := find[event.MessageCompleted](t, events(t, s.sessions, ref.SessionID))[0].Text; got != "a\uFFFDb\uFFFD" {
		t.Errorf("text = %q", got)
	}
}

// fake is a model that plays answers and keeps what it was asked.
type fake struct {
	mu       sync.Mutex
	answers  [][]model.Delta
	errs     map[int]error // by number of the request, from 0
	requests []*model.Request
}

func (f *fake) named() []engine.NamedModel {
	return []engine.NamedModel{{ID: "anthropic:fake", Model: f}}
}

func (f *fake) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.requests)
	clone := *req
	clone.Messages = append([]model.Message(nil), req.Messages...)
	f.requests = append(f.requests, &clone)
	answer := f.answers[min(n, len(f.answers)-1)]
	err := f.errs[n]
	return func(yield func(model.Delta, error) bool) {
		for _, d := range answer {
			if err != nil && d.Finish != "" {
				break
			}
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(model.Delta{}, err)
		}
	}
}

// checkPairs fails if a request holds a call without exactly one result right behind it.
func checkPairs(t testing.TB, requests []*model.Request) {
	t.Helper()
	for n, req := range requests {
		var open []model.Call
		for i, m := range req.Messages {
			if len(open) > 0 && m.Role != model.Results {
				t.Fatalf("request %d: message %d follows calls without results", n, i)
			}
			if m.Role == model.Results {
				var calls, results []string
				for _, c := range open {
					calls = append(calls, c.ID)
					if !json.Valid(c.Args) || c.Args[0] != '{' {
						t.Errorf("request %d: arguments %q are no object", n, c.Args)
					}
				}
				for _, r := range m.Results {
					results = append(results, r.CallID)
				}
				if d := cmp.Diff(calls, results); d != "" {
					t.Fatalf("request %d: calls and results differ:\n%s", n, d)
				}
			}
			open = m.Calls
		}
		if len(open) > 0 {
			t.Fatalf("request %d ends with calls", n)
		}
	}
}

var errCrash = errors.New("crash")

// dying is a driver whose process dies at a commit: before or after it is made. From then on nothing gets through.
type dying struct {
	session.Driver
	left  *atomic.Int64 // commits until death
	after bool          // the last commit is made, but nobody hears of it
}

func (d dying) Commit(ctx context.Context, b session.Batch) error {
	left := d.left.Add(-1)
	switch {
	case left > 0:
		return d.Driver.Commit(ctx, b)
	case left == 0 && d.after:
		if err := d.Driver.Commit(ctx, b); err != nil {
			return err
		}
	}
	return errCrash
}

type dyingClaims struct {
	kv.Driver
	d dying
}

func (c dyingClaims) Create(ctx context.Context, e kv.Entry, now time.Time) error {
	left := c.d.left.Add(-1)
	switch {
	case left > 0:
		return c.Driver.Create(ctx, e, now)
	case left == 0 && c.d.after:
		if err := c.Driver.Create(ctx, e, now); err != nil {
			return err
		}
	}
	return errCrash
}

const eightScript = `
rules:
  - when: {toolResult: add}
    text: "all done"
  - text: "working"
    calls:
      - {tool: add, args: {a: 1, b: 1}}
      - {tool: add, args: {a: 2, b: 1}}
      - {tool: look, args: {a: 3, b: 1}}
      - {tool: add, args: {a: 4, b: 1}}
      - {tool: look, args: {a: 5, b: 1}}
      - {tool: add, args: {a: 6, b: 1}}
      - {tool: add, args: {a: 7, b: 1}}
      - {tool: add, args: {a: 8, b: 1}}
`

// Whatever write a process dies at, the next one finishes the turn: one end, no hole, no write tool twice.
func TestDeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		unknown := 0
		for n := int64(1); ; n++ {
			if n > 100 {
				t.Fatal("the turn does not end")
			}
			s, writes, reads := newStorage(), &counted{}, &counted{}
			tools := []bdk.NamedTool{writes.tool("add", bdk.Write), reads.tool("look", bdk.Read)}
			ref, acc := start(t, newEngine(t, config{storage: s, script: eightScript, tools: tools}), "go")

			d := dying{Driver: s.sessions, left: &atomic.Int64{}, after: after}
			d.left.Store(n)
			mortal := storage{sessions: d, claims: dyingClaims{s.claims, d}}
			_, err := newEngine(t, config{storage: mortal, script: eightScript, tools: tools}).Step(t.Context(), ref)
			survived := d.left.Load() > 0

			heir := newEngine(t, config{storage: s, script: eightScript, tools: tools})
			step(t, heir, ref)
			unknown += checkFinished(t, fmt.Sprintf("death at write %d (after: %v, error: %v)", n, after, err), events(t, s.sessions, ref.SessionID), writes)
			next, _ := send(t, heir, acc, "and again")
			step(t, heir, next)
			if survived {
				break
			}
		}
		if unknown == 0 {
			t.Error("no death left an outcome unknown: the test does not reach the point between effect and record")
		}
	}
}

// checkFinished checks a log that must have ended well and returns how many outcomes are unknown.
func checkFinished(t *testing.T, when string, all []event.Event, writes *counted) (unknown int) {
	t.Helper()
	ends := 0
	for i, e := range all {
		if e.Index != int64(i) {
			t.Fatalf("%s: event %d has index %d", when, i, e.Index)
		}
		if e.Type == event.TypeTurnCompleted || e.Type == event.TypeTurnFailed {
			ends++
		}
	}
	if ends != 1 || len(find[event.TurnCompleted](t, all)) != 1 {
		t.Fatalf("%s: %d ends: %v", when, ends, types(all))
	}
	results := find[event.ActionResult](t, all)
	seen := make(map[string]bool)
	for _, r := range results {
		if seen[r.CallID] {
			t.Errorf("%s: two results of %s", when, r.CallID)
		}
		seen[r.CallID] = true
		if strings.Contains(string(r.Output), "outcome unknown") {
			unknown++
		} else if r.IsError {
			t.Errorf("%s: %s failed: %s", when, r.CallID, r.Output)
		}
	}
	for id, n := range writes.runs {
		if n != 1 {
			t.Errorf("%s: write %s ran %d times", when, id, n)
		}
	}
	return unknown
}
