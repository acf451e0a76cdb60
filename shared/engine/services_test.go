package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// within runs a function as a tool of a session that is started for it.
func within(t *testing.T, e *engine.Engine, do *atomic.Pointer[func(context.Context, *bdk.Call) error], start session.Start) {
	t.Helper()
	start.Owner, start.Message = "local", "do"
	acc, err := e.Start(t.Context(), start)
	if err == nil {
		_, err = e.Stop(t.Context(), acc.SessionID, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	if do == nil {
		return
	}
	out, err := e.CallTool(t.Context(), engine.ToolCall{Name: "do", Caller: "local", SessionID: acc.SessionID})
	if err != nil || out.IsError {
		t.Errorf("the tool: %v %s", err, out.Result)
	}
}

// doing returns an agent with a tool that does what is stored in the pointer.
func doing(t *testing.T, s storage) (*engine.Engine, *atomic.Pointer[func(context.Context, *bdk.Call) error]) {
	t.Helper()
	var do atomic.Pointer[func(context.Context, *bdk.Call) error]
	tool := bdk.NamedTool{Name: "do", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", Effect: bdk.Read}, func(ctx context.Context, call *bdk.Call, _ struct{}) (string, error) {
		return "done", (*do.Load())(ctx, call)
	})}
	return newEngine(t, config{storage: s, tools: []bdk.NamedTool{tool}, script: "rules: [{when: {message: bad}, error: {kind: invalid, message: no}}, {text: ok}]"}), &do
}

// A call starts a session, continues it, and sees how its turns end; what it sends again is sent once.
func TestCallsSendMessages(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e, do := doing(t, s)
	talk := func(ctx context.Context, call *bdk.Call) error {
		first, err := call.Sessions.Send(ctx, bdk.Message{Text: "hello", Title: "t"})
		if err != nil {
			return err
		}
		again, err := call.Sessions.Send(ctx, bdk.Message{Text: "hello", Title: "t"})
		if err != nil || again != first {
			t.Errorf("again: %+v, %v; want %+v", again, err, first)
		}
		if state, err := call.Sessions.Get(ctx, first.SessionID); err != nil || state.Status != "running" || state.Title != "t" || state.Owner != "local" || state.TurnID != first.TurnID {
			t.Errorf("state = %+v, %v", state, err)
		}
		step(t, e, refOf(first))
		got, err := call.Sessions.Wait(ctx, first.SessionID, first.TurnID)
		if d := cmp.Diff(bdk.TurnResult{Status: "finished", Result: "ok"}, got); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
		second, err := call.Sessions.Send(ctx, bdk.Message{Text: "bad", Token: first.Token})
		if err != nil || second.SessionID != first.SessionID {
			t.Fatalf("continuing: %+v, %v", second, err)
		}
		step(t, e, refOf(second))
		if got, err := call.Sessions.Wait(ctx, second.SessionID, second.TurnID); err != nil || got.Status != "failed" || !strings.Contains(got.Error, "no") {
			t.Errorf("a turn that fails: %+v, %v", got, err)
		}
		third, err := call.Sessions.Send(ctx, bdk.Message{Text: "more", Token: second.Token})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Stop(ctx, third.SessionID, ""); err != nil {
			t.Fatal(err)
		}
		if got, err := call.Sessions.Wait(ctx, third.SessionID, third.TurnID); err != nil || got.Status != "cancelled" {
			t.Errorf("a turn that is stopped: %+v, %v", got, err)
		}
		other, err := call.Sessions.Send(ctx, bdk.Message{Text: "as", As: "bearer:x", Task: true})
		if err != nil {
			t.Fatal(err)
		}
		row, err := e.Sessions().Get(ctx, other.SessionID)
		if err != nil || row.Owner != "bearer:x" || row.Mode != session.Task {
			t.Errorf("row = %+v, %v", row, err)
		}
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if _, err := call.Sessions.Wait(short, other.SessionID, other.TurnID); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for nothing: %v", err)
		}
		return nil
	}
	do.Store(&talk)
	within(t, e, do, session.Start{})
}

func TestMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e, do := doing(t, s)
	foreign, err := newEngineOf(t, s, "other").Start(t.Context(), session.Start{Owner: "local", Message: "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, mine := start(t, e, "hi")
	refused := func(ctx context.Context, call *bdk.Call) error {
		for name, tc := range map[string]struct {
			message bdk.Message
			want    func(error) bool
		}{
			"no text":         {bdk.Message{Text: " "}, code(bdkerr.InvalidRequest)},
			"no token":        {bdk.Message{Text: "x", Token: "abc"}, code(bdkerr.BadToken)},
			"no session":      {bdk.Message{Text: "x", Token: "http:nobody.x"}, func(err error) bool { return errors.Is(err, bdk.ErrNotFound) }},
			"another agent":   {bdk.Message{Text: "x", Token: foreign.Token}, func(err error) bool { return errors.Is(err, bdk.ErrNotFound) }},
			"another owner":   {bdk.Message{Text: "x", Token: mine.Token, As: "bearer:x"}, code(bdkerr.Forbidden)},
			"a used token":    {bdk.Message{Text: "x", Token: mine.Token + "x"}, code(bdkerr.StaleToken)},
			"its own session": {bdk.Message{Text: "x", Token: "http:" + strings.TrimPrefix(call.Session.ID, "ses_") + ".x"}, code(bdkerr.InvalidRequest)},
		} {
			if got, err := call.Sessions.Send(ctx, tc.message); !tc.want(err) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
		for _, id := range []string{"ses_nobody", foreign.SessionID, ""} {
			if _, err := call.Sessions.Get(ctx, id); !errors.Is(err, bdk.ErrNotFound) {
				t.Errorf("session %q: %v", id, err)
			}
			if _, err := call.Sessions.Wait(ctx, id, "turn_x"); !errors.Is(err, bdk.ErrNotFound) {
				t.Errorf("turn of %q: %v", id, err)
			}
		}
		return nil
	}
	do.Store(&refused)
	within(t, e, do, session.Start{})
	dry := func(ctx context.Context, call *bdk.Call) error {
		if _, err := call.Sessions.Send(ctx, bdk.Message{Text: "x"}); !errors.Is(err, bdk.ErrDryRun) {
			t.Errorf("in a dry run: %v", err)
		}
		return nil
	}
	do.Store(&dry)
	within(t, e, do, session.Start{DryRun: true})
}

func refOf(s bdk.Sent) turn.Ref { return turn.Ref{SessionID: s.SessionID, TurnID: s.TurnID} }

func code(want bdkerr.Code) func(error) bool {
	return func(err error) bool { return bdkerr.CodeOf(err) == want }
}

// Values are shared by all sessions of the agent and no other, and change by comparing versions.
func TestValues(t *testing.T) {
	t.Parallel()
	s := newStorage()
	e, do := doing(t, s)
	use := func(ctx context.Context, call *bdk.Call) error {
		if _, err := call.KV.Get(ctx, "a"); !errors.Is(err, bdk.ErrNotFound) {
			t.Errorf("nothing: %v", err)
		}
		for _, value := range []any{map[string]int{"n": 1}, "text"} {
			if err := call.KV.Set(ctx, "a", value); err != nil {
				return err
			}
		}
		entry, err := call.KV.Get(ctx, "a")
		if err != nil || string(entry.Value) != `"text"` || entry.Key != "a" || entry.Version == 0 {
			t.Errorf("%+v, %v", entry, err)
		}
		for version, want := range map[int64]error{0: bdk.ErrChanged, entry.Version + 2: bdk.ErrChanged, entry.Version: nil} {
			if err := call.KV.Swap(ctx, "a", version, 7); !errors.Is(err, want) {
				t.Errorf("swapping version %d: %v; want %v", version, err, want)
			}
		}
		for _, key := range []string{"b/1", "b/2", "b/3"} {
			if err := call.KV.Swap(ctx, key, 0, key); err != nil {
				return err
			}
		}
		list, err := call.KV.List(ctx, "b/", "b/1", 1)
		if err != nil || len(list) != 1 || list[0].Key != "b/2" || string(list[0].Value) != `"b/2"` {
			t.Errorf("%+v, %v", list, err)
		}
		for range 2 {
			if err := call.KV.Delete(ctx, "b/2"); err != nil {
				t.Error(err)
			}
		}
		if list, err := call.KV.List(ctx, "", "", 0); err != nil || len(list) != 3 {
			t.Errorf("%+v, %v", list, err)
		}
		for _, key := range []string{"", strings.Repeat("k", 257), "a\x00"} {
			if err := call.KV.Set(ctx, key, 1); bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
				t.Errorf("key %q: %v", key, err)
			}
		}
		if err := call.KV.Set(ctx, "big", strings.Repeat("x", 300_000)); bdkerr.CodeOf(err) != bdkerr.PayloadTooLarge {
			t.Errorf("a large value: %v", err)
		}
		if err := call.KV.Set(ctx, "func", func() {}); err == nil {
			t.Error("a value that is no JSON was stored")
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := call.KV.Set(ctx, "many", 1); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return nil
	}
	do.Store(&use)
	within(t, e, do, session.Start{})
	again := func(ctx context.Context, call *bdk.Call) error {
		entry, err := call.KV.Get(ctx, "a")
		if string(entry.Value) != "7" || err != nil {
			t.Errorf("in another session: %s, %v", entry.Value, err)
		}
		return nil
	}
	do.Store(&again)
	within(t, e, do, session.Start{})
}

// What a call tags is told in the log of its session, kept with its file as it was, and listed for the owner.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	s := filesStorage()
	report := bdk.NamedTool{Name: "report", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(ctx context.Context, call *bdk.Call, in pathInput) (int, error) {
		if err := call.Workspace.WriteFile(ctx, "out/report.md", []byte(in.Text), 0o644); err != nil {
			return 0, err
		}
		if _, err := call.Artifacts.Tag(ctx, bdk.Artifact{Kind: "report", Key: in.Path, Data: map[string]int{"n": 1}, Path: "out/report.md"}); err != nil {
			return 0, err
		}
		list, err := call.Artifacts.List(ctx, bdk.ArtifactQuery{SessionID: call.Session.ID})
		return len(list), err
	})}
	f := &fake{answers: [][]model.Delta{{call(0, "report", `{"path":"weekly","text":"one"}`), finish(model.FinishToolCalls)}, hello}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{report}})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	tagged := find[event.ArtifactTagged](t, events(t, s.sessions, ref.SessionID))
	if len(tagged) != 1 || tagged[0].Kind != "report" || tagged[0].Title != "weekly" {
		t.Fatalf("artifact.tagged = %+v", tagged)
	}
	out := callTool(t, e, engine.ToolCall{Name: "report", Input: []byte(`{"path":"weekly","text":"two"}`), SessionID: ref.SessionID})
	if string(out.Result) != "1" {
		t.Errorf("tagged again: %s artifacts; want 1", out.Result)
	}
	record, content, err := e.Artifacts().Content(t.Context(), tagged[0].ID)
	if err != nil || string(content) != "two" || record.File != "report.md" || record.Owner != "local" || string(record.Data) != `{"n":1}` {
		t.Errorf("%+v, %q, %v", record, content, err)
	}
	if got := find[event.ArtifactTagged](t, events(t, s.sessions, ref.SessionID)); len(got) != 2 {
		t.Errorf("artifact.tagged = %+v; want one for each", got)
	}
	for _, in := range []string{`{"path":"","text":"x"}`} {
		if out := callTool(t, e, engine.ToolCall{Name: "report", Input: []byte(in)}); !out.IsError {
			t.Errorf("%s was recorded: %s", in, out.Result)
		}
	}
}
