// Package memhost is an agent in memory, for tests of the functions: its sessions, ids, time and model are always the same.
//
// The agent is "workshop", its callers are bearer:ann and bearer:bob, whose tokens are ann-secret and bob-secret. It has the sessions
// that [Open] names; ids count up behind the name of what they were made for.
package memhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

const slug = "workshop"

const script = `
rules:
  - when: {toolResult: add}
    text: "five"
  - when: {message: "^add"}
    calls: [{tool: add, args: {a: 2, b: 3}}]
  - text: "ok"
`

// Host is the agent. It is safe for concurrent use.
type Host struct {
	agent  *engine.Engine
	blobs  *blob.Store
	policy auth.Policy
	clock  clock.Clock
	ids    *ids
	log    *slog.Logger
}

// Open returns the agent, which logs to w without the time. It has four sessions: ses_done1, whose turn has called a tool and ended;
// ses_open1, whose turn turn_open2 was accepted and not started; ses_task1, which has ended; ses_bob1, which is bob's. The first
// has made an artifact with a file, the report "sum".
func Open(ctx context.Context, w io.Writer) (*Host, error) {
	policy, err := auth.Bearer([]string{"ann:ann-secret", "bob:bob-secret"})
	if err != nil {
		return nil, err
	}
	h := &Host{
		blobs: blob.New(memblob.New()), policy: policy, ids: &ids{},
		clock: clock.Fixed(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)),
		log:   slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
	}
	if h.agent, err = h.engine(); err != nil {
		return nil, err
	}
	return h, h.seed(ctx)
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func (h *Host) engine() (*engine.Engine, error) {
	rules, err := scripted.Parse([]byte(script))
	if err != nil {
		return nil, err
	}
	type addInput struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	add := bdk.DefineTool(bdk.ToolSpec{Description: "Add two numbers.", Effect: bdk.Read},
		func(_ context.Context, _ *bdk.Call, in addInput) (int, error) { return in.A + in.B, nil })
	project := bdk.Project{
		Slug: slug, Instructions: "Help.", Agent: bdk.Agent{Model: "scripted:model.yaml"},
		Tools: []bdk.NamedTool{{Name: "add", Source: "bot/tools/add.go", Tool: add}},
		Schedules: []bdk.NamedSchedule{
			{Name: "daily", Source: "bot/schedules/daily.md", Schedule: bdk.DefineSchedule(bdk.ScheduleSpec{Cron: "0 9 * * 1-5", Prompt: "hello"})},
			{Name: "pulse", Source: "bot/schedules/pulse.go", Schedule: bdk.DefineSchedule(bdk.ScheduleSpec{
				Cron: "@hourly", Run: func(context.Context, *bdk.ScheduleContext) error { return errors.New("no luck") },
			})},
		},
	}
	entries := kv.New(memkv.New(), kv.Options{Clock: h.clock})
	tools, err := tool.NewSet(project.Tools, tool.Options{Claims: entries, Clock: h.clock})
	if err != nil {
		return nil, err
	}
	return engine.New(project, engine.Deps{
		Sessions:  session.New(memsession.New(), session.Options{Clock: h.clock, NewID: h.ids.next}),
		Models:    []engine.NamedModel{{ID: "scripted:model.yaml", Model: scripted.New(rules, h.clock)}},
		Artifacts: artifact.New(entries, h.blobs, artifact.Options{Agent: slug, Clock: h.clock}),
		KV:        entries,
		Runner:    idle{}, Tools: tools, Clock: h.clock, NewID: h.ids.next, Log: slog.New(slog.DiscardHandler),
	})
}

func (h *Host) seed(ctx context.Context) error {
	for _, s := range []struct {
		name, owner, message string
		mode                 session.Mode
		run                  bool
	}{
		{"done", "bearer:ann", "add two and three", session.Chat, true},
		{"open", "bearer:ann", "add two and three", session.Chat, false},
		{"task", "bearer:ann", "hello", session.Task, true},
		{"bob", "bearer:bob", "hello", session.Chat, true},
	} {
		h.ids.begin(s.name)
		acc, err := h.agent.Start(ctx, session.Start{Owner: s.owner, Message: s.message, Mode: s.mode, Title: s.name})
		if err == nil && s.run {
			_, err = h.agent.Step(ctx, turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID})
		}
		if err != nil {
			return fmt.Errorf("making the session %s: %w", s.name, err)
		}
	}
	h.ids.begin("new")
	_, err := h.agent.Artifacts().Tag(ctx, artifact.Tagged{
		Kind: "report", Key: "sum", Title: "The sum", Data: json.RawMessage(`{"sum":5}`), File: "sum.html", Content: []byte("<p>Two and three are <b>five</b>.\n"),
		Owner: "bearer:ann", SessionID: "ses_done1",
	})
	return err
}

