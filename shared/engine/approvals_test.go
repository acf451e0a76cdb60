package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/session/sqlitesession"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// gated is a write that needs approval.
func (c *counted) gated(name string, spec bdk.ToolSpec) bdk.NamedTool {
	spec.Description, spec.NeedsApproval = "Add two numbers.", bdk.Always
	return bdk.NamedTool{Name: name, Source: name + ".go", Tool: bdk.DefineTool(spec,
		func(_ context.Context, call *bdk.Call, in addInput) (string, error) {
			c.run(call.ID)
			return fmt.Sprintf("%d for %s", in.A+in.B, call.Session.Owner), nil
		})}
}

func await(t testing.TB, e *engine.Engine, ref turn.Ref) {
	t.Helper()
	out, err := e.Step(t.Context(), ref)
	if err != nil || out != turn.Await {
		t.Fatalf("Step = %q, %v; want await", out, err)
	}
}

func waiting(t testing.TB, e *engine.Engine, id string) []string {
	t.Helper()
	list, err := e.Approvals(t.Context(), id, "local")
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = a.CallID
	}
	return ids
}

func decide(t testing.TB, e *engine.Engine, ref turn.Ref, callID string, approve bool, note string) {
	t.Helper()
	_, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: callID, By: "local", Approve: approve, Note: note})
	if err != nil {
		t.Fatal(err)
	}
}

// Calls beside a gated one are recorded first, then it is asked for; what runs is what was approved, for the owner, once.
func TestApprovedCallRuns(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	f := &fake{answers: [][]model.Delta{{call(0, "promote", `{"a":2,"b":3}`), call(1, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}, hello}}
	n := &noting{}
	boot := func() *engine.Engine {
		return newEngine(t, config{storage: s, models: f.named(), runner: n, tools: []bdk.NamedTool{c.gated("promote", bdk.ToolSpec{}), c.tool("add", bdk.Write)}})
	}
	e := boot()
	ref, _ := start(t, e, "go")
	await(t, e, ref)
	log := events(t, s.sessions, ref.SessionID)
	want := []string{"session.started", "message.received", "turn.started", "message.completed", "actions.requested", "action.result", "action.approval_requested"}
	if d := cmp.Diff(want, types(log)); d != "" {
		t.Fatal(d)
	}
	if len(c.runs) != 1 {
		t.Fatalf("%d calls ran before the approval; want the other one", len(c.runs))
	}
	list, err := e.Approvals(t.Context(), ref.SessionID, "local")
	if err != nil || len(list) != 1 || list[0].ToolName != "promote" || string(list[0].Args) != `{"a":2,"b":3}` || time.Until(list[0].ExpiresAt) < 6*24*time.Hour {
		t.Fatalf("approvals = %+v, %v", list, err)
	}
	e = boot() // as after a deploy
	await(t, e, ref)
	got, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: list[0].CallID, By: "local", Approve: true, Note: "fine"})
	if d := cmp.Diff(engine.Decided{CallID: list[0].CallID, Decision: event.Approve, By: "local", Note: "fine"}, got); err != nil || d != "" {
		t.Fatalf("%v\n%s", err, d)
	}
	if got := n.notes[len(n.notes)-1]; got != fmt.Sprintf("resume [%s] true %s", list[0].CallID, ref.TurnID) {
		t.Errorf("the runner was told %q", n.notes)
	}
	if len(c.runs) != 1 {
		t.Fatal("the decision ran the call")
	}
	step(t, boot(), ref)
	checkFinished(t, "approved", events(t, s.sessions, ref.SessionID), c)
	if got := f.requests[1].Messages[2].Results[0]; got.Output != "5 for local" || got.IsError || len(c.runs) != 2 {
		t.Errorf("the model reads %+v after %d runs", got, len(c.runs))
	}
	checkPairs(t, f.requests)
}

