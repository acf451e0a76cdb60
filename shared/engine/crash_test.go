package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// talker is a model whose turns have all there is: reasoning, text in pieces, two rounds of calls, a fault in the middle
// and outputs so large that the conversation is compacted. It goes by the request alone, as real ones do, but for the fault.
type talker struct{ faults *atomic.Int64 }

func (m talker) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	var rounds int
	for _, msg := range req.Messages {
		if msg.Role == model.Results || strings.HasPrefix(msg.Text, "Summary") {
			rounds++
		}
	}
	answer := []model.Delta{{Reasoning: "let me "}, {Reasoning: "think"}, {Signature: "sig"}, {Text: "wor"}, {Text: "king"}}
	usage := model.Delta{Usage: &model.Usage{InputTokens: 10, OutputTokens: 1}}
	switch {
	case strings.HasPrefix(req.Messages[0].Text, "Summarize"):
		answer = []model.Delta{{Text: "much was said"}, finish(model.FinishStop), usage}
	case rounds == 0:
		answer = append(answer, call(0, "add", `{"a":1,"b":1}`), call(1, "fetch", `{"a":1,"b":1}`), call(2, "add", `{"a":2,"b":1}`), finish(model.FinishToolCalls), usage)
	case rounds == 1 && req.Step == 2:
		answer = append(answer, call(0, "fetch", `{"a":2,"b":1}`), call(1, "add", `{"a":3,"b":1}`), finish(model.FinishToolCalls), usage)
	default:
		answer = append(answer, finish(model.FinishStop), usage)
	}
	return func(yield func(model.Delta, error) bool) {
		for i, d := range answer {
			if i == 4 && m.faults.Add(-1) == 0 {
				yield(model.Delta{}, &model.Error{Kind: model.Unavailable, Message: "connection reset"})
				return
			}
			if !yield(d, nil) {
				return
			}
			time.Sleep(300 * time.Millisecond) // so that each piece is an event
		}
	}
}

// As TestDeathAtEveryWrite, with everything that a turn may hold.
func TestDeathAtEveryWriteOfARichTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // lets the models of the dead end
		for n := int64(1); ; n++ {
			if n > 200 {
				t.Fatal("the turn does not end")
			}
			if survived := dieAt(t, n, n%2 == 0); survived {
				break
			}
		}
	})
}

// dieAt has a process run the rich turn until it dies at its nth write, and another finish it. It reports whether there was no nth write.
func dieAt(t *testing.T, n int64, after bool) bool {
	t.Helper()
	s, writes := newStorage(), &counted{}
	tools := []bdk.NamedTool{writes.tool("add", bdk.Write), fetch(12_000)}
	faults := &atomic.Int64{}
	faults.Store(2)
	boot := func(s storage) *engine.Engine {
		return newEngine(t, config{
			storage: s, tools: tools, models: []engine.NamedModel{{ID: "anthropic:talker", Model: talker{faults}}},
			agent: bdk.Agent{ContextTokens: 6000, MaxOutputTokens: 100},
		})
	}
	ref, acc := start(t, boot(s), "go")
	d := dying{Driver: s.sessions, left: &atomic.Int64{}, after: after}
	d.left.Store(n)
	_, err := boot(storage{sessions: d, claims: dyingClaims{s.claims, d}}).Step(t.Context(), ref)
	heir := boot(s)
	step(t, heir, ref)
	when := fmt.Sprintf("death at write %d (after: %v, error: %v)", n, after, err)
	log := events(t, s.sessions, ref.SessionID)
	checkFinished(t, when, log, writes)
	if got := len(find[event.ContextCompacted](t, log)); got == 0 {
		t.Errorf("%s: nothing was compacted", when)
	}
	if got := len(find[event.StepRestarted](t, log)); got == 0 {
		t.Errorf("%s: nothing was retried", when)
	}
	checkReaders(t, when, log)
	next, _ := send(t, heir, acc, "and again")
	step(t, heir, next)
	return d.left.Load() > 0
}

