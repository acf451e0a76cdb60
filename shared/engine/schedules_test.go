package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

func scheduleOf(name string, spec bdk.ScheduleSpec) bdk.NamedSchedule {
	spec.Cron = "@hourly"
	return bdk.NamedSchedule{Name: name, Schedule: bdk.DefineSchedule(spec)}
}

// A prompt starts one task session for each tick, which belongs to the schedule.
func TestSchedulesWithAPrompt(t *testing.T) {
	t.Parallel()
	e := newEngine(t, config{script: "rules: [{text: done}]", schedules: []bdk.NamedSchedule{scheduleOf("daily", bdk.ScheduleSpec{Prompt: "Look around."})}})
	tick := engine.Tick{Schedule: "daily", At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}
	var ids sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			done, err := e.Dispatch(t.Context(), tick)
			if err != nil || done.Repeated == (len(done.SessionIDs) > 0) {
				t.Errorf("got %+v, %v", done, err)
			}
			for _, id := range done.SessionIDs {
				ids.Store(id, true)
			}
		})
	}
	wg.Wait()
	count := 0
	ids.Range(func(id, _ any) bool {
		count++
		row, err := e.Sessions().Get(t.Context(), id.(string))
		if err != nil || row.Owner != "schedule:daily" || row.Mode != session.Task || row.Title != "daily" {
			t.Errorf("row %+v, %v", row, err)
		}
		step(t, e, turn.Ref{SessionID: row.ID, TurnID: row.Turn.ID})
		if row, err = e.Sessions().Get(t.Context(), id.(string)); err != nil || row.Ended != "completed" {
			t.Errorf("row %+v, %v", row, err)
		}
		return true
	})
	if count != 1 {
		t.Errorf("%d sessions; want one", count)
	}
	for _, next := range []engine.Tick{{Schedule: "daily", At: tick.At.Add(time.Hour)}, {Schedule: "daily", At: tick.At, ByHand: true}, {Schedule: "daily", At: tick.At, ByHand: true}} {
		if done, err := e.Dispatch(t.Context(), next); err != nil || len(done.SessionIDs) != 1 {
			t.Errorf("another tick: %+v, %v", done, err)
		}
	}
	if _, err := e.Dispatch(t.Context(), engine.Tick{Schedule: "weekly", At: tick.At}); bdkerr.CodeOf(err) != bdkerr.NotFound {
		t.Errorf("an unknown schedule: %v", err)
	}
}

