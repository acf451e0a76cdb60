package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

var hello = []model.Delta{{Text: "hel"}, {Text: "lo"}, {Finish: model.FinishStop}}

func TestModelFaults(t *testing.T) {
	t.Parallel()
	throttled := &model.Error{Kind: model.Throttled, Message: "slow down", RetryAfter: time.Second}
	patient := &model.Error{Kind: model.Throttled, Message: "come back tomorrow", RetryAfter: time.Hour}
	invalid := &model.Error{Kind: model.Invalid, Message: "no such model"}
	for _, tc := range []struct {
		name      string
		first     map[int]error // faults of the agent's model, by request
		second    map[int]error // faults of its fallback
		restarts  int
		wantModel string // that answered; "" if the turn fails
		wantTime  time.Duration
	}{
		{name: "none", wantModel: "anthropic:first"},
		{name: "throttled once", first: map[int]error{0: throttled}, restarts: 1, wantModel: "anthropic:first", wantTime: time.Second},
		{name: "throttled for ever", first: all(throttled), restarts: 4, wantModel: "openai:second", wantTime: 3 * time.Second},
		{name: "asks for too much patience", first: all(patient), restarts: 1, wantModel: "openai:second"},
		{name: "invalid", first: all(invalid), restarts: 1, wantModel: "openai:second"},
		{name: "both fail", first: all(invalid), second: all(invalid), restarts: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorage()
				e := newEngine(t, config{storage: s, models: []engine.NamedModel{
					{ID: "anthropic:first", Model: &fake{answers: [][]model.Delta{hello}, errs: tc.first}},
					{ID: "openai:second", Model: &fake{answers: [][]model.Delta{hello}, errs: tc.second}},
				}})
				begin := time.Now()
				ref, _ := start(t, e, "hi")
				step(t, e, ref)
				log := events(t, s.sessions, ref.SessionID)
				if got := len(find[event.StepRestarted](t, log)); got != tc.restarts {
					t.Errorf("%d restarts; want %d: %v", got, tc.restarts, types(log))
				}
				if tc.wantModel == "" {
					if got := find[event.TurnFailed](t, log); len(got) != 1 || got[0].Status != "error" || !strings.Contains(got[0].Message, "no such model") {
						t.Errorf("turn.failed = %+v", got)
					}
					return
				}
				done := find[event.MessageCompleted](t, log)
				if len(done) != 1 || done[0].Text != "hello" || done[0].UsageOf != tc.wantModel {
					t.Errorf("message.completed = %+v; want hello of %s", done, tc.wantModel)
				}
				if took := time.Since(begin); took < tc.wantTime || took > tc.wantTime+25*time.Second {
					t.Errorf("took %s; want about %s", took, tc.wantTime)
				}
			})
		})
	}
}

func all(err error) map[int]error {
	errs := make(map[int]error)
	for i := range 100 {
		errs[i] = err
	}
	return errs
}

// A stream that ends without its finish is a fault like a cut connection: the partial text is dropped by a restart.
func TestStreamWithoutFinishIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e := newEngine(t, config{storage: s, models: (&fake{answers: [][]model.Delta{{{Text: "half"}}, hello}}).named()})
	ref, _ := start(t, e, "hi")
	step(t, e, ref)
	log := events(t, s.sessions, ref.SessionID)
	if len(find[event.StepRestarted](t, log)) != 1 || find[event.MessageCompleted](t, log)[0].Text != "hello" {
		t.Errorf("log = %v", types(log))
	}
}

// Deltas: the first at once, then what came in 250 ms or 900 bytes, also when the model pauses.
func TestDeltasAreGathered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		m := slow{pause: 10 * time.Millisecond, pieces: strings.Split(strings.Repeat("word ", 100), " ")}
		e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "anthropic:slow", Model: m}}})
		ref, _ := start(t, e, "hi")
		step(t, e, ref)
		log := events(t, s.sessions, ref.SessionID)
		deltas := find[event.MessageAppended](t, log)
		if n := len(deltas); n < 4 || n > 7 {
			t.Errorf("%d deltas for a second of text; want about five", n)
		}
		if deltas[0].Text != "word" {
			t.Errorf("first delta = %q; want the first piece alone", deltas[0].Text)
		}
	})
}