// What the model reads of calls that a person denies, or nobody decides about.
func TestCallsThatAreNotApproved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := newStorage(), &counted{}
		f := &fake{answers: [][]model.Delta{{call(0, "a", `{"a":1,"b":1}`), call(1, "b", `{"a":1,"b":1}`), call(2, "b", `{"a":2,"b":1}`), finish(model.FinishToolCalls)}, hello}}
		e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{
			c.gated("a", bdk.ToolSpec{}), c.gated("b", bdk.ToolSpec{ApprovalTimeout: time.Hour}),
		}})
		ref, _ := start(t, e, "go")
		await(t, e, ref)
		ids := waiting(t, e, ref.SessionID)
		decide(t, e, ref, ids[0], false, "not on a Friday")
		await(t, e, ref)
		decide(t, e, ref, ids[1], false, "")
		await(t, e, ref)
		time.Sleep(time.Hour)
		_, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: ids[2], By: "local", Approve: true})
		if bdkerr.CodeOf(err) != bdkerr.Decided {
			t.Errorf("deciding too late = %v; want %s", err, bdkerr.Decided)
		}
		step(t, e, ref)
		log := events(t, s.sessions, ref.SessionID)
		var texts []string
		for _, r := range f.requests[1].Messages[2].Results {
			if texts = append(texts, r.Output); !r.IsError {
				t.Errorf("%q is no error", r.Output)
			}
		}
		want := []string{
			"a person denied this call: it was not executed. They say: not on a Friday",
			"a person denied this call: it was not executed",
			"nobody approved this call in time: it was not executed",
		}
		if d := cmp.Diff(want, texts); d != "" || len(c.runs) > 0 {
			t.Errorf("after %d runs:\n%s", len(c.runs), d)
		}
		for _, r := range find[event.ActionResult](t, log) {
			if !r.Rejected {
				t.Errorf("%+v is not marked as rejected", r)
			}
		}
		var decisions []string
		for _, r := range find[event.ApprovalResolved](t, log) {
			decisions = append(decisions, r.Decision)
		}
		if d := cmp.Diff([]string{"deny", "deny", "expired"}, decisions); d != "" {
			t.Error(d)
		}
	})
}

// Approvals are decided in any order; each call runs as soon as it may, and the model goes on when all have their results.
func TestApprovalsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		s, c := newStorage(), &counted{}
		f := &fake{answers: [][]model.Delta{{call(0, "a", `{"a":0,"b":0}`), call(1, "a", `{"a":1,"b":0}`), call(2, "a", `{"a":2,"b":0}`), finish(model.FinishToolCalls)}, hello}}
		e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.gated("a", bdk.ToolSpec{})}})
		ref, _ := start(t, e, "go")
		await(t, e, ref)
		ids := waiting(t, e, ref.SessionID)
		for i, which := range order {
			decide(t, e, ref, ids[which], true, "")
			if i < 2 {
				await(t, e, ref)
				if len(c.runs) != i+1 || c.runs[ids[which]] != 1 {
					t.Errorf("%v: after %d decisions: %v", order, i+1, c.runs)
				}
			}
		}
		step(t, e, ref)
		checkFinished(t, fmt.Sprint(order), events(t, s.sessions, ref.SessionID), c)
		for i, r := range f.requests[1].Messages[2].Results {
			if want := fmt.Sprintf("%d for local", i); r.Output != want {
				t.Errorf("%v: result %d is %q", order, i, r.Output)
			}
		}
	}
}