// A function is run at most once for a tick, whatever becomes of it.
func TestSchedulesWithAFunction(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		run  func(context.Context, *bdk.ScheduleContext) error
		want string // in the failure; "" for none
	}{
		"well":  {func(context.Context, *bdk.ScheduleContext) error { return nil }, ""},
		"error": {func(context.Context, *bdk.ScheduleContext) error { return errors.New("no luck") }, "no luck"},
		"panic": {func(context.Context, *bdk.ScheduleContext) error { panic("oh no") }, "panicked: oh no"},
		"slow":  {func(ctx context.Context, _ *bdk.ScheduleContext) error { <-ctx.Done(); return context.Cause(ctx) }, "used up its time of 1m0s"},
		"deaf":  {func(context.Context, *bdk.ScheduleContext) error { time.Sleep(time.Hour); return nil }, "and goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int32
				e := newEngine(t, config{script: "rules: [{text: ok}]", schedules: []bdk.NamedSchedule{scheduleOf("s", bdk.ScheduleSpec{
					Timeout: time.Minute, Run: func(ctx context.Context, c *bdk.ScheduleContext) error { runs.Add(1); return tc.run(ctx, c) },
				})}})
				done, err := e.Dispatch(t.Context(), engine.Tick{Schedule: "s", At: at})
				if err != nil || done.Repeated || (done.Failed == nil) != (tc.want == "") || done.Failed != nil && !strings.Contains(done.Failed.Error(), tc.want) {
					t.Errorf("got %+v, %v", done, err)
				}
				for range 3 {
					if done, err := e.Dispatch(t.Context(), engine.Tick{Schedule: "s", At: at}); err != nil || !done.Repeated {
						t.Errorf("again: %+v, %v", done, err)
					}
				}
				if runs.Load() != 1 {
					t.Errorf("ran %d times", runs.Load())
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// What a schedule's function can do.
func TestScheduleContext(t *testing.T) {
	t.Parallel()
	type in struct {
		Text string `json:"text"`
	}
	tools := []bdk.NamedTool{
		{Name: "echo", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(_ context.Context, call *bdk.Call, in in) (string, error) {
			if in.Text == "fail" {
				return "", errors.New("it failed")
			}
			return call.Session.Owner + ": " + in.Text, nil
		})},
		{Name: "gated", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", NeedsApproval: bdk.Always, Approvers: []string{"bearer:ops"}},
			func(context.Context, *bdk.Call, struct{}) (string, error) { return "x", nil })},
	}
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	run := func(ctx context.Context, c *bdk.ScheduleContext) error {
		if c.Schedule != "s" || c.Agent != "test" || !c.At.Equal(at) || c.ID == "" || c.Reminders != nil || c.Log() == nil {
			t.Errorf("context %+v", c)
		}
		out, err := c.Tools.Call(ctx, "echo", in{"<hi>"})
		var text string
		if jerr := json.Unmarshal(out, &text); err != nil || jerr != nil || text != "schedule:s: <hi>" {
			t.Errorf("the tool: %s, %v", out, err)
		}
		for name, want := range map[string]string{"echo": "it failed", "gated": "needs approval", "none": "no tool"} {
			var input any
			if name == "echo" {
				input = map[string]string{"text": "fail"}
			}
			if _, err := c.Tools.Call(ctx, name, input); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := c.KV.Set(ctx, "last", c.At); err != nil {
			t.Error(err)
		}
		sent, err := c.Sessions.Send(ctx, bdk.Message{Text: "hello"})
		if err != nil {
			return err
		}
		_, err = c.Sessions.Send(ctx, bdk.Message{Text: "more", Token: sent.Token})
		return err
	}
	e := newEngine(t, config{script: "rules: [{text: ok}]", tools: tools, schedules: []bdk.NamedSchedule{scheduleOf("s", bdk.ScheduleSpec{Run: run})}})
	done, err := e.Dispatch(t.Context(), engine.Tick{Schedule: "s", At: at})
	if err != nil || done.Failed != nil || len(done.SessionIDs) != 1 {
		t.Fatalf("got %+v, %v", done, err)
	}
	if row, err := e.Sessions().Get(t.Context(), done.SessionIDs[0]); err != nil || row.Owner != "schedule:s" || row.Mode != session.Chat {
		t.Errorf("row %+v, %v", row, err)
	}
}

// A call makes reminders for its session, which are sent as its owner without a new token, once its turn has ended.
func TestCallsMakeReminders(t *testing.T) {
	t.Parallel()
	e, do := doing(t, newStorage())
	var made bdk.ReminderRecord
	remind := func(ctx context.Context, call *bdk.Call) (err error) {
		if made, err = call.Reminders.Create(ctx, bdk.Reminder{Message: "stand up", After: time.Nanosecond}); err != nil {
			return err
		}
		other, err := call.Reminders.Create(ctx, bdk.Reminder{Message: "no", After: time.Hour})
		if err != nil {
			return err
		}
		if list, err := call.Reminders.List(ctx); err != nil || len(list) != 2 || list[0].ID != made.ID || list[0].SessionID != call.Session.ID {
			t.Errorf("list %+v, %v", list, err)
		}
		return call.Reminders.Cancel(ctx, other.ID)
	}
	do.Store(&remind)
	ref, acc := start(t, e, "hello")
	step(t, e, ref)
	out, err := e.CallTool(t.Context(), engine.ToolCall{Name: "do", Caller: "local", SessionID: acc.SessionID})
	if err != nil || out.IsError {
		t.Fatalf("%v %s", err, out.Result)
	}
	busy, next := send(t, e, acc, "busy")
	if err := e.Remind(t.Context(), made.ID); bdkerr.CodeOf(err) != bdkerr.SessionBusy {
		t.Errorf("while a turn runs: %v", err)
	}
	step(t, e, busy)
	if err := e.RemindDue(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Error(err)
	}
	row, err := e.Sessions().Get(t.Context(), acc.SessionID)
	if err != nil || row.Turn.ID == "" {
		t.Fatalf("row %+v, %v", row, err)
	}
	step(t, e, turn.Ref{SessionID: row.ID, TurnID: row.Turn.ID})
	step(t, e, firstOf(send(t, e, next, "the token is the same")))
	if err := e.Remind(t.Context(), made.ID); !errors.Is(err, bdk.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if list, err := e.Reminders(t.Context(), 10); err != nil || len(list) > 0 {
		t.Errorf("left over: %+v, %v", list, err)
	}
	for name, in := range map[string]session.Start{"dry run": {DryRun: true}, "task": {Mode: session.Task}} {
		refuse := func(ctx context.Context, call *bdk.Call) error {
			_, err := call.Reminders.Create(ctx, bdk.Reminder{Message: "x", After: 1})
			cerr := call.Reminders.Cancel(ctx, "rem_x")
			if err == nil || cerr == nil || in.DryRun && (!errors.Is(err, bdk.ErrDryRun) || !errors.Is(cerr, bdk.ErrDryRun)) {
				t.Errorf("%s: %v, %v", name, err, cerr)
			}
			return nil
		}
		do.Store(&refuse)
		within(t, e, do, in)
	}
}

func firstOf(ref turn.Ref, _ session.Accepted) turn.Ref { return ref }