type slow struct {
	pause  time.Duration
	pieces []string
}

func (m slow) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, p := range m.pieces {
			if !yield(model.Delta{Text: p}, nil) {
				return
			}
			time.Sleep(m.pause)
		}
		yield(model.Delta{Finish: model.FinishStop}, nil)
	}
}

// stuck is a model that says something and then ignores everybody.
type stuck struct{ said, release chan struct{} }

func (m stuck) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if !yield(model.Delta{Text: "thinking"}, nil) {
			return
		}
		close(m.said)
		<-m.release
	}
}

// A stopped turn ends at once even if the provider does not notice, and the session goes on.
func TestStopDoesNotWaitForTheProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		m := stuck{make(chan struct{}), make(chan struct{})}
		defer close(m.release)
		e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "anthropic:stuck", Model: m}}})
		ref, acc := start(t, e, "hi")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = e.Step(ctx, ref)
		}()
		<-m.said
		synctest.Wait()
		if stopped, err := e.Stop(t.Context(), ref.SessionID, ref.TurnID); err != nil || stopped != ref.TurnID {
			t.Fatalf("Stop = %q, %v", stopped, err)
		}
		cancel(errors.New("stopped"))
		<-ended
		log := events(t, s.sessions, ref.SessionID)
		if got := find[event.TurnFailed](t, log); len(got) != 1 || got[0].Status != "cancelled" {
			t.Errorf("turn.failed = %+v", got)
		}

		f := &fake{answers: [][]model.Delta{hello}}
		heir := newEngine(t, config{storage: s, models: f.named()})
		next, _ := send(t, heir, acc, "still there?")
		step(t, heir, next)
		var said []string
		for _, msg := range f.requests[0].Messages {
			said = append(said, string(msg.Role)+": "+msg.Text)
		}
		if d := cmp.Diff([]string{"user: hi", "assistant: thinking", "user: still there?"}, said); d != "" {
			t.Error(d)
		}
	})
}

// However a turn ends, the next request pairs every call with one result.
func TestCallsOfAnEndedTurnHaveResults(t *testing.T) {
	t.Parallel()
	s := newStorage()
	block, began := make(chan struct{}), make(chan struct{}, 2)
	defer close(block)
	wait := bdk.NamedTool{Name: "wait", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Wait.", Effect: bdk.Read},
		func(ctx context.Context, _ *bdk.Call, _ struct{}) (string, error) {
			began <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		})}
	f := &fake{answers: [][]model.Delta{
		{{Call: &model.CallDelta{Index: 0, ID: "1", Name: "wait"}}, {Call: &model.CallDelta{Index: 1, ID: "1", Name: "wait"}}, {Finish: model.FinishToolCalls}},
		hello,
	}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{wait}})
	ref, acc := start(t, e, "go")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = e.Step(ctx, ref)
	}()
	<-began
	<-began
	next, _ := send(t, e, acc, "never mind")
	cancel(errors.New("interrupted"))
	<-ended
	step(t, e, next)
	checkPairs(t, f.requests)
	if msgs := f.requests[1].Messages; len(msgs) != 4 || !strings.Contains(msgs[2].Results[1].Output, "unknown") {
		t.Errorf("messages = %+v", msgs)
	}
}

