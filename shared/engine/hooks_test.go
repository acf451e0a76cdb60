package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// onSkill returns a hook that handles skill.loaded, which tests append.
func onSkill(spec bdk.HookSpec, run func(context.Context, *bdk.HookContext, bdk.SkillLoaded) error) []bdk.NamedHook {
	handler := bdk.On(func(ctx context.Context, h *bdk.HookContext, _ bdk.Event, data bdk.SkillLoaded) error {
		return run(ctx, h, data)
	})
	return []bdk.NamedHook{{Name: "audit/usage", Source: "bot/hooks/audit/usage.go", Hook: bdk.DefineHook(spec, handler)}}
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tellAll tells the subscribers of an engine the log of a session.
func tellAll(t *testing.T, e *engine.Engine, s storage, id string) {
	t.Helper()
	for _, sub := range e.Subscribers() {
		for _, ev := range events(t, s.sessions, id) {
			if sub.Wants(ev) {
				if err := sub.Handle(t.Context(), ev); err != nil {
					t.Errorf("a hook is to be tried again: %v", err)
				}
			}
		}
	}
}

func TestHookContext(t *testing.T) {
	t.Parallel()
	s := newStorage()
	s.blobs = memblob.New()
	var got bdk.HookContext
	hooks := onSkill(bdk.HookSpec{}, func(ctx context.Context, h *bdk.HookContext, data bdk.SkillLoaded) error {
		got = *h
		if err := h.KV.Set(ctx, h.Session.ID, data.Name); err != nil {
			return err
		}
		if _, err := h.Artifacts.Tag(ctx, bdk.Artifact{Kind: "report", Key: "k", Path: "x"}); err == nil {
			return errors.New("a file was read")
		}
		_, err := h.Artifacts.Tag(ctx, bdk.Artifact{Kind: "report", Key: data.Name})
		return err
	})
	var log lines
	e := newEngine(t, config{storage: s, script: "rules: [{text: ok}]", hooks: hooks, agent: bdk.Agent{Name: "Test"}, log: slog.New(slog.NewTextHandler(&log, nil))})
	acc, err := e.Start(t.Context(), session.Start{Owner: "ann", Message: "hi", Title: "Title", Purpose: "eval", Mode: session.Task, Channel: "review"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Sessions().Record(t.Context(), acc.SessionID, "turn_x", 0, event.SkillLoaded{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	tellAll(t, e, s, acc.SessionID)
	want := bdk.SessionInfo{ID: acc.SessionID, TurnID: "turn_x", Agent: "test", Title: "Title", Channel: "review", Mode: "task", Purpose: "eval", Owner: "ann"}
	if diff := cmp.Diff(want, got.Session); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	if got.Agent != "Test" || got.Channel != (bdk.HookChannel{ID: "review"}) {
		t.Errorf("got %q in %+v", got.Agent, got.Channel)
	}
	if entry, err := got.KV.Get(t.Context(), acc.SessionID); err != nil || string(entry.Value) != `"s"` {
		t.Errorf("got %s, %v", entry.Value, err)
	}
	// what the hook recorded is in the log, and the turn goes on
	if all := events(t, s.sessions, acc.SessionID); all[len(all)-1].Type != event.TypeArtifactTagged {
		t.Errorf("the last event is %+v; the log says %s", all[len(all)-1], &log)
	}
	step(t, e, turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID})
}

// What hooks record is not told to hooks.
func TestHooksAreNotToldOfThemselves(t *testing.T) {
	t.Parallel()
	s := newStorage()
	s.blobs = memblob.New()
	n := 0
	handler := bdk.OnAny(func(ctx context.Context, h *bdk.HookContext, _ bdk.Event) error {
		n++
		_, err := h.Artifacts.Tag(ctx, bdk.Artifact{Kind: "report", Key: fmt.Sprint(n)})
		return err
	})
	e := newEngine(t, config{storage: s, script: "rules: [{text: ok}]", hooks: []bdk.NamedHook{{Name: "loop", Hook: bdk.DefineHook(bdk.HookSpec{}, handler)}}})
	_, acc := start(t, e, "hi")
	tellAll(t, e, s, acc.SessionID)
	first := n
	tellAll(t, e, s, acc.SessionID)
	if first != 2 || n != 4 {
		t.Errorf("the hook was told %d events, then %d", first, n)
	}
}

func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		run  func(context.Context) error
		want string
		took time.Duration
	}{
		"error":       {func(context.Context) error { return errors.New("boom") }, "boom", 0},
		"panic":       {func(context.Context) error { panic("boom") }, "panic: boom", 0},
		"slow":        {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, "the time of 5s is over", 5 * time.Second},
		"never ready": {func(context.Context) error { time.Sleep(time.Minute); return nil }, "the time of 5s is over, and the handler goes on: it is left alone", 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log lines
				s := newStorage()
				hooks := onSkill(bdk.HookSpec{Timeout: 5 * time.Second}, func(ctx context.Context, _ *bdk.HookContext, _ bdk.SkillLoaded) error { return test.run(ctx) })
				e := newEngine(t, config{storage: s, script: "rules: [{text: ok}]", hooks: hooks, log: slog.New(slog.NewTextHandler(&log, nil))})
				_, acc := start(t, e, "hi")
				if _, err := e.Sessions().Record(t.Context(), acc.SessionID, "x", 0, event.SkillLoaded{}); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				tellAll(t, e, s, acc.SessionID)
				if took := time.Since(begin); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				if want := fmt.Sprintf(`hook \"audit/usage\" handler for skill.loaded threw: %s"`, test.want); !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %s: %s", want, &log)
				}
				time.Sleep(time.Minute) // for who was left alone
			})
		})
	}
}

// A hook that is wrong keeps the agent from being started.
func TestWrongHooksAreRefused(t *testing.T) {
	t.Parallel()
	s := newStorage()
	_, err := engine.New(bdk.Project{Slug: "test", Hooks: onSkill(bdk.HookSpec{Timeout: time.Hour}, nil)}, engine.Deps{
		Sessions: session.New(s.sessions, session.Options{}), Runner: idle{}, Tools: toolSet(t, s, nil), Log: quietLog(),
		Models: []engine.NamedModel{{ID: "scripted:test", Model: play(t, "rules: [{text: ok}]")}},
	})
	if err == nil || !strings.Contains(err.Error(), "hook audit/usage (bot/hooks/audit/usage.go): the Timeout is 1h0m0s") {
		t.Errorf("got %v", err)
	}
}