// checkReaders checks that a reader who adds up deltas, and drops them at a restart, gets every whole text.
func checkReaders(t *testing.T, when string, log []event.Event) {
	t.Helper()
	var text string
	for _, e := range log {
		switch e.Type {
		case event.TypeMessageAppended:
			d, _ := event.Decode[event.MessageAppended](e)
			text += d.Text
		case event.TypeStepRestarted:
			text = ""
		case event.TypeMessageCompleted:
			if d, _ := event.Decode[event.MessageCompleted](e); d.Text != text {
				t.Errorf("%s: deltas add up to %q, the whole is %q", when, text, d.Text)
			}
			text = ""
		default:
		}
	}
}

// A model call at which every process dies is not made for ever.
func TestDeathInEveryModelCallEndsTheTurn(t *testing.T) {
	t.Parallel()
	s := newStorage()
	f := &fake{answers: [][]model.Delta{{{Text: "half"}, {Text: " more"}, finish(model.FinishStop)}}}
	ref, _ := start(t, newEngine(t, config{storage: s, models: f.named()}), "hi")
	for n := 0; ; n++ {
		d := dying{Driver: s.sessions, left: &atomic.Int64{}}
		d.left.Store(3) // turn.started or step.restarted, the first delta, and no more
		out, err := newEngine(t, config{storage: storage{sessions: d, claims: s.claims}, models: f.named()}).Step(t.Context(), ref)
		if err == nil && out == turn.Done {
			break
		}
		if n > 30 {
			t.Fatal("the turn does not end")
		}
	}
	if got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 || !strings.Contains(got[0].Message, "24 tries") {
		t.Errorf("turn.failed = %+v", got)
	}
}

// The time of a turn runs from its start, whatever process works on it, and also while none does.
func TestTurnTimeRunsAcrossProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		c := config{
			storage: s, agent: bdk.Agent{Limits: bdk.Limits{TurnTime: time.Hour}},
			models: []engine.NamedModel{{ID: "anthropic:slow", Model: slow{pause: time.Second, pieces: make([]string, 10_000)}}},
		}
		ref, _ := start(t, newEngine(t, c), "hi")
		begin := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Minute, errors.New("killed"))
		defer cancel()
		if _, err := newEngine(t, c).Step(ctx, ref); err == nil {
			t.Fatal("the first process was not killed")
		}
		time.Sleep(30 * time.Minute)
		step(t, newEngine(t, c), ref)
		if took := time.Since(begin).Round(time.Second); took != time.Hour {
			t.Errorf("the turn ended after %s; want 1h", took)
		}
		if got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 || !strings.Contains(got[0].Message, "TurnTime") {
			t.Errorf("turn.failed = %+v", got)
		}
		time.Sleep(4 * time.Hour) // lets the models' goroutines end
	})
}

// A turn that is stopped after its tool had its effect, before that was recorded: nothing is recorded any more, and the
// model of the next turn reads that the outcome is unknown.
func TestStopBetweenEffectAndRecord(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(e *engine.Engine, acc session.Accepted) error{
		"stop": func(e *engine.Engine, acc session.Accepted) error {
			_, err := e.Stop(context.Background(), acc.SessionID, acc.TurnID)
			return err
		},
		"fail": func(e *engine.Engine, acc session.Accepted) error {
			return e.Fail(context.Background(), turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}, "gave up")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStorage()
			var e *engine.Engine
			var acc session.Accepted
			self := bdk.NamedTool{Name: "self", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Stops its own turn."},
				func(context.Context, *bdk.Call, struct{}) (string, error) { return "done", interrupt(e, acc) })}
			f := &fake{answers: [][]model.Delta{{call(0, "self", ""), finish(model.FinishToolCalls)}, hello}}
			e = newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{self}})
			var ref turn.Ref
			ref, acc = start(t, e, "go")
			step(t, e, ref)
			log := events(t, s.sessions, ref.SessionID)
			if got := types(log)[len(log)-2:]; got[0] != "turn.failed" || got[1] != "session.waiting" {
				t.Errorf("log = %v; want nothing behind the end", types(log))
			}
			next, _ := send(t, e, acc, "well?")
			step(t, e, next)
			checkPairs(t, f.requests)
			if got := f.requests[1].Messages[2].Results[0].Output; !strings.Contains(got, "unknown") {
				t.Errorf("the model reads %q", got)
			}
		})
	}
}