func TestLimitsEndTheTurnAndNameThemselves(t *testing.T) {
	t.Parallel()
	c := &counted{}
	loop := &fake{answers: [][]model.Delta{{
		{Call: &model.CallDelta{ID: "1", Name: "add", Args: `{"a":1,"b":1}`}}, {Usage: &model.Usage{InputTokens: 400, OutputTokens: 100}}, {Finish: model.FinishToolCalls},
	}}}
	for name, limits := range map[string]bdk.Limits{
		"StepsPerTurn":     {StepsPerTurn: 5},
		"TokensPerSession": {TokensPerSession: 2000},
		"USDPerSession":    {USDPerSession: 0.01}, // four calls at $3 and $15 a million
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStorage()
			priced := []engine.NamedModel{{ID: "anthropic:claude-sonnet-4-5", Model: loop}}
			e := newEngine(t, config{storage: s, models: priced, agent: bdk.Agent{Limits: limits}, tools: []bdk.NamedTool{c.tool("add", bdk.Read)}})
			ref, acc := start(t, e, "go")
			step(t, e, ref)
			got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID))
			if len(got) != 1 || got[0].Status != "error" || !strings.Contains(got[0].Message, name) {
				t.Errorf("turn.failed = %+v", got)
			}
			if n := len(find[event.ActionResult](t, events(t, s.sessions, ref.SessionID))); n < 3 || n > 5 {
				t.Errorf("the turn ended after %d calls", n)
			}
			next, _ := send(t, e, acc, "again")
			step(t, e, next)
		})
	}
}

func TestTurnTimeEndsTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		e := newEngine(t, config{
			storage: s, agent: bdk.Agent{Limits: bdk.Limits{TurnTime: time.Minute}},
			models: []engine.NamedModel{{ID: "anthropic:slow", Model: slow{pause: time.Second, pieces: make([]string, 1000)}}},
		})
		ref, _ := start(t, e, "hi")
		step(t, e, ref)
		if got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 || !strings.Contains(got[0].Message, "TurnTime") {
			t.Errorf("turn.failed = %+v", got)
		}
		time.Sleep(1000 * time.Second) // lets the model's goroutine end
	})
}

// One delivery of a turn may become five. One of them runs it.
func TestConcurrentStepsRunTheTurnOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		s, c := newStorage(), &counted{}
		ref, _ := start(t, newEngine(t, config{storage: s, script: addScript}), "tool")
		var wg sync.WaitGroup
		for range 5 {
			e := newEngine(t, config{storage: s, script: addScript, tools: []bdk.NamedTool{c.tool("add", bdk.Write)}})
			wg.Go(func() {
				for {
					// one that others got ahead of is to be made again
					if out, err := e.Step(t.Context(), ref); err != nil && !errors.Is(err, session.ErrFenced) {
						t.Error(err)
						return
					} else if err == nil && out == turn.Done {
						return
					}
				}
			})
		}
		wg.Wait()
		log := events(t, s.sessions, ref.SessionID)
		if n := len(find[event.TurnStarted](t, log)); n != 1 {
			t.Fatalf("%d turn.started: %v", n, types(log))
		}
		if n := len(find[event.TurnCompleted](t, log)); n > 1 {
			t.Fatalf("%d turn.completed", n)
		}
		for id, n := range c.runs {
			if n != 1 {
				t.Errorf("%s ran %d times", id, n)
			}
		}
	}
}

func TestManyParallelCallsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	var answer []model.Delta
	for i := range 32 {
		answer = append(answer, model.Delta{Call: &model.CallDelta{Index: i, ID: "same", Name: "add", Args: fmt.Sprintf(`{"a":%d,"b":1}`, i)}})
	}
	f := &fake{answers: [][]model.Delta{append(answer, model.Delta{Finish: model.FinishToolCalls}), hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.tool("add", bdk.Write)}})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	if got := find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)); len(got) != 32 || len(c.runs) != 32 {
		t.Errorf("%d results, %d calls run; want 32", len(got), len(c.runs))
	}
	for i, r := range f.requests[1].Messages[2].Results {
		if r.Output != fmt.Sprint(i+1) {
			t.Errorf("result %d = %s: not in the order of the calls", i, r.Output)
		}
	}
}

