package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// delegates reports whether a call is for a subagent. Subagents have none themselves.
func (l *lane) delegates(c event.ActionCall) bool {
	return l.parent == "" && c.ToolName == bdk.ToolTask && len(l.subagents) > 0
}

// delegate has a subagent work on what a call asks of it, from where it was when it was interrupted.
func (l *lane) delegate(ctx context.Context, c event.ActionCall) (turn.Outcome, error) {
	var in struct {
		Name   string `json:"name"`
		Prompt string `json:"prompt"`
	}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return "", l.recordResult(ctx, c, tool.Failed(err), false)
	}
	m, known := l.subagents[in.Name]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(l.subagents)), ", ")
		return "", l.recordResult(ctx, c, tool.Failed(fmt.Errorf("there is no subagent %q: the subagents are %s", in.Name, names)), false)
	}
	th := l.delegation(c.CallID)
	if th == nil {
		if err := l.append(ctx, event.SubagentCalled{CallID: c.CallID, Name: in.Name, Prompt: in.Prompt}); err != nil {
			return "", err
		}
		th = l.delegation(c.CallID)
	}
	out, err := l.run.lane(c.CallID, m, th).work(ctx)
	if out == turn.Done {
		out = ""
	}
	return out, err
}

// delegation returns the thread of a delegation, nil before it was begun.
func (l *lane) delegation(callID string) *thread {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.t.Turn.Tasks[callID]; k != nil {
		return &k.thread
	}
	return nil
}

// report ends a delegation: what it came to is the result of the call that made it.
func (l *lane) report(ctx context.Context, before []event.Data, text string, isError bool) error {
	output, _ := json.Marshal(text) //nolint:errchkjson // a string always encodes
	l.mu.Lock()
	name := l.t.Turn.Tasks[l.parent].Name
	l.mu.Unlock()
	return l.append(ctx, append(before,
		event.SubagentCompleted{CallID: l.parent, Name: name, Output: output, IsError: isError},
		event.ActionResult{CallID: l.parent, ToolName: bdk.ToolTask, Output: output, IsError: isError})...)
}