// Who may decide, and who may see what waits.
func TestWhoMayDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		approvers []string
		may, not  []string
	}{
		"by default": {nil, []string{"local"}, []string{"bearer:ops", "anonymous"}},
		"ops alone":  {[]string{"bearer:ops"}, []string{"bearer:ops"}, []string{"local", "bearer:opsx", "bearer:"}},
		"both":       {[]string{"bearer:ops", bdk.SessionOwner}, []string{"bearer:ops", "local"}, []string{"bearer:x", "owner"}},
		"anybody":    {[]string{bdk.Anybody}, []string{"bearer:x", "local"}, nil},
	} {
		s, c := newStorage(), &counted{}
		e := newEngine(t, config{
			storage: s, tools: []bdk.NamedTool{c.gated("add", bdk.ToolSpec{Approvers: tc.approvers})},
			script: "rules: [{when: {step: 1}, calls: [{tool: add, args: {a: 1, b: 2}}]}, {text: ok}]",
		})
		for _, who := range tc.not {
			ref, _ := start(t, e, "go")
			await(t, e, ref)
			id := waiting(t, e, ref.SessionID)[0]
			if _, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: id, By: who, Approve: true}); bdkerr.CodeOf(err) != bdkerr.Forbidden {
				t.Errorf("%s: %s decides: %v", name, who, err)
			}
			if _, err := e.Approvals(t.Context(), ref.SessionID, who); bdkerr.CodeOf(err) != bdkerr.Forbidden && who != "local" {
				t.Errorf("%s: %s sees what waits: %v", name, who, err)
			}
			if len(waiting(t, e, ref.SessionID)) != 1 {
				t.Errorf("%s: %s decided", name, who)
			}
		}
		for _, who := range tc.may {
			ref, _ := start(t, e, "go")
			await(t, e, ref)
			list, err := e.Approvals(t.Context(), ref.SessionID, who)
			if err != nil || len(list) != 1 {
				t.Fatalf("%s: %s sees %v, %v", name, who, list, err)
			}
			if _, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: list[0].CallID, By: who, Approve: true}); err != nil {
				t.Errorf("%s: %s decides: %v", name, who, err)
			}
			step(t, e, ref)
			if got := find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)); string(got[0].Output) != `"3 for local"` {
				t.Errorf("%s: the call ran for somebody else: %s", name, got[0].Output)
			}
		}
	}
}

// Calls that cannot run, or do not, are not asked for.
func TestCallsThatNobodyIsAskedAbout(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	f := &fake{answers: [][]model.Delta{{call(0, "add", `{"a":"x"}`), call(1, "add", `{"a"`), call(2, "none", `{}`), finish(model.FinishToolCalls)}, hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.gated("add", bdk.ToolSpec{})}})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	for _, r := range find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)) {
		if !r.IsError || r.Rejected {
			t.Errorf("%+v; want an error", r)
		}
	}
	dry, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "go", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	f.requests, f.answers = nil, [][]model.Delta{{call(0, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}, hello}
	step(t, e, turn.Ref{SessionID: dry.SessionID, TurnID: dry.TurnID})
	if got := find[event.ActionResult](t, events(t, s.sessions, dry.SessionID)); len(got) != 1 || !got[0].Stubbed || len(c.runs) > 0 {
		t.Errorf("results = %+v, %d runs", got, len(c.runs))
	}
}

// A parked turn that is stopped, or interrupted, runs nothing; who decides then is told so.
func TestParkedTurnIsStopped(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	f := &fake{answers: [][]model.Delta{{call(0, "add", `{"a":1,"b":1}`), call(1, "add", `{"a":2,"b":1}`), finish(model.FinishToolCalls)}, hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.gated("add", bdk.ToolSpec{})}})
	ref, acc := start(t, e, "go")
	await(t, e, ref)
	ids := waiting(t, e, ref.SessionID)
	decide(t, e, ref, ids[0], true, "") // nobody runs it before the interruption
	next, _ := send(t, e, acc, "stop that")
	step(t, e, ref)
	if _, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: ids[1], By: "local", Approve: true}); bdkerr.CodeOf(err) != bdkerr.Decided {
		t.Errorf("deciding afterwards = %v", err)
	}
	step(t, e, next)
	if len(c.runs) > 0 || len(waiting(t, e, ref.SessionID)) > 0 {
		t.Errorf("%d calls ran, %v wait", len(c.runs), waiting(t, e, ref.SessionID))
	}
	var got []string
	for _, r := range find[event.ApprovalResolved](t, events(t, s.sessions, ref.SessionID)) {
		got = append(got, r.Decision)
	}
	if d := cmp.Diff([]string{"approve", "cancelled"}, got); d != "" {
		t.Error(d)
	}
	checkPairs(t, f.requests)
}

// The time that a turn waits for people is not its own.
func TestTurnTimeStandsStillForApprovals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := newStorage(), &counted{}
		e := newEngine(t, config{
			storage: s, tools: []bdk.NamedTool{c.gated("add", bdk.ToolSpec{})}, agent: bdk.Agent{Limits: bdk.Limits{TurnTime: time.Minute}},
			script: "rules: [{when: {step: 1}, calls: [{tool: add, args: {a: 1, b: 2}}]}, {text: ok}]",
		})
		ref, _ := start(t, e, "go")
		await(t, e, ref)
		time.Sleep(5 * 24 * time.Hour)
		decide(t, e, ref, waiting(t, e, ref.SessionID)[0], true, "")
		step(t, e, ref)
		checkFinished(t, "after days", events(t, s.sessions, ref.SessionID), c)
	})
}