// Five large outputs fit the model's budget together; head and tail of each stay, and the log has the whole.
func TestLargeOutputsAreShortenedForTheModelOnly(t *testing.T) {
	t.Parallel()
	s := newStorage()
	const size = 1 << 20
	big := bdk.NamedTool{Name: "big", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Much.", Effect: bdk.Read},
		func(context.Context, *bdk.Call, struct{}) (string, error) {
			return "begin" + strings.Repeat("é", size/2) + "exit 1", nil
		})}
	var answer []model.Delta
	for i := range 5 {
		answer = append(answer, model.Delta{Call: &model.CallDelta{Index: i, Name: "big"}})
	}
	f := &fake{answers: [][]model.Delta{append(answer, model.Delta{Finish: model.FinishToolCalls}), hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{big}})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	total := 0
	for _, r := range f.requests[1].Messages[2].Results {
		total += len(r.Output)
		if !strings.HasPrefix(r.Output, "begin") || !strings.HasSuffix(r.Output, "exit 1") || !json.Valid([]byte(`"`+strings.ReplaceAll(r.Output, "\n", `\n`)+`"`)) {
			t.Errorf("output lost its ends: %.20q … %.20q", r.Output, r.Output[len(r.Output)-20:])
		}
	}
	if total > 65_536+5*100 {
		t.Errorf("the model reads %d bytes; want 65,536", total)
	}
	for _, r := range find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)) {
		if len(r.Output) < size {
			t.Errorf("the log has only %d bytes", len(r.Output))
		}
	}
}

// Instructions and tool schemas count: with many large ones the conversation is compacted before the call that would overflow.
func TestCompaction(t *testing.T) {
	t.Parallel()
	for _, summary := range []string{"the summary", ""} {
		s := newStorage()
		schema := json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 2000) + `"}`)
		var tools []bdk.NamedTool
		for i := range 60 {
			tools = append(tools, bdk.NamedTool{Name: fmt.Sprintf("tool%02d", i), Tool: bdk.DefineTool(
				bdk.ToolSpec{Description: "Nothing.", InputSchema: schema},
				func(context.Context, *bdk.Call, json.RawMessage) (string, error) { return "", nil })})
		}
		m := &summarizing{summary: summary}
		e := newEngine(t, config{
			storage: s, models: []engine.NamedModel{{ID: "anthropic:m", Model: m}}, tools: tools, prompt: "Be brief.",
			agent: bdk.Agent{ContextTokens: 40_000, MaxOutputTokens: 1000},
		})
		ref, acc := start(t, e, "remember the number 42")
		step(t, e, ref)
		for range 12 {
			ref, acc = send(t, e, acc, strings.Repeat("blah ", 800))
			step(t, e, ref)
		}
		log := events(t, s.sessions, ref.SessionID)
		compactions := find[event.ContextCompacted](t, log)
		if len(compactions) == 0 {
			t.Fatal("nothing was compacted")
		}
		for _, c := range compactions {
			if c.AfterTokens >= c.BeforeTokens {
				t.Errorf("compaction did not shrink: %+v", c)
			}
		}
		if n := len(find[event.TurnCompleted](t, log)); n != 13 {
			t.Errorf("%d turns completed; want 13", n)
		}
		if m.largest > 35_000*4 {
			t.Errorf("a request had %d bytes", m.largest)
		}
		checkPairs(t, m.requests)

		// A process that knows only the log sees the same conversation.
		heir := &summarizing{}
		ref, _ = send(t, newEngine(t, config{
			storage: s, models: []engine.NamedModel{{ID: "anthropic:m", Model: heir}}, tools: tools, prompt: "Be brief.",
			agent: bdk.Agent{ContextTokens: 40_000, MaxOutputTokens: 1000},
		}), acc, "bye")
		step(t, newEngine(t, config{
			storage: s, models: []engine.NamedModel{{ID: "anthropic:m", Model: heir}}, tools: tools, prompt: "Be brief.",
			agent: bdk.Agent{ContextTokens: 40_000, MaxOutputTokens: 1000},
		}), ref)
		if first := heir.requests[0].Messages[0].Text; !strings.HasPrefix(first, "Summary of the conversation") {
			t.Errorf("the conversation begins with %.40q", first)
		}
	}
}

type summarizing struct {
	fake
	summary string
	largest int
}

