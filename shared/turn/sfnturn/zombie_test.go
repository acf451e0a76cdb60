package sfnturn_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
)

// eager is a model that asks for the slow tool, then for the other one, for ever. Its answers take a while.
type eager struct{ calls atomic.Int64 }

func (m *eager) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	m.calls.Add(1)
	name := "slow"
	if req.Step > 1 {
		name = "quick"
	}
	return func(yield func(model.Delta, error) bool) {
		for range 10 {
			if !yield(model.Delta{Text: "thinking "}, nil) {
				return
			}
			time.Sleep(time.Second)
		}
		_ = yield(model.Delta{Call: &model.CallDelta{ID: "c", Name: name, Args: `{}`}}, nil) &&
			yield(model.Delta{Finish: model.FinishToolCalls}, nil)
	}
}

// agent is an engine whose turns run on the state machine.
type agent struct {
	*world

	engine      *engine.Engine
	model       eager
	slow, quick atomic.Int64 // runs of the tools
	returned    atomic.Int64 // steps that came back
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{}
	a.world = newWorld(t, func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		defer a.returned.Add(1)
		if in.Error != nil {
			return sfnturn.StepOutput{Outcome: turn.Done}, a.engine.Fail(ctx, in.Ref, in.Error.Message())
		}
		out, err := a.engine.Step(ctx, in.Ref)
		return sfnturn.StepOutput{Outcome: out}, err
	}, noAwait, sfntest.Options{})
	tools := []bdk.NamedTool{
		a.tool("slow", func() { a.slow.Add(1); time.Sleep(time.Minute) }), // deaf to its context
		a.tool("quick", func() { a.quick.Add(1) }),
	}
	set, err := tool.NewSet(tools, tool.Options{Claims: kv.New(memkv.New(), kv.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	a.sessions = session.New(memsession.New(), session.Options{})
	a.engine, err = engine.New(bdk.Project{Slug: "a", Tools: tools}, engine.Deps{
		Sessions: a.sessions, Runner: a.runner, Tools: set, Log: slog.New(slog.DiscardHandler),
		Models: []engine.NamedModel{{ID: "test:eager", Model: &a.model}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *agent) tool(name string, run func()) bdk.NamedTool {
	return bdk.NamedTool{Name: name, Source: name + ".go", Tool: bdk.DefineTool(
		bdk.ToolSpec{Description: "Does it.", Effect: bdk.Write},
		func(context.Context, *bdk.Call, struct{}) (string, error) { run(); return "done", nil })}
}

func (a *agent) log(t *testing.T, id string) []string {
	t.Helper()
	var types []string
	c := a.sessions.Cursor(id, 0)
	for {
		events, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return types
		}
		for _, e := range events {
			types = append(types, string(e.Type))
		}
	}
}

// Stopping an execution does not stop its function. The zombie cannot append, ask the model again, or run a tool,
// wherever it was: while the model streams, or in a tool that is deaf and slow.
func TestZombieMeetsTheFence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after     time.Duration
		slow      int64 // runs of the slow tool at all
		lastEvent event.Type
	}{
		"while the model streams": {after: 5500 * time.Millisecond, slow: 0, lastEvent: event.TypeMessageAppended},
		"while a tool runs":       {after: 30 * time.Second, slow: 1, lastEvent: event.TypeActionsRequested},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAgent(t)
				acc, err := a.engine.Start(t.Context(), session.Start{Owner: "local", Message: "go"})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(tc.after)
				before := a.log(t, acc.SessionID)
				if got := before[len(before)-1]; got != string(tc.lastEvent) {
					t.Fatalf("the last event is %s; want %s", got, tc.lastEvent)
				}
				if stopped, err := a.engine.Stop(t.Context(), acc.SessionID, ""); err != nil || stopped != acc.TurnID {
					t.Fatalf("Stop = %q, %v; want %q", stopped, err, acc.TurnID)
				}
				if got := a.server.Execution(acc.TurnID).Status; got != "ABORTED" || a.returned.Load() != 0 {
					t.Fatalf("the execution is %s and %d steps came back; want ABORTED and a step that still runs", got, a.returned.Load())
				}
				time.Sleep(time.Hour)
				if n := a.returned.Load(); n != 1 {
					t.Errorf("%d steps came back; want 1", n)
				}
				if diff := cmp.Diff(append(before, "turn.failed", "session.waiting"), a.log(t, acc.SessionID)); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
				if got := [3]int64{a.model.calls.Load(), a.slow.Load(), a.quick.Load()}; got != [3]int64{1, tc.slow, 0} {
					t.Errorf("calls of the model, the slow and the quick tool: %v; want %v", got, [3]int64{1, tc.slow, 0})
				}
			})
		})
	}
}

// A function that was given up for dead, but is not, and the one that was called in its place: one outcome, no tool twice.
func TestZombieBesideItsHeir(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		acc, err := a.engine.Start(t.Context(), session.Start{Owner: "local", Message: "go"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // the slow tool runs
		ref := turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}
		heir := make(chan error, 1)
		go func() {
			_, err := a.engine.Step(context.Background(), ref)
			heir <- err
		}()
		time.Sleep(10 * time.Minute)
		if _, err := a.engine.Stop(t.Context(), acc.SessionID, ""); err != nil {
			t.Fatal(err)
		}
		if err := <-heir; !errors.Is(err, session.ErrFenced) {
			t.Errorf("the heir's step: %v; want that the other one got ahead while the turn was open", err)
		}
		time.Sleep(time.Hour)
		if n := a.slow.Load(); n != 1 {
			t.Errorf("the slow tool ran %d times; want once", n)
		}
		if got := len(a.ends(t, acc.SessionID)); got != 1 {
			t.Errorf("%d ends of the turn; want 1", got)
		}
	})
}
