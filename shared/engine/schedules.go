package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/session"
)

const (
	// tickTTL is how long it is remembered that a schedule's function was run: longer than anybody tries again.
	tickTTL = 48 * time.Hour
	// runGrace is how long a schedule's function may take to notice that its time is over before it is left alone.
	runGrace = 2 * time.Second
)

// Tick is one time that a schedule is due.
type Tick struct {
	Schedule string    // its name
	At       time.Time // in whole minutes
	ByHand   bool      // somebody has it happen, at any time: it is another one than any before
}

// Dispatched is what came of a tick.
type Dispatched struct {
	SessionIDs []string // the sessions that were started
	Repeated   bool     // it was dispatched before; nothing happened
	Failed     error    // of the schedule's function, which was logged and is not run again; nil if it did well, or there is none
}

// Dispatch has a schedule happen: its prompt starts a session, exactly once for each tick, whoever dispatches it how often within a day;
// or its function is run, at most once. It returns when the function has. An error means that nothing happened yet, so that the
// tick may be dispatched again; it is bdkerr.NotFound for a schedule that there is not.
func (e *Engine) Dispatch(ctx context.Context, t Tick) (Dispatched, error) {
	i := slices.IndexFunc(e.project.Schedules, func(s bdk.NamedSchedule) bool { return s.Name == t.Schedule })
	if i < 0 {
		return Dispatched{}, bdkerr.New(bdkerr.NotFound, "there is no schedule %.80q", t.Schedule)
	}
	t.At = t.At.UTC()
	id := "tick/" + e.project.Slug + "/" + t.Schedule + "/" + t.At.Format(time.RFC3339)
	if t.ByHand {
		id += "/" + e.deps.NewID()
	}
	owner := "schedule:" + t.Schedule
	log := e.deps.Log.With(slog.String("schedule", t.Schedule), slog.Time("tick", t.At))
	spec := e.project.Schedules[i].Schedule.Spec()
	if spec.Run == nil {
		acc, err := e.Start(ctx, session.Start{Owner: owner, Message: spec.Prompt, Title: t.Schedule, Mode: session.Task, Key: session.RequestKey{Name: id, Body: []byte(id)}})
		if err != nil {
			return Dispatched{}, fmt.Errorf("starting the session of schedule %s: %w", t.Schedule, err)
		}
		if acc.Repeated {
			return Dispatched{Repeated: true}, nil
		}
		log.InfoContext(ctx, "schedule dispatched", slog.String("session_id", acc.SessionID))
		return Dispatched{SessionIDs: []string{acc.SessionID}}, nil
	}
	switch err := e.deps.KV.Create(ctx, id, nil, tickTTL); {
	case errors.Is(err, kv.ErrExists):
		return Dispatched{Repeated: true}, nil
	case err != nil:
		return Dispatched{}, fmt.Errorf("claiming a run of schedule %s: %w", t.Schedule, err)
	}
	r := &scheduled{Engine: e, tick: t, id: id, owner: owner, log: log}
	began := e.deps.Clock.Now()
	err := r.run(ctx, spec)
	if err != nil {
		log.ErrorContext(ctx, "schedule failed", slog.Any("error", err))
	} else {
		log.InfoContext(ctx, "schedule ran", slog.Duration("took", e.deps.Clock.Now().Sub(began)))
	}
	return Dispatched{SessionIDs: r.sent(), Failed: err}, nil
}

// scheduled is one run of a schedule's function.
type scheduled struct {
	*Engine

	tick      Tick
	id, owner string
	log       *slog.Logger

	mu       sync.Mutex
	sessions []string // that it started or continued
}

// run calls the function and waits for it, for as long as it may take.
func (r *scheduled) run(ctx context.Context, spec bdk.ScheduleSpec) error {
	ctx, cancel := context.WithTimeoutCause(ctx, spec.Timeout, fmt.Errorf("the schedule used up its time of %s", spec.Timeout))
	defer cancel()
	row := session.Record{Agent: r.project.Slug, Owner: r.owner, Channel: "http", Mode: session.Task, Purpose: "chat"}
	files := r.openFiles("", "")
	call := callOf(r.Engine, row, "", r.id, r.log, files, func(context.Context, ...event.Data) error { return nil })
	c := &bdk.ScheduleContext{
		Services: call.Services, Schedule: r.tick.Schedule, Agent: r.project.Slug, At: r.tick.At, ID: r.id,
		Sessions: &watched{call.Sessions, r}, Tools: &toolsOf{r.Engine, r.owner},
	}
	done := make(chan error, 1)
	go func() {
		defer files.close(context.WithoutCancel(ctx), r.log)
		err := errors.New("the schedule's function ended its goroutine")
		defer func() { done <- err }()
		err = r.protect(ctx, spec.Run, c)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late, stop := r.deps.Clock.After(runGrace)
	defer stop()
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("%w, and goes on", context.Cause(ctx))
	}
}

// protect calls an author's function; a panic becomes an error.
func (r *scheduled) protect(ctx context.Context, f func(context.Context, *bdk.ScheduleContext) error, c *bdk.ScheduleContext) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.ErrorContext(ctx, "schedule panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("the schedule's function panicked: %v", p)
		}
	}()
	return f(ctx, c)
}

// sent returns the sessions that were sent to, each once.
func (r *scheduled) sent() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sessions)
}

// watched notes which sessions are sent to.
type watched struct {
	bdk.Sessions

	run *scheduled
}

// Send implements [bdk.Sessions].
func (w *watched) Send(ctx context.Context, m bdk.Message) (bdk.Sent, error) {
	sent, err := w.Sessions.Send(ctx, m)
	if err == nil {
		w.run.mu.Lock()
		defer w.run.mu.Unlock()
		if !slices.Contains(w.run.sessions, sent.SessionID) {
			w.run.sessions = append(w.run.sessions, sent.SessionID)
		}
	}
	return sent, err
}

// toolsOf are the tools as code calls them for a principal.
type toolsOf struct {
	*Engine

	caller string
}

var _ bdk.Tools = (*toolsOf)(nil)

// Call implements [bdk.Tools].
func (t *toolsOf) Call(ctx context.Context, name string, input any) (json.RawMessage, error) {
	var b bytes.Buffer
	if input != nil {
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(input); err != nil {
			return nil, fmt.Errorf("encoding the input of %.80q: %w", name, err)
		}
	}
	out, err := t.CallTool(ctx, ToolCall{Name: name, Input: bytes.TrimSpace(b.Bytes()), Caller: t.caller})
	if err != nil {
		return nil, err
	}
	if out.IsError {
		return nil, fmt.Errorf("the tool %s: %s", name, textOf(out.Result))
	}
	return out.Result, nil
}

// textOf returns a result as text.
func textOf(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) != nil {
		text = string(result)
	}
	return text
}