func (m *summarizing) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		size := len(req.Instructions)
		for _, msg := range req.Messages {
			size += len(msg.Text)
		}
		for _, tl := range req.Tools {
			size += len(tl.InputSchema)
		}
		m.largest = max(m.largest, size)
		text := "ok"
		if strings.HasPrefix(req.Messages[0].Text, "Summarize") {
			text = m.summary
		} else {
			m.requests = append(m.requests, &model.Request{Messages: append([]model.Message(nil), req.Messages...)})
		}
		_ = yield(model.Delta{Text: text}, nil) && yield(model.Delta{Finish: model.FinishStop}, nil)
	}
}

// A conversation that cannot be made to fit ends its turn with a clear error, and so does one the provider finds too long.
func TestConversationThatCannotFit(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e := newEngine(t, config{
		storage: s, script: "rules: [{text: ok}]", prompt: bdk.Instructions(strings.Repeat("x", 10_000)),
		agent: bdk.Agent{ContextTokens: 2000, MaxOutputTokens: 100},
	})
	ref, _ := start(t, e, "hi")
	step(t, e, ref)
	if got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 || !strings.Contains(got[0].Message, "ContextTokens") {
		t.Errorf("turn.failed = %+v", got)
	}
}

// counting counts the events that are read and the snapshots that are written.
type counting struct {
	session.Driver
	events, snapshots atomic.Int64
}

func (c *counting) PutSnapshot(ctx context.Context, id string, s session.Snapshot) error {
	c.snapshots.Add(1)
	return c.Driver.PutSnapshot(ctx, id, s)
}

func (c *counting) Events(ctx context.Context, id string, from int64, limit int) ([]event.Event, error) {
	got, err := c.Driver.Events(ctx, id, from, limit)
	c.events.Add(int64(len(got)))
	return got, err
}

// What a turn reads does not grow with the session's history, even in a process that has just started.
func TestTurnReadsSnapshotAndTailOnly(t *testing.T) {
	t.Parallel()
	s := newStorage()
	before := &counting{Driver: s.sessions}
	e := newEngine(t, config{storage: storage{sessions: before, claims: s.claims}, script: "rules: [{text: ok}]"})
	ref, acc := start(t, e, "hi")
	step(t, e, ref)
	for range 400 {
		ref, acc = send(t, e, acc, "more")
		step(t, e, ref)
	}
	total := len(events(t, s.sessions, ref.SessionID))
	c := &counting{Driver: s.sessions}
	s.sessions = c
	f := &fake{answers: [][]model.Delta{hello}}
	fresh := newEngine(t, config{storage: s, models: f.named()})
	ref, _ = send(t, fresh, acc, "after a restart")
	step(t, fresh, ref)
	if got := c.events.Load(); got > 160 {
		t.Errorf("a turn read %d of %d events; want the last 128 at most and its own", got, total)
	}
	if got, again := before.snapshots.Load(), c.snapshots.Load(); got < 10 || got > int64(total/128) || again != 0 {
		t.Errorf("%d snapshots of %d events, and %d more after one turn; want one for every 128 at most", got, total, again)
	}
	if got := len(f.requests[0].Messages); got != 2*401+1 {
		t.Errorf("the model saw %d messages; want %d", got, 2*401+1)
	}
}

func TestStepHandsTheTurnBackWhenAsked(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	e := newEngine(t, config{storage: s, script: addScript, tools: []bdk.NamedTool{c.tool("add", bdk.Write)}})
	ref, _ := start(t, e, "tool")
	var asked atomic.Int64
	ctx := turn.WithYield(t.Context(), func(time.Duration) bool { return asked.Add(1) > 2 })
	if out, err := e.Step(ctx, ref); err != nil || out != turn.Continue {
		t.Fatalf("Step = %q, %v; want continue", out, err)
	}
	step(t, newEngine(t, config{storage: s, script: addScript, tools: []bdk.NamedTool{c.tool("add", bdk.Write)}}), ref)
	checkFinished(t, "after a hand-over", events(t, s.sessions, ref.SessionID), c)
}

