package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// Approval is a call that waits for a person.
type Approval struct {
	CallID       string
	ToolName     string
	Args         json.RawMessage
	ParentCallID string // of the delegation that made the call; "" for the agent's own
	ExpiresAt    time.Time
}

// Decision is what a person decides about a call.
type Decision struct {
	SessionID, CallID string
	By                string // the principal who decides
	Approve           bool
	Note              string // shown to the model; "" for none
}

// Decided is what was decided about a call.
type Decided struct {
	CallID   string
	Decision string // event.Approve or event.Deny
	By       string
	Note     string
	Again    bool // it had been decided so before
}

// Approvals returns the calls of a session that wait for approval, in the order in which they were asked for: to the owner of the
// session all of them, to others those that they may decide about, and bdkerr.Forbidden if there are none of these.
func (e *Engine) Approvals(ctx context.Context, sessionID, caller string) ([]Approval, error) {
	row, err := e.deps.Sessions.Get(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	var waiting []Approval
	for _, a := range row.Turn.Approvals {
		if a.Decision != "" || row.Owner != caller && !e.mayDecide(row, a.ToolName, caller) {
			continue
		}
		asked, err := e.asked(ctx, sessionID, a.Index)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, Approval{
			CallID: asked.CallID, ToolName: asked.ToolName, Args: asked.Args, ParentCallID: asked.ParentCallID, ExpiresAt: asked.ExpiresAt,
		})
	}
	if row.Owner != caller && len(waiting) == 0 {
		return nil, errForeign()
	}
	return waiting, nil
}

func errForeign() error {
	return bdkerr.New(bdkerr.Forbidden, "this session belongs to another caller")
}

// asked reads what was asked for in the event at an index.
func (e *Engine) asked(ctx context.Context, id string, index int64) (event.ApprovalRequested, error) {
	c := e.deps.Sessions.Cursor(id, index)
	defer c.Close()
	events, err := c.Read(ctx)
	if err != nil {
		return event.ApprovalRequested{}, err
	}
	if len(events) == 0 {
		return event.ApprovalRequested{}, fmt.Errorf("%w: event %d, which asks for an approval, is not there", errUnreadable, index)
	}
	return event.Decode[event.ApprovalRequested](events[0])
}

// approvers returns who may decide about calls of a tool. One that the agent does not have any more can do no harm: its calls are for the
// owner of the session to get rid of.
func (e *Engine) approvers(toolName string) []string {
	if who := e.deps.Tools.Approvers(toolName); who != nil {
		return who
	}
	return []string{bdk.SessionOwner}
}

// mayDecide reports whether a caller may decide about calls of a tool.
func (e *Engine) mayDecide(row session.Record, toolName, caller string) bool {
	return slices.ContainsFunc(e.approvers(toolName), func(who string) bool {
		switch who {
		case bdk.Anybody:
			return true
		case bdk.SessionOwner:
			return caller == row.Owner
		}
		return who == caller
	})
}

// Decide records a decision and has the turn go on. The same decision again is answered as the first was. It fails with
// bdkerr.NotFound for a call that never waited, bdkerr.Forbidden for who may not decide, and bdkerr.Decided if it was decided
// otherwise, has expired, or was cancelled.
func (e *Engine) Decide(ctx context.Context, d Decision) (Decided, error) {
	row, err := e.deps.Sessions.Get(ctx, d.SessionID)
	if err != nil {
		return Decided{}, err
	}
	in := session.Decision{SessionID: d.SessionID, CallID: d.CallID, Decision: event.Deny, By: d.By, Note: d.Note}
	if d.Approve {
		in.Decision = event.Approve
	}
	in.May = func(a session.Approval) error {
		switch {
		case a.ToolName == "" && d.By != row.Owner && d.By != a.By:
			return errForeign()
		case a.ToolName != "" && !e.mayDecide(row, a.ToolName, d.By):
			return bdkerr.New(bdkerr.Forbidden, "%s may not decide about calls of %s: that is for %v", d.By, a.ToolName, e.approvers(a.ToolName))
		}
		return nil
	}
	done, err := e.deps.Sessions.Decide(ctx, in)
	switch {
	case bdkerr.CodeOf(err) == bdkerr.NotFound && d.By != row.Owner:
		return Decided{}, errForeign() // whether there was such a call is not theirs to know
	case err != nil:
		return Decided{}, err
	}
	if done.TurnID != "" {
		ref := turn.Ref{SessionID: d.SessionID, TurnID: done.TurnID}
		if err := e.deps.Runner.Resume(ctx, ref, done.Woken, done.Waited...); err != nil {
			e.logOf(ref, row).WarnContext(ctx, "decided turn waits for recovery", slog.String("call_id", d.CallID), slog.Any("error", err))
		}
	}
	a := done.Approval
	return Decided{CallID: a.CallID, Decision: a.Decision, By: a.By, Note: a.Note, Again: done.Again}, nil
}

