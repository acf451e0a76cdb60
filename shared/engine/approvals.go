package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
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
	_, err := e.deps.Sessions.Get(ctx, sessionID)
	return nil, err
}

// Decide records a decision and has the turn go on. The same decision again is answered as the first was. It fails with
// bdkerr.NotFound for a call that never waited, bdkerr.Forbidden for who may not decide, and bdkerr.Decided if it was decided
// otherwise, has expired, or was cancelled.
func (e *Engine) Decide(ctx context.Context, d Decision) (Decided, error) {
	return Decided{}, bdkerr.New(bdkerr.NotFound, "no call %q waits for approval", d.CallID)
}
