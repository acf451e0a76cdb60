package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
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
)

// Sizes and limits that cannot be meant are refused, all at once; those left out have defaults.
func TestNewRefusesImpossibleLimits(t *testing.T) {
	t.Parallel()
	build := func(agent bdk.Agent) error {
		tools, err := tool.NewSet(nil, tool.Options{Claims: kv.New(memkv.New(), kv.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.New(bdk.Project{Slug: "test", Agent: agent}, engine.Deps{
			Sessions: session.New(memsession.New(), session.Options{}), Runner: idle{}, Tools: tools, Log: slog.New(slog.DiscardHandler),
			Models: []engine.NamedModel{{ID: "scripted:test", Model: play(t, "rules: [{text: ok}]")}},
		})
		return err
	}
	if err := build(bdk.Agent{}); err != nil {
		t.Errorf("the zero agent: %v", err)
	}
	err := build(bdk.Agent{MaxOutputTokens: -1, ContextTokens: -1, Limits: bdk.Limits{
		StepsPerTurn: -1, TurnTime: -time.Second, RunningTurns: -1, ParallelTools: -1, ToolOutput: -1, TokensPerSession: -1, USDPerSession: -0.5,
	}})
	if small := build(bdk.Agent{ContextTokens: 8000}); small == nil || !strings.Contains(small.Error(), "MaxOutputTokens, 8192") {
		t.Errorf("a context that the answer alone fills: %v", small)
	}
	if err == nil {
		t.Fatal("negative limits are accepted")
	}
	for _, name := range []string{
		"MaxOutputTokens", "ContextTokens", "StepsPerTurn", "TurnTime", "RunningTurns", "ParallelTools", "ToolOutput", "TokensPerSession", "USDPerSession",
	} {
		if !strings.Contains(err.Error(), name+" is -") {
			t.Errorf("error %q does not name %s", err, name)
		}
	}
}

// What recent sessions said stays in memory, what ten thousand said does not.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	e := newEngine(t, config{script: "rules: [{text: ok}]"})
	for range 300 {
		ref, _ := start(t, e, "hi")
		step(t, e, ref)
	}
	if n, size := e.Cached(); n != 256 || size < 256*500 || size > 256*2000 {
		t.Errorf("%d transcripts of %d bytes are kept; want 256 with what they really take", n, size)
	}
	for range 20 {
		ref, _ := start(t, e, strings.Repeat("x", 1<<19))
		step(t, e, ref)
	}
	if n, size := e.Cached(); n > 17 || size > 8<<20 {
		t.Errorf("%d transcripts of %d bytes are kept; want at most 8 MiB", n, size)
	}
}

var oneUsage = event.Usage{InputTokens: 1000, OutputTokens: 100, CacheReadTokens: 10, CacheWriteTokens: 1}

// What a turn used counts however it ended; a model without a price makes the cost unknown, never zero.
func TestUsageOfTurnsThatDidNotEndWell(t *testing.T) {
	t.Parallel()
	for id, priced := range map[string]bool{"anthropic:claude-sonnet-4-5": true, "anthropic:nobody-knows": false} {
		usage := model.Usage(oneUsage)
		ask := []model.Delta{call(0, "act", `{"a":1,"b":1}`), {Usage: &usage}, finish(model.FinishToolCalls)}
		s := newStorage()
		var e *engine.Engine
		var acc session.Accepted
		act := bdk.NamedTool{Name: "act", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Act.", Effect: bdk.Read},
			func(context.Context, *bdk.Call, addInput) (int, error) {
				if len(events(t, s.sessions, acc.SessionID)) > 30 {
					_, err := e.Stop(context.Background(), acc.SessionID, "")
					return 0, err
				}
				return 1, nil
			})}
		f := &fake{answers: [][]model.Delta{ask}}
		e = newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: id, Model: f}}, tools: []bdk.NamedTool{act}, agent: bdk.Agent{Limits: bdk.Limits{StepsPerTurn: 8}}})
		var ref turn.Ref
		ref, acc = start(t, e, "go")
		step(t, e, ref) // fails after eight steps
		ref, acc = send(t, e, acc, "again")
		step(t, e, ref) // is stopped in its first step
		cost, err := e.Cost(t.Context(), ref.SessionID)
		if err != nil || len(cost.Turns) != 2 {
			t.Fatalf("Cost = %+v, %v", cost, err)
		}
		var spent []string
		for _, c := range append(cost.Turns, engine.TurnCost{Status: "session", Usage: cost.Usage, TotalUSD: cost.TotalUSD}) {
			spent = append(spent, fmt.Sprintf("%s %d", c.Status, c.Usage.InputTokens))
			if priced != (c.TotalUSD != nil) || priced && *c.TotalUSD <= 0 {
				t.Errorf("%s: %s costs %v", id, c.Status, c.TotalUSD)
			}
		}
		if got := strings.Join(spent, ", "); got != "failed 8000, cancelled 1000, session 9000" {
			t.Errorf("spent = %s", got)
		}
	}
}