// A process dies at each write of a turn with approvals, delegations and their calls: nothing is lost, and no write runs twice.
func TestDeathAtEveryWriteOfAGatedTurn(t *testing.T) {
	t.Parallel()
	unknown := 0
	for n := int64(1); ; n++ {
		if n > 200 {
			t.Fatal("the turn does not end")
		}
		left, lost := dieGated(t, n)
		if unknown += lost; left > 0 {
			break
		}
	}
	if unknown == 0 {
		t.Error("no death left an outcome unknown: the test does not reach the point between effect and record")
	}
}

func dieGated(t *testing.T, n int64) (left int64, unknown int) {
	t.Helper()
	s, c := newStorage(), &counted{}
	tools := []bdk.NamedTool{c.gated("promote", bdk.ToolSpec{}), c.tool("add", bdk.Write), taskTool}
	boot := func(s storage) *engine.Engine {
		return newEngine(t, config{
			storage: s, tools: tools, subagents: []bdk.Subagent{{Name: "helper"}},
			script: `rules: [{when: {message: "^go"}, calls: [{tool: promote, args: {a: 1, b: 1}}, {tool: add, args: {a: 2, b: 1}}, {tool: task, args: {name: helper, prompt: "help"}}]},
  {when: {message: "^help"}, calls: [{tool: promote, args: {a: 3, b: 1}}, {tool: promote, args: {a: 4, b: 1}}]}, {text: ok}]`,
		})
	}
	healthy := boot(s)
	ref, _ := start(t, healthy, "go")
	d := dying{Driver: s.sessions, left: &atomic.Int64{}, after: n%2 == 0}
	d.left.Store(n)
	mortal := storage{sessions: d, claims: dyingClaims{s.claims, d}}
	for round := 0; ; round++ {
		if round > 20 {
			t.Fatalf("death at write %d: the turn does not end: %v", n, types(events(t, s.sessions, ref.SessionID)))
		}
		e := boot(mortal)
		if d.left.Load() <= 0 {
			e = boot(s)
		}
		out, err := e.Step(t.Context(), ref)
		if err == nil && out == turn.Done {
			break
		}
		if ids := waiting(t, healthy, ref.SessionID); len(ids) > 0 && (err == nil || round%2 == 0) {
			decide(t, healthy, ref, ids[len(ids)-1], true, "")
		}
	}
	log := events(t, s.sessions, ref.SessionID)
	unknown = checkFinished(t, fmt.Sprintf("death at write %d", n), log, c)
	if got := len(c.runs); got+unknown < 4 {
		t.Errorf("death at write %d: %d writes ran, %d are unknown; want 4 in all", n, got, unknown)
	}
	if got := find[event.SubagentCompleted](t, log); len(got) != 1 || string(got[0].Output) != `"ok"` {
		t.Errorf("death at write %d: subagent.completed = %+v", n, got)
	}
	asked := find[event.ApprovalRequested](t, log)
	slices.SortFunc(asked, func(a, b event.ApprovalRequested) int { return strings.Compare(a.CallID, b.CallID) })
	if len(slices.CompactFunc(asked, func(a, b event.ApprovalRequested) bool { return a.CallID == b.CallID })) != 3 {
		t.Errorf("death at write %d: asked for %+v", n, asked)
	}
	return d.left.Load(), unknown
}

