package dynamosession_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/dynamokv"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// idle is a runner that runs nothing.
type idle struct{}

func (idle) Start(context.Context, turn.Ref) error { return nil }
func (idle) Stop(context.Context, turn.Ref) error  { return nil }

func (idle) Resume(context.Context, turn.Ref, bool, ...string) error { return nil }

// TestRequestsAndUnitsOfWholeTurns fixes what turns of the engine cost in storage, when each part runs in a process that has
// nothing in its caches.
func TestRequestsAndUnitsOfWholeTurns(t *testing.T) {
	t.Parallel()
	e := dynamotest.Start(t)
	const script = `rules:
- {when: {message: "^one"}, calls: [{tool: write, args: {n: 1}}], usage: {inputTokens: 512, outputTokens: 24}}
- {when: {message: "three"}, calls: [{tool: write, args: {n: 1}}, {tool: write, args: {n: 2}}, {tool: write, args: {n: 3}}]}
- {text: "Pull request 42 looks fine: all checks have passed and one reviewer has approved it.", usage: {inputTokens: 512, outputTokens: 24}}
`
	for _, tc := range []struct{ message, run string }{ // and how many calls it leads to
		{"none", "[GetItem:1 PutItem:2 Query:2 TransactWriteItems:1] [index write:4 read:3 write:10]"},
		{"one", "[GetItem:1 PutItem:4 Query:2 TransactWriteItems:2] [index write:4 read:3 write:16]"},
		{"three", "[GetItem:1 PutItem:8 Query:2 TransactWriteItems:2] [index write:4 read:3 write:20]"},
	} {
		t.Run(tc.message, func(t *testing.T) {
			t.Parallel()
			meter := &dynamotest.Transport{Meter: true}
			d := open(t, e, meter)
			claims := dynamokv.New(e.Client(meter), d.tables.Control)
			fresh := func() *engine.Engine { return newEngine(t, d, claims, script) }
			acc, err := fresh().Start(t.Context(), session.Start{Owner: backend, Message: tc.message})
			if err != nil {
				t.Fatal(err)
			}
			wantCounts(t, "accept", "[TransactWriteItems:1] [index write:2 write:6]", meter)
			out, err := fresh().Step(t.Context(), turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID})
			if err != nil || out != turn.Done {
				t.Fatalf("got %q, %v", out, err)
			}
			wantCounts(t, "run", tc.run, meter)
		})
	}
}

func wantCounts(t *testing.T, what, want string, meter *dynamotest.Transport) {
	t.Helper()
	calls, units := meter.Counts()
	if got := strings.ReplaceAll(fmt.Sprint(calls, " ", units), "map", ""); got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func newEngine(t *testing.T, d session.Driver, claims kv.Driver, script string) *engine.Engine {
	t.Helper()
	type input struct {
		N int `json:"n"`
	}
	write := bdk.DefineTool(bdk.ToolSpec{Description: "Writes.", Effect: bdk.Write}, func(context.Context, *bdk.Call, input) (string, error) {
		return "written", nil
	})
	named := []bdk.NamedTool{{Name: "write", Tool: write}}
	tools, err := tool.NewSet(named, tool.Options{Claims: kv.New(claims, kv.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(bdk.Project{Slug: "pr-approver", Tools: named}, engine.Deps{
		Sessions: session.New(d, session.Options{}), Runner: idle{}, Tools: tools, Log: slog.New(slog.DiscardHandler),
		Models: []engine.NamedModel{{ID: "scripted:rules", Model: scripted.New(parsed, clock.System{})}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Who gives up on a turn may have no right to read what was said in it.
func TestTurnIsFailedWithoutTheBlobStore(t *testing.T) {
	t.Parallel()
	e, transport := dynamotest.Start(t), &dynamotest.Transport{}
	d := open(t, e, transport)
	agent := newEngine(t, d, dynamokv.New(e.Client(transport), d.tables.Control), "rules: [{text: ok}]")
	acc, err := agent.Start(t.Context(), session.Start{Owner: backend, Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := agent.Sessions().Open(t.Context(), acc.SessionID, acc.TurnID)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Skip(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), event.MessageAppended{Text: noise(64 << 10)}); err != nil {
		t.Fatal(err)
	}
	d.blobs.lose(t)
	ref := turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}
	if out, err := agent.Step(t.Context(), ref); err == nil {
		t.Fatalf("Step = %q: nothing was lost", out)
	}
	if err := agent.Fail(t.Context(), ref, "gave up"); err != nil {
		t.Fatal(err)
	}
	if row, err := d.Get(t.Context(), acc.SessionID); err != nil || row.Turn.ID != "" {
		t.Errorf("turn %q is active, %v; want none", row.Turn.ID, err)
	}
}