// A session whose price is reached gets no more model calls.
func TestPriceLimit(t *testing.T) {
	t.Parallel()
	s := newStorage()
	usage := model.Usage(oneUsage)
	f := &fake{answers: [][]model.Delta{{{Text: "ok"}, {Usage: &usage}, finish(model.FinishStop)}}}
	e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "anthropic:claude-sonnet-4-5", Model: f}}, agent: bdk.Agent{Limits: bdk.Limits{USDPerSession: 0.01}}})
	ref, acc := start(t, e, "go")
	step(t, e, ref)
	for range 9 {
		ref, acc = send(t, e, acc, "more")
		step(t, e, ref)
	}
	log := events(t, s.sessions, ref.SessionID)
	done, failed := len(find[event.TurnCompleted](t, log)), find[event.TurnFailed](t, log)
	if done < 2 || done > 4 || len(failed) != 10-done || !strings.Contains(failed[0].Message, "USDPerSession") {
		t.Errorf("%d turns completed, then %+v", done, failed)
	}
	if got := find[event.TurnCompleted](t, log)[0].Cost; got == nil || got.TotalUSD <= 0 {
		t.Errorf("cost = %+v", got)
	}
}

// failing is a runner that is out of order.
type failing struct{}

func (failing) Start(context.Context, turn.Ref) error { return errors.New("no room") }
func (failing) Stop(context.Context, turn.Ref) error  { return errors.New("no room") }

func (failing) Resume(context.Context, turn.Ref, bool, ...string) error { return errors.New("no room") }

// What was recorded is accepted, whatever the runner says: it will find the turn.
func TestAcceptedMeansRecorded(t *testing.T) {
	t.Parallel()
	e := newEngine(t, config{script: "rules: [{text: ok}]", runner: failing{}})
	ref, acc := start(t, e, "hi")
	ref2, acc := send(t, e, acc, "hi again")
	if acc.Interrupted != ref.TurnID {
		t.Errorf("interrupted %q; want %q", acc.Interrupted, ref.TurnID)
	}
	if stopped, err := e.Stop(t.Context(), ref2.SessionID, ""); err != nil || stopped != ref2.TurnID {
		t.Errorf("Stop = %q, %v", stopped, err)
	}
}

// A task session ends with its turn, and says how.
func TestTaskSessionEndsWithItsTurn(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"rules: [{text: ok}]":               "turn.completed session.completed completed",
		"rules: [{error: {kind: invalid}}]": "turn.failed session.failed failed",
	} {
		s := newStorage()
		e := newEngine(t, config{storage: s, script: script})
		acc, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "do it", Mode: session.Task})
		if err != nil {
			t.Fatal(err)
		}
		step(t, e, turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID})
		row, err := e.Sessions().Get(t.Context(), acc.SessionID)
		if err != nil {
			t.Fatal(err)
		}
		log := types(events(t, s.sessions, acc.SessionID))
		if got := strings.Join(append(log[len(log)-2:], row.Ended), " "); got != want {
			t.Errorf("%s ends with %s; want %s", script, got, want)
		}
	}
}

// noting is a runner that notes what it is told.
type noting struct {
	mu    sync.Mutex
	notes []string
}

func (n *noting) note(what string, ref turn.Ref) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, what+" "+ref.TurnID)
	return nil
}

func (n *noting) Start(_ context.Context, ref turn.Ref) error { return n.note("start", ref) }
func (n *noting) Stop(_ context.Context, ref turn.Ref) error  { return n.note("stop", ref) }

func (n *noting) Resume(_ context.Context, ref turn.Ref, parked bool, callIDs ...string) error {
	return n.note(fmt.Sprint("resume ", callIDs, parked), ref)
}

// The runner is told of every turn once, and of every turn that is ended before its time.
func TestRunnerIsTold(t *testing.T) {
	t.Parallel()
	n := &noting{}
	e := newEngine(t, config{script: "rules: [{text: ok}]", runner: n})
	var first session.Accepted
	for range 2 {
		var err error
		if first, err = e.Start(t.Context(), session.Start{Owner: "local", Message: "hi", Key: session.RequestKey{Name: "k"}}); err != nil {
			t.Fatal(err)
		}
	}
	var second session.Accepted
	for range 2 {
		var err error
		again := session.Message{SessionID: first.SessionID, Owner: "local", Token: first.Token, Text: "again", Key: session.RequestKey{Name: "l"}}
		if second, err = e.Send(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := e.Stop(t.Context(), first.SessionID, ""); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"start " + first.TurnID, "stop " + first.TurnID, "start " + second.TurnID, "stop " + second.TurnID}
	if d := cmp.Diff(want, n.notes); d != "" {
		t.Error(d)
	}
}