// Fail ends a turn even while Step works on it and writes all the time.
func TestFailWhileStepRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "anthropic:slow", Model: slow{pause: 250 * time.Millisecond, pieces: strings.Split(strings.Repeat("x", 100), "")}}}})
		ref, _ := start(t, e, "hi")
		done := make(chan error)
		go func() {
			_, err := e.Step(t.Context(), ref)
			done <- err
		}()
		time.Sleep(10 * time.Second)
		if err := e.Fail(t.Context(), ref, "gave up"); err != nil {
			t.Errorf("Fail = %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Step = %v", err)
		}
		log := events(t, s.sessions, ref.SessionID)
		if got := find[event.TurnFailed](t, log); len(got) != 1 || got[0].Message != "gave up" || len(find[event.TurnCompleted](t, log)) != 0 {
			t.Errorf("log = %v", types(log))
		}
		time.Sleep(time.Minute)
	})
}

// beaten is a driver in which the turn's other writer is always a little faster, some times.
type beaten struct {
	session.Driver
	left *atomic.Int64
	beat func()
}

func (d beaten) Commit(ctx context.Context, b session.Batch) error {
	if d.left.Add(-1) >= 0 {
		d.beat()
	}
	return d.Driver.Commit(ctx, b)
}

// Fail that loses against an event of the running turn has not ended it, and so goes on.
func TestFailThatLosesGoesOn(t *testing.T) {
	t.Parallel()
	s := newStorage()
	store := session.New(s.sessions, session.Options{})
	ref, _ := start(t, newEngine(t, config{storage: s, script: "rules: [{text: ok}]"}), "hi")
	w, err := store.Open(t.Context(), ref.SessionID, ref.TurnID)
	if err == nil {
		err = w.Replay(t.Context(), 0, func(event.Event) error { return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	d := beaten{Driver: s.sessions, left: &atomic.Int64{}, beat: func() {
		if _, err := w.Append(t.Context(), event.MessageAppended{Text: "x"}); err != nil {
			t.Error(err)
		}
	}}
	d.left.Store(3)
	if err := newEngine(t, config{storage: storage{sessions: d, claims: s.claims}, script: "rules: [{text: ok}]"}).Fail(t.Context(), ref, "gave up"); err != nil {
		t.Fatal(err)
	}
	if got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 {
		t.Errorf("turn.failed = %+v; want one", got)
	}
}

// A log that cannot be read ends its turns: they would fail for ever.
func TestLogThatCannotBeReadEndsTheTurn(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e := newEngine(t, config{storage: s, script: "rules: [{text: ok}]"})
	ref, _ := start(t, e, "hi")
	bad := event.Event{Type: event.TypeMessageAppended, TurnID: ref.TurnID, SessionID: ref.SessionID, Index: 2, ID: "bad", At: time.Now().UTC().Truncate(time.Millisecond), Data: []byte(`{"text":[1]}`)}
	if err := s.sessions.Commit(t.Context(), session.Batch{SessionID: ref.SessionID, At: 2, Events: []event.Event{bad}}); err != nil {
		t.Fatal(err)
	}
	step(t, e, ref)
	got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID))
	if len(got) != 1 || !strings.Contains(got[0].Message, "event 2") {
		t.Errorf("turn.failed = %+v; want one that names event 2", got)
	}
	row, err := e.Sessions().Get(t.Context(), ref.SessionID)
	if err != nil || row.Turn.ID != "" {
		t.Errorf("row = %+v, %v; want no active turn", row, err)
	}
}

// A process that was taken for dead while its tool ran: another one finishes the turn, and it notices.
func TestTwoProcessesWithTheSameTurn(t *testing.T) {
	t.Parallel()
	s, runs := newStorage(), &atomic.Int64{}
	began, release := make(chan struct{}), make(chan struct{})
	slowAdd := bdk.NamedTool{Name: "add", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Add."},
		func(context.Context, *bdk.Call, addInput) (int, error) {
			runs.Add(1)
			close(began)
			<-release
			return 5, nil
		})}
	one := newEngine(t, config{storage: s, holder: "one", script: addScript, tools: []bdk.NamedTool{slowAdd}})
	two := newEngine(t, config{storage: s, holder: "two", script: addScript, tools: []bdk.NamedTool{slowAdd}})
	ref, _ := start(t, one, "tool")
	done := make(chan turn.Outcome)
	go func() {
		out, err := one.Step(context.Background(), ref)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	<-began
	row, err := two.Sessions().Get(t.Context(), ref.SessionID)
	if err == nil {
		err = two.Sessions().Claim(t.Context(), row)
	}
	if err != nil {
		t.Fatal(err)
	}
	step(t, two, ref)
	close(release)
	if out := <-done; out != turn.Done {
		t.Errorf("the first process = %q; want done", out)
	}
	log := events(t, s.sessions, ref.SessionID)
	if got := find[event.ActionResult](t, log); len(got) != 1 || !strings.Contains(string(got[0].Output), "outcome unknown") || runs.Load() != 1 || len(find[event.TurnCompleted](t, log)) != 1 {
		t.Errorf("results = %+v, %d runs: %v", got, runs.Load(), types(log))
	}
}

// Whoever writes beside a turn, and however old what a process remembers is: the model sees the whole conversation.
func TestProcessesThatTakeTurns(t *testing.T) {
	t.Parallel()
	s := newStorage()
	f := &fake{answers: [][]model.Delta{hello}}
	first, second := newEngine(t, config{storage: s, models: f.named()}), newEngine(t, config{storage: s, models: f.named()})
	ref, acc := start(t, first, "0")
	step(t, first, ref)
	for i := 1; i < 12; i++ {
		e := first
		if i%3 != 0 {
			e = second
		}
		ref, acc = send(t, e, acc, fmt.Sprint(i))
		side := event.New("", event.ArtifactTagged{ID: "a"})
		tail, err := e.Sessions().Tail(t.Context(), ref.SessionID)
		if err != nil {
			t.Fatal(err)
		}
		side.Index, side.SessionID, side.ID, side.At = tail, ref.SessionID, fmt.Sprint("side", i), time.Now().UTC().Truncate(time.Millisecond)
		if err := s.sessions.Commit(t.Context(), session.Batch{SessionID: ref.SessionID, At: tail, Events: []event.Event{side}}); err != nil {
			t.Fatal(err)
		}
		step(t, e, ref)
	}
	last := f.requests[len(f.requests)-1].Messages
	for i, m := range last {
		if want := fmt.Sprint(i / 2); i%2 == 0 && m.Text != want {
			t.Errorf("message %d = %q; want %q", i, m.Text, want)
		}
	}
	if len(last) != 23 {
		t.Errorf("the model sees %d messages; want 23", len(last))
	}
}

// hiccup is a driver that fails to record one result.
type hiccup struct {
	session.Driver
	left *atomic.Int64
}

func (d hiccup) Commit(ctx context.Context, b session.Batch) error {
	if len(b.Events) > 0 && b.Events[0].Type == event.TypeActionResult && d.left.Add(-1) == 0 {
		return errors.New("disk full")
	}
	return d.Driver.Commit(ctx, b)
}

// A result that cannot be recorded does not cut off the calls beside it: theirs are recorded, and only one outcome is unknown.
func TestResultThatIsLostLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, runs := newStorage(), &counted{}
		d := hiccup{s.sessions, &atomic.Int64{}}
		d.left.Store(1)
		f := &fake{answers: [][]model.Delta{{call(0, "sleep", `{"a":1,"b":0}`), call(1, "sleep", `{"a":5,"b":0}`), finish(model.FinishToolCalls)}, hello}}
		e := newEngine(t, config{storage: storage{sessions: d, claims: s.claims}, models: f.named(), tools: []bdk.NamedTool{sleeps(runs)}})
		ref, _ := start(t, e, "go")
		if _, err := e.Step(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Fatalf("Step = %v; want the fault of the storage", err)
		}
		step(t, e, ref)
		results := f.requests[1].Messages[2].Results
		if !strings.Contains(results[0].Output, "outcome unknown") || results[1].Output != "done" || len(runs.runs) != 2 {
			t.Errorf("results = %+v after %d runs", results, len(runs.runs))
		}
	})
}

// A turn whose session is gone has ended: a runner must not try it for ever.
func TestTurnOfASessionThatIsGone(t *testing.T) {
	t.Parallel()
	e := newEngine(t, config{script: "rules: [{text: ok}]"})
	ref := turn.Ref{SessionID: "ses_gone", TurnID: "turn_gone"}
	step(t, e, ref)
	if err := e.Fail(t.Context(), ref, "gave up"); err != nil {
		t.Errorf("Fail = %v", err)
	}
}