func TestToolsThatMisbehave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		define := func(name string, timeout time.Duration, run func(context.Context) (any, error)) bdk.NamedTool {
			return bdk.NamedTool{Name: name, Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Odd.", Effect: bdk.Read, Timeout: timeout},
				func(ctx context.Context, _ *bdk.Call, _ struct{}) (any, error) { return run(ctx) })}
		}
		tools := []bdk.NamedTool{
			define("fails", 0, func(context.Context) (any, error) { return nil, errors.New("no such branch") }),
			define("panics", 0, func(context.Context) (any, error) { panic("boom") }),
			define("hangs", time.Second, func(context.Context) (any, error) { time.Sleep(time.Hour); return 1, nil }),
			define("odd", 0, func(context.Context) (any, error) { return func() {}, nil }),
			define("waits", time.Second, func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }),
		}
		f := &fake{answers: [][]model.Delta{{
			{Call: &model.CallDelta{Index: 0, Name: "fails"}},
			{Call: &model.CallDelta{Index: 1, Name: "panics"}},
			{Call: &model.CallDelta{Index: 2, Name: "hangs"}},
			{Call: &model.CallDelta{Index: 3, Name: "odd"}},
			{Call: &model.CallDelta{Index: 4, Name: "waits"}},
			{Finish: model.FinishToolCalls},
		}, hello}}
		e := newEngine(t, config{storage: s, models: f.named(), tools: tools})
		ref, _ := start(t, e, "go")
		step(t, e, ref)
		want := []string{"no such branch", "boom", "within 1s", "JSON", "deadline"}
		for i, r := range f.requests[1].Messages[2].Results {
			if !r.IsError || !strings.Contains(r.Output, want[i]) {
				t.Errorf("%s = %+v; want an error about %q", r.Name, r, want[i])
			}
		}
		time.Sleep(2 * time.Hour) // lets the tool that hangs end
	})
}

func TestDryRunAnswersWritesWithoutRunningThem(t *testing.T) {
	t.Parallel()
	s, c := newStorage(), &counted{}
	e := newEngine(t, config{storage: s, script: addScript, tools: []bdk.NamedTool{c.tool("add", bdk.Write)}})
	acc, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "tool", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	step(t, e, turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID})
	if got := find[event.ActionResult](t, events(t, s.sessions, acc.SessionID)); len(got) != 1 || !got[0].Stubbed || len(c.runs) != 0 {
		t.Errorf("results = %+v, runs = %v", got, c.runs)
	}
}

func TestCostAddsUpTurns(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e := newEngine(t, config{storage: s, script: addScript, tools: []bdk.NamedTool{(&counted{}).tool("add", bdk.Read)}})
	ref, acc := start(t, e, "tool")
	step(t, e, ref)
	ref, acc = send(t, e, acc, "hi")
	step(t, e, ref)
	send(t, e, acc, "unfinished")
	cost, err := e.Cost(t.Context(), ref.SessionID)
	if err != nil || len(cost.Turns) != 3 {
		t.Fatalf("Cost = %+v, %v", cost, err)
	}
	var sum int64
	for i, want := range []string{"completed", "completed", "running"} {
		if cost.Turns[i].Status != want || cost.Turns[i].TotalUSD != nil {
			t.Errorf("turn %d = %+v; want %s and no price", i, cost.Turns[i], want)
		}
		sum += cost.Turns[i].Usage.OutputTokens
	}
	if sum == 0 || cost.Usage.OutputTokens != sum {
		t.Errorf("sum of turns %d, of session %d", sum, cost.Usage.OutputTokens)
	}
}

func TestFailEndsATurnOnce(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e := newEngine(t, config{storage: s, script: addScript})
	ref, _ := start(t, e, "hi")
	for range 2 {
		if err := e.Fail(t.Context(), ref, "gave up"); err != nil {
			t.Fatal(err)
		}
	}
	if got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID)); len(got) != 1 || got[0].Message != "gave up" {
		t.Errorf("turn.failed = %+v", got)
	}
}