// gate is what stands before a call: a person who has to be asked or has not decided yet, or the result that it has without being
// run. If nothing does, it runs.
type gate struct {
	ask, wait bool
	result    *tool.Outcome
	rejected  bool // the result says that a person, or nobody in time, allowed it
}

// gate returns what stands before a call.
func (l *lane) gate(c event.ActionCall) gate {
	if len(c.Args) == 0 {
		out := tool.Failed(l.whyMalformed(c.CallID))
		return gate{result: &out}
	}
	if l.parent != "" && c.ToolName == bdk.ToolTask {
		out := tool.Failed(errors.New("subagents cannot delegate: do it yourself"))
		return gate{result: &out}
	}
	for _, a := range l.w.Row().Turn.Approvals {
		if a.CallID == c.CallID {
			return decided(a)
		}
	}
	needed, out := l.deps.Tools.Gate(l.call(c), c.ToolName, c.Args)
	return gate{ask: needed, result: out}
}

// decided returns what stands before a call that a person was asked about.
func decided(a session.Approval) gate {
	var text string
	switch a.Decision {
	case "":
		return gate{wait: true}
	case event.Approve:
		return gate{}
	case event.Deny:
		text = "a person denied this call: it was not executed"
		if a.Note != "" {
			text += ". They say: " + a.Note
		}
	default:
		text = "nobody approved this call in time: it was not executed"
	}
	out := tool.Failed(errors.New(text))
	return gate{result: &out, rejected: true}
}

// expire ends the waits that have lasted long enough.
func (l *lane) expire(ctx context.Context) error {
	var late []string
	now := l.deps.Clock.Now()
	for _, a := range l.w.Row().Turn.Approvals {
		if a.Decision == "" && !now.Before(a.ExpiresAt) {
			late = append(late, a.CallID)
		}
	}
	if len(late) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.took(l.w.Expire(ctx, late...))
}

// askFor asks for the approval of calls.
func (l *lane) askFor(ctx context.Context, calls []event.ActionCall) error {
	asked := make([]event.ApprovalRequested, len(calls))
	for i, c := range calls {
		until := l.deps.Clock.Now().Add(l.deps.Tools.ApprovalTimeout(c.ToolName))
		asked[i] = event.ApprovalRequested{CallID: c.CallID, ToolName: c.ToolName, Args: c.Args, ExpiresAt: until.UTC().Truncate(time.Millisecond), ParentCallID: l.parent}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []string
	for _, c := range l.openCalls() {
		open = append(open, c.CallID)
	}
	return l.took(l.w.Ask(ctx, open, asked...))
}

// Parked returns the ids of the calls that a parked turn waits for, none if it is not parked, because somebody has decided or it is over.
func (e *Engine) Parked(ctx context.Context, ref turn.Ref) ([]string, error) {
	row, err := e.deps.Sessions.Get(ctx, ref.SessionID)
	if over(err) || err == nil && (row.Turn.ID != ref.TurnID || !row.Turn.Parked) {
		return nil, nil
	}
	var ids []string
	for _, a := range row.Turn.Pending() {
		ids = append(ids, a.CallID)
	}
	return ids, err
}
