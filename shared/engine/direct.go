package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// ToolCall is a call of a tool without a model.
type ToolCall struct {
	Name      string
	Input     json.RawMessage // one JSON object; empty: {}
	Caller    string          // the principal
	SessionID string          // binds the call to a session; "" for none
	Token     string          // binds the call by a continuation token; "" for none; not with SessionID
}

// ToolOutcome is what came of a call without a model.
type ToolOutcome struct {
	CallID           string
	IsError          bool
	Stubbed          bool            // a dry-run session answered a write without running it
	Result           json.RawMessage // a JSON string for text, any JSON otherwise
	Took             time.Duration
	SessionID        string // the session that the call was bound to; "" for none
	ScratchWorkspace bool   // the call was bound and did not get the session's files
}

// CallableTools returns the server tools, in name order.
func (e *Engine) CallableTools() []bdk.NamedTool { return nil }

// CallTool runs a server tool without a model. What goes wrong in the tool is an outcome; the errors are those of the HTTP API:
// bdkerr.UnknownTool, NotCallable, BadToolInput, BadToken, NoSession, Forbidden, StaleToken, SessionBusy and NoWorkspace.
func (e *Engine) CallTool(ctx context.Context, c ToolCall) (ToolOutcome, error) {
	return ToolOutcome{}, bdkerr.New(bdkerr.UnknownTool, "there is no tool %q", c.Name)
}