// API returns the HTTP surface. Time does not go on: do not follow a session that has not ended.
func (h *Host) API(context.Context, bool) (http.Handler, error) {
	return httpapi.New([]httpapi.Agent{h.agent}, httpapi.Options{
		Auth: auth.Chain(h.policy, auth.IAM()), Blobs: h.blobs, Clock: h.clock, NewID: h.ids.next, Log: h.log,
	}), nil
}

// Step works on a turn. One of the session ses_broken ends with an error.
func (h *Host) Step(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
	if ref.SessionID == "ses_broken" {
		return "", errors.New("the table is out of reach")
	}
	return h.agent.Step(ctx, ref)
}

// Parked returns the calls that a turn waits for.
func (h *Host) Parked(ctx context.Context, ref turn.Ref) ([]string, error) {
	return h.agent.Parked(ctx, ref)
}

// Fail ends a turn.
func (h *Host) Fail(ctx context.Context, ref turn.Ref, message string) error {
	h.log.InfoContext(ctx, "failed a turn", slog.String("turn_id", ref.TurnID), slog.String("message", message))
	return h.agent.Fail(ctx, ref, message)
}

// Await parks nothing; it logs the call.
func (h *Host) Await(ctx context.Context, in sfnturn.AwaitInput) error {
	h.log.InfoContext(ctx, "parked a call", slog.String("call_id", in.CallID), slog.Int("token_length", len(in.Token)))
	return nil
}

// Sweep logs that it was called.
func (h *Host) Sweep(ctx context.Context) error {
	h.log.InfoContext(ctx, "swept")
	return nil
}

// Remind logs that it was called.
func (h *Host) Remind(ctx context.Context, id string) error {
	h.log.InfoContext(ctx, "reminded", slog.String("reminder_id", id))
	return nil
}

// Dispatch has a schedule happen: daily has a prompt, pulse a function that fails.
func (h *Host) Dispatch(ctx context.Context, t engine.Tick) (engine.Dispatched, error) {
	h.ids.begin(t.Schedule)
	return h.agent.Dispatch(ctx, t)
}

// Purge logs what it was called with. It fails for the session ses_stuck.
func (h *Host) Purge(ctx context.Context, id, snapshot string) error {
	if id == "ses_stuck" {
		return errors.New("the table is out of reach")
	}
	h.log.InfoContext(ctx, "purged a session", slog.String("session_id", id), slog.String("snapshot", snapshot))
	return nil
}

// Announce logs which events it was called with. It fails from those of the session ses_stuck on.
func (h *Host) Announce(ctx context.Context, events []event.Event) (int, error) {
	for i, e := range events {
		if e.SessionID == "ses_stuck" {
			return i, errors.New("the queue is out of reach")
		}
		h.log.InfoContext(ctx, "dispatched an event", slog.String("session_id", e.SessionID), slog.Int64("index", e.Index), slog.String("type", string(e.Type)))
	}
	return -1, nil
}

// Receive logs a message. It fails for the session ses_stuck.
func (h *Host) Receive(ctx context.Context, m hook.Message) error {
	if m.SessionID == "ses_stuck" {
		return errors.New("the table is out of reach")
	}
	h.log.InfoContext(ctx, "told a subscriber", slog.String("subscriber", m.Subscriber), slog.Any("indexes", m.Indexes))
	return nil
}

// Exec runs nothing: every command says what it is called with. One that is called "broken" is not well formed.
func (h *Host) Exec(_ context.Context, req lambdaexec.Request) lambdaexec.Answer {
	if len(req.Args) == 0 || req.Args[0] == "broken" {
		return lambdaexec.Answer{Fault: &lambdaexec.Fault{Code: bdkerr.InvalidRequest, Message: "the command names no program"}}
	}
	return lambdaexec.Answer{Stdout: []byte(strings.Join(req.Args, " ")), ExitCode: 3, Took: 12}
}

// Slug returns the name of the agent.
func (h *Host) Slug() string { return slug }

// Log returns the logger.
func (h *Host) Log() *slog.Logger { return h.log }

// idle is a runner that leaves turns alone, as a state machine does during the request that starts one.
type idle struct{}

// Start implements [turn.Runner].
func (idle) Start(context.Context, turn.Ref) error { return nil }

// Stop implements [turn.Runner].
func (idle) Stop(context.Context, turn.Ref) error { return nil }

// Resume implements [turn.Runner].
func (idle) Resume(context.Context, turn.Ref, bool, ...string) error { return nil }

// ids makes ids that can be foretold.
type ids struct {
	mu   sync.Mutex
	name string
	n    int
}

func (i *ids) begin(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.name, i.n = name, 0
}

func (i *ids) next() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n++
	return fmt.Sprint(i.name, i.n)
}