// What the provider is sent after an approval is what it would have been sent without one, whatever the session is kept in:
// what is asked and decided is no part of the conversation.
func TestApprovalsAreNoPartOfTheConversation(t *testing.T) {
	t.Parallel()
	play := func(driver session.Driver, gate bool) []*model.Request {
		s, c := newStorage(), &counted{}
		s.sessions = driver
		f := &fake{answers: [][]model.Delta{{{Text: "I do."}, call(0, "add", `{"a":2,"b":3}`), call(1, "add", `{"a":3,"b":3}`), finish(model.FinishToolCalls)}, hello}}
		tool := c.gated("add", bdk.ToolSpec{})
		if !gate {
			tool.Tool = bdk.DefineTool(bdk.ToolSpec{Description: "Add two numbers."}, func(_ context.Context, call *bdk.Call, in addInput) (string, error) {
				return fmt.Sprintf("%d for %s", in.A+in.B, call.Session.Owner), nil
			})
		}
		e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{tool}})
		ref, acc := start(t, e, "go")
		if gate {
			await(t, e, ref)
			for _, id := range waiting(t, e, ref.SessionID) {
				decide(t, e, ref, id, true, "because")
			}
		}
		step(t, e, ref)
		ref, _ = send(t, e, acc, "and now?")
		step(t, e, ref)
		for _, req := range f.requests {
			req.SessionID = ""
			for _, m := range req.Messages {
				for i := range m.Calls {
					m.Calls[i].ID = fmt.Sprint(i)
				}
				for i := range m.Results {
					m.Results[i].CallID = fmt.Sprint(i)
				}
			}
		}
		return f.requests
	}
	want := play(memsession.New(), false)
	for name, driver := range map[string]session.Driver{"memory": memsession.New(), "SQLite": sqlite(t)} {
		if d := cmp.Diff(want, play(driver, true)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func sqlite(t *testing.T) session.Driver {
	t.Helper()
	db, err := sqlitex.Open(t.Context(), filepath.Join(t.TempDir(), "bdk.db"), sqlitex.Options{Schemas: []sqlitex.Schema{sqlitesession.Schema()}, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return sqlitesession.New(db)
}

// Who writes on instead of deciding cancels the call, and the model reads that it was not executed.
func TestMessageInPlaceOfADecision(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	f := &fake{answers: [][]model.Delta{{call(0, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}, hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.gated("add", bdk.ToolSpec{})}})
	ref, acc := start(t, e, "go")
	await(t, e, ref)
	next, _ := send(t, e, acc, "approve")
	step(t, e, next)
	if got := f.requests[1].Messages[2].Results[0]; !got.IsError || !strings.Contains(got.Output, "it was not executed") || len(c.runs) > 0 {
		t.Errorf("the model reads %+v after %d runs", got, len(c.runs))
	}
	checkPairs(t, f.requests)
}

// Sixteen sessions at once, each with 32 calls beside each other and two delegations to the same subagent: for the race detector.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s, c := filesStorage(), &counted{}
	var calls strings.Builder
	for i := range 32 {
		fmt.Fprintf(&calls, "{tool: add, args: {a: %d, b: 1}}, ", i)
	}
	touch := bdk.NamedTool{Name: "touch", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(ctx context.Context, call *bdk.Call, in pathInput) (string, error) {
		return "ok", call.Workspace.WriteFile(ctx, in.Path, []byte(call.ID), 0o644)
	})}
	e := newEngine(t, config{
		storage: s, tools: []bdk.NamedTool{c.tool("add", bdk.Write), touch, taskTool}, subagents: []bdk.Subagent{{Name: "helper"}},
		script: `rules: [{when: {step: 2}, text: ok}, {when: {message: "^go"}, calls: [` + calls.String() + `{tool: touch, args: {path: a}}, {tool: touch, args: {path: b}},
  {tool: task, args: {name: helper, prompt: "help"}}, {tool: task, args: {name: helper, prompt: "help"}}]}, {calls: [{tool: add, args: {a: 1, b: 1}}, {tool: touch, args: {path: c}}]}]`,
	})
	var wg sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		wg.Go(func() {
			acc, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "go"})
			if err == nil {
				_, err = e.Step(t.Context(), turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID})
			}
			if err != nil {
				t.Error(err)
			}
			ids[i] = acc.SessionID
		})
	}
	wg.Wait()
	for _, id := range ids {
		checkFinished(t, id, events(t, s.sessions, id), c)
	}
	if len(c.runs) != 16*34 {
		t.Errorf("%d writes ran; want %d", len(c.runs), 16*34)
	}
}

