package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// maxApprovals bounds the calls of a turn that wait for approval: they are in the session's row, whose size is bounded.
const maxApprovals = 64

// callTools runs calls at the same time, as many as ParallelTools allows, and records each result as it comes. How many
// calls a step has is bounded by what the model can write in one answer, and by nothing else. A result that cannot be
// recorded does not end the calls beside it, unless the turn is not ours any more.
//
// Calls that need approval are asked for once the others have their results.
func (l *lane) callTools(ctx context.Context, calls []event.ActionCall) (turn.Outcome, error) {
	if err := l.expire(ctx); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var g errgroup.Group
	g.SetLimit(l.project.Agent.Limits.ParallelTools)
	var ask []event.ActionCall
	var worst outcome
	room := l.room()
	for _, c := range calls {
		state := l.gate(c)
		switch {
		case state.ask && len(ask) < room:
			ask = append(ask, c)
			continue
		case state.ask:
			out := tool.Failed(fmt.Errorf("too many calls wait for approval, this one was not executed: ask again for at most %d at once", maxApprovals))
			state = gate{result: &out}
		case state.wait:
			worst.add(turn.Await)
			continue
		}
		g.Go(func() error {
			out, err := l.settle(ctx, c, state)
			if fenced(err) {
				cancel(err)
			}
			worst.add(out)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	if len(ask) > 0 {
		worst.add(turn.Await)
		if err := l.askFor(ctx, ask); err != nil {
			return "", err
		}
	}
	return worst.out, nil
}

// room returns how many calls may be asked for: those that are open have their places.
func (l *lane) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := maxApprovals
	open := l.openCalls()
	for _, a := range l.w.Row().Turn.Approvals {
		if slices.ContainsFunc(open, func(c event.ActionCall) bool { return c.CallID == a.CallID }) {
			room--
		}
	}
	return room
}

// outcome is that of several calls: one that has to be made again outweighs one that waits, and that one those that are done.
type outcome struct {
	mu  sync.Mutex
	out turn.Outcome
}

func (o *outcome) add(out turn.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if out == turn.Continue || out == turn.Await && o.out == "" {
		o.out = out
	}
}

// settle brings a call to its result, if it can have one now.
func (l *lane) settle(ctx context.Context, c event.ActionCall, state gate) (turn.Outcome, error) {
	if l.delegates(c) && state.result == nil {
		return l.delegate(ctx, c)
	}
	var out tool.Outcome
	if state.result != nil {
		out = *state.result
	} else {
		out = l.deps.Tools.Run(ctx, l.call(c), c.ToolName, c.Args, l.inherited[c.CallID])
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	return "", l.recordResult(ctx, c, out, state.rejected)
}

// recordResult records what came of a call, with the files that it changed.
func (l *lane) recordResult(ctx context.Context, c event.ActionCall, out tool.Outcome, rejected bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	files, leftOut, err := l.files.commit(ctx)
	if err != nil {
		out = notKept(out, err)
	}
	if len(leftOut) > 0 {
		out.Output = withNotes(out.Output, leftOut)
	}
	if out.IsError {
		l.log.WarnContext(ctx, "tool call failed", slog.String("call_id", c.CallID), slog.String("tool", c.ToolName))
	}
	var data []event.Data
	if name, ok := loadedSkill(c, out); ok {
		data = append(data, event.SkillLoaded{Name: name})
	}
	data = append(data, event.ActionResult{
		CallID: c.CallID, ToolName: c.ToolName, Output: out.Output, IsError: out.IsError, Stubbed: out.Stubbed,
		Rejected: rejected, Workspace: files, ParentCallID: l.parent,
	})
	events, err := l.w.Append(ctx, data...)
	return l.took(events, err)
}

// notKept is what comes of a call whose files could not be kept.
func notKept(out tool.Outcome, err error) tool.Outcome {
	return tool.Failed(fmt.Errorf("the tool ran, but what it changed in the files was not kept: %w. It said:\n%s", err, tool.Readable(out.Output)))
}

// withNotes returns a text that also tells what is not among the files; any other result as it is.
func withNotes(output json.RawMessage, notes []string) json.RawMessage {
	const most = 10
	var text string
	if json.Unmarshal(output, &text) != nil {
		return output
	}
	if more := len(notes) - most; more > 0 {
		notes = append(notes[:most:most], fmt.Sprintf("and %d more", more))
	}
	text += "\n\n[not kept among the session's files:\n" + strings.Join(notes, "\n") + "]"
	raw, _ := json.Marshal(text) //nolint:errchkjson // a string always encodes
	return raw
}

// loadedSkill returns the name of the skill that a call has loaded.
func loadedSkill(c event.ActionCall, out tool.Outcome) (string, bool) {
	var in struct {
		Name string `json:"name"`
		File string `json:"file"` // of the skill's files only this one was read
	}
	if c.ToolName != bdk.ToolSkill || out.IsError || json.Unmarshal(c.Args, &in) != nil || in.File != "" {
		return "", false
	}
	return in.Name, true
}

// call returns what a tool knows about a call.
func (l *lane) call(c event.ActionCall) *bdk.Call {
	log := l.log.With(slog.String("call_id", c.CallID), slog.String("tool", c.ToolName))
	return callOf(l.Engine, l.w.Row(), l.ref.TurnID, c.CallID, log, l.files, l.append)
}

// callOf returns what a tool knows about a call in a session, in whose log it records.
func callOf(e *Engine, row session.Record, turnID, id string, log *slog.Logger, files *files, record record) *bdk.Call {
	call := &bdk.Call{ID: id, Workspace: files, Session: infoOf(row, turnID)}
	call.Services = e.services(call.Session, log, files.ReadFile, record)
	call.Sessions = &conversations{e, call}
	if row.Version > 0 {
		call.Reminders = e.remindersOf(call.Session)
	}
	return call
}

func (l *lane) whyMalformed(callID string) error {
	const remedy = "the tool was not run; call it again with arguments that are one JSON object"
	if err := l.malformed[callID]; err != nil {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return fmt.Errorf("the arguments are not a JSON object: %s", remedy)
}