// A call that was made again is forgotten once it succeeded: neither its restart nor its reasoning comes up again.
func TestRestartIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := newStorage(), &counted{}
		think := func(rest ...model.Delta) []model.Delta {
			return append([]model.Delta{{Reasoning: "hm"}, {Signature: "sig"}, {Text: "so"}}, rest...)
		}
		f := &fake{
			answers: [][]model.Delta{think(finish(model.FinishStop)), think(call(0, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)), hello},
			errs:    map[int]error{0: &model.Error{Kind: model.Unavailable, Message: "cut"}},
		}
		e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{c.tool("add", bdk.Read)}})
		ref, _ := start(t, e, "go")
		step(t, e, ref)
		log := events(t, s.sessions, ref.SessionID)
		if got := find[event.StepRestarted](t, log); len(got) != 1 || got[0].Step != 1 {
			t.Errorf("step.restarted = %+v; want one of the first step", got)
		}
		if got := f.requests[2].Messages[1]; len(got.Reasoning) != 1 || got.Text != "so" {
			t.Errorf("the answer is kept as %+v", got)
		}
	})
}

// A lot of text in no time is not held back, nor written piece by piece.
func TestManyDeltasAtOnceAreGatheredBySize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		var answer []model.Delta
		for range 1000 {
			answer = append(answer, model.Delta{Text: "0123456789"})
		}
		e := newEngine(t, config{storage: s, models: (&fake{answers: [][]model.Delta{append(answer, finish(model.FinishStop))}}).named()})
		ref, _ := start(t, e, "hi")
		step(t, e, ref)
		if n := len(find[event.MessageAppended](t, events(t, s.sessions, ref.SessionID))); n < 11 || n > 13 {
			t.Errorf("%d deltas of 10,000 bytes; want one for each 900", n)
		}
	})
}

// sleeps is a write tool that takes A seconds unless its context ends.
func sleeps(c *counted) bdk.NamedTool {
	return bdk.NamedTool{Name: "sleep", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Sleep."},
		func(ctx context.Context, call *bdk.Call, in addInput) (string, error) {
			c.run(call.ID)
			select {
			case <-time.After(time.Duration(in.A) * time.Second):
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})}
}

func TestParallelToolsBoundsCallsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answer []model.Delta
		for i := range 10 {
			answer = append(answer, call(i, "sleep", `{"a":1,"b":0}`))
		}
		f := &fake{answers: [][]model.Delta{append(answer, finish(model.FinishToolCalls)), hello}}
		e := newEngine(t, config{models: f.named(), tools: []bdk.NamedTool{sleeps(&counted{})}, agent: bdk.Agent{Limits: bdk.Limits{ParallelTools: 3}}})
		ref, _ := start(t, e, "go")
		begin := time.Now()
		step(t, e, ref)
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("ten calls of a second took %s, three at a time; want 4s", took)
		}
	})
}

// What a tool says because it was cut off is no result of its call.
func TestCallThatIsCutOffHasNoResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		f := &fake{answers: [][]model.Delta{{call(0, "sleep", `{"a":60,"b":0}`), finish(model.FinishToolCalls)}, hello}}
		e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{sleeps(&counted{})}})
		ref, _ := start(t, e, "go")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Step(ctx, ref); err == nil {
			t.Error("a step that is cut off has no error")
		}
		if got := find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)); len(got) != 0 {
			t.Errorf("results = %+v; want none", got)
		}
		step(t, e, ref)
		if got := f.requests[1].Messages[2].Results[0].Output; !strings.Contains(got, "outcome unknown") {
			t.Errorf("the model reads %q", got)
		}
	})
}

// When one call finds out that the turn was ended elsewhere, the others end at once.
func TestCallsEndWhenTheTurnWasEndedElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorage()
		f := &fake{answers: [][]model.Delta{{call(0, "sleep", `{"a":2,"b":0}`), call(1, "sleep", `{"a":500,"b":0}`), finish(model.FinishToolCalls)}, hello}}
		e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{sleeps(&counted{})}})
		ref, _ := start(t, e, "go")
		time.AfterFunc(time.Second, func() {
			if _, err := newEngine(t, config{storage: s, models: f.named()}).Stop(t.Context(), ref.SessionID, ref.TurnID); err != nil {
				t.Error(err)
			}
		})
		begin := time.Now()
		step(t, e, ref)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("Step took %s; want the two seconds until the first call ended", took)
		}
	})
}