// The calls that wait are in the session's row, which has no room for any number: those beyond are refused, and once some are done
// there is room again.
func TestTooManyApprovals(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	var many []model.Delta
	for i := range 70 {
		many = append(many, call(i, "add", `{"a":1,"b":1}`))
	}
	f := &fake{answers: [][]model.Delta{append(many, finish(model.FinishToolCalls)), append(slices.Clone(many[:60]), finish(model.FinishToolCalls)), hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.gated("add", bdk.ToolSpec{})}})
	ref, _ := start(t, e, "go")
	for _, want := range []int{64, 60} {
		await(t, e, ref)
		ids := waiting(t, e, ref.SessionID)
		if len(ids) != want {
			t.Fatalf("%d calls wait; want %d", len(ids), want)
		}
		for _, id := range ids {
			decide(t, e, ref, id, true, "")
		}
		if want == 60 {
			step(t, e, ref)
		}
	}
	if len(c.runs) != 124 {
		t.Errorf("%d calls ran; want 124", len(c.runs))
	}
	refused := 0
	for _, r := range f.requests[1].Messages[2].Results {
		if r.IsError && strings.Contains(r.Output, "at most 64 at once") {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d calls were refused; want 6", refused)
	}
}

// The tool of a call that waits may be gone, or take other input, when it is decided about: the model reads that, and the turn goes on.
func TestToolIsChangedWhileItsCallWaits(t *testing.T) {
	t.Parallel()
	other := bdk.NamedTool{Name: "add", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(context.Context, *bdk.Call, pathInput) (string, error) { panic("it ran") })}
	for want, tools := range map[string][]bdk.NamedTool{"there is no tool": nil, "was refused": {other}} {
		s, c := newStorage(), &counted{}
		f := &fake{answers: [][]model.Delta{{call(0, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}, hello}}
		e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.gated("add", bdk.ToolSpec{Approvers: []string{"bearer:ops"}})}})
		ref, _ := start(t, e, "go")
		await(t, e, ref)
		e = newEngine(t, config{storage: s, models: f.named(), tools: tools})
		decide(t, e, ref, waiting(t, e, ref.SessionID)[0], true, "")
		step(t, e, ref)
		if got := f.requests[1].Messages[2].Results[0]; !got.IsError || !strings.Contains(got.Output, want) {
			t.Errorf("the model reads %+v; want %q", got, want)
		}
	}
}

// Who may not decide cannot do so by being early either: between the request of a call and the question about it.
func TestDecidingBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	tools := []bdk.NamedTool{c.gated("add", bdk.ToolSpec{Approvers: []string{"bearer:ops"}})}
	e := newEngine(t, config{storage: s, tools: tools, script: "rules: [{when: {step: 1}, calls: [{tool: add, args: {a: 1, b: 2}}]}, {text: ok}]"})
	ref, _ := start(t, e, "go")
	// what the early ones see first is the session before the question
	old, err := s.sessions.Get(t.Context(), ref.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	await(t, e, ref)
	id := waiting(t, e, ref.SessionID)[0]
	for _, who := range []string{"local", "bearer:eve"} {
		late := &belated{Driver: s.sessions, row: &old}
		if _, err := newEngine(t, config{storage: storage{sessions: late, claims: s.claims}, tools: tools, script: "rules: [{text: ok}]"}).Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: id, By: who, Approve: true}); bdkerr.CodeOf(err) != bdkerr.Forbidden {
			t.Errorf("%s: %v", who, err)
		}
	}
	for range 2 { // the second time the turn is over
		got, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: id, By: "bearer:ops", Approve: true})
		if err != nil || got.Decision != event.Approve {
			t.Errorf("ops: %+v, %v", got, err)
		}
		step(t, e, ref)
	}
	if _, err := e.Decide(t.Context(), engine.Decision{SessionID: ref.SessionID, CallID: id, By: "bearer:eve", Approve: true}); bdkerr.CodeOf(err) != bdkerr.Forbidden {
		t.Errorf("eve, afterwards: %v", err)
	}
	if len(c.runs) != 1 {
		t.Errorf("it ran %d times", len(c.runs))
	}
}

// belated is a driver whose first answer is an old row.
type belated struct {
	session.Driver

	row *session.Record
}

func (d *belated) Get(ctx context.Context, id string) (session.Record, error) {
	if old := d.row; old != nil {
		d.row = nil
		return *old, nil
	}
	return d.Driver.Get(ctx, id)
}
