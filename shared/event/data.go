package event

import (
	"encoding/json"
	"time"
)

// The event types.
const (
	TypeSessionStarted     Type = "session.started"
	TypeMessageReceived    Type = "message.received"
	TypeTurnStarted        Type = "turn.started"
	TypeReasoningAppended  Type = "reasoning.appended"
	TypeReasoningCompleted Type = "reasoning.completed"
	TypeMessageAppended    Type = "message.appended"
	TypeMessageCompleted   Type = "message.completed"
	TypeActionsRequested   Type = "actions.requested"
	TypeApprovalRequested  Type = "action.approval_requested"
	TypeApprovalResolved   Type = "action.approval_resolved"
	TypeActionResult       Type = "action.result"
	TypeSkillLoaded        Type = "skill.loaded"
	TypeSubagentCalled     Type = "subagent.called"
	TypeSubagentCompleted  Type = "subagent.completed"
	TypeArtifactTagged     Type = "artifact.tagged"
	TypeStepRestarted      Type = "step.restarted"
	TypeContextCompacted   Type = "context.compacted"
	TypeResultRejected     Type = "result.rejected"
	TypeTurnCompleted      Type = "turn.completed"
	TypeTurnFailed         Type = "turn.failed"
	TypeSessionWaiting     Type = "session.waiting"
	TypeSessionCompleted   Type = "session.completed"
	TypeSessionFailed      Type = "session.failed"
)

// Types returns every event type, in the order of this file.
func Types() []Type {
	return []Type{
		TypeSessionStarted, TypeMessageReceived, TypeTurnStarted, TypeReasoningAppended, TypeReasoningCompleted,
		TypeMessageAppended, TypeMessageCompleted, TypeActionsRequested, TypeApprovalRequested, TypeApprovalResolved,
		TypeActionResult, TypeSkillLoaded, TypeSubagentCalled, TypeSubagentCompleted, TypeArtifactTagged, TypeStepRestarted,
		TypeContextCompacted, TypeResultRejected, TypeTurnCompleted, TypeTurnFailed, TypeSessionWaiting, TypeSessionCompleted, TypeSessionFailed,
	}
}

// SessionStarted is the first event of every session.
type SessionStarted struct {
	Agent     string     `json:"agent"`           // the agent's slug
	ChannelID string     `json:"channelId"`       // "http" for the built-in channel
	Mode      string     `json:"mode"`            // chat or task
	Purpose   string     `json:"purpose"`         // "chat", or "eval" for regression traffic
	Title     string     `json:"title,omitempty"` // as given by the client
	DryRun    bool       `json:"dryRun,omitempty"`
	AsOf      *time.Time `json:"asOf,omitempty"` // the frozen instant of the session
}

// MessageReceived records an accepted user message.
type MessageReceived struct {
	Text string `json:"text"`
}

// TurnStarted says that the agent works on the message before it.
type TurnStarted struct {
	Model string `json:"model"` // provider:name
}

// ReasoningAppended is a delta of the model's reasoning.
type ReasoningAppended struct {
	Text         string `json:"text"`
	ParentCallID string `json:"parentCallId,omitempty"`
}

// ReasoningCompleted ends a block of reasoning with its whole text.
type ReasoningCompleted struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"` // opaque; goes back to the provider that signed it
	Model     string `json:"model,omitempty"`     // who signed, provider:name

	ParentCallID string `json:"parentCallId,omitempty"`
}

// MessageAppended is a delta of the reply.
type MessageAppended struct {
	Text         string `json:"text"`
	ParentCallID string `json:"parentCallId,omitempty"`
}

// MessageCompleted ends one model step with the whole text of its reply.
type MessageCompleted struct {
	Text         string `json:"text"`              // empty when the step only called tools
	FinishReason string `json:"finishReason"`      // stop, tool_calls, length, content_filter or other
	Usage        *Usage `json:"usage,omitempty"`   // of this step
	UsageOf      string `json:"usageOf,omitempty"` // the model that answered, provider:name
	ParentCallID string `json:"parentCallId,omitempty"`
}

// ActionsRequested lists the tools the model asked for in one step.
type ActionsRequested struct {
	Calls        []ActionCall `json:"calls"`
	ParentCallID string       `json:"parentCallId,omitempty"`
}

// ActionCall is one requested call.
type ActionCall struct {
	CallID       string          `json:"callId"`
	ToolName     string          `json:"toolName"`
	Args         json.RawMessage `json:"args,omitempty"` // a JSON object; absent when the model's text was none
	ParentCallID string          `json:"parentCallId,omitempty"`
}

// ApprovalRequested says that a call waits for a person.
type ApprovalRequested struct {
	CallID    string          `json:"callId"`
	ToolName  string          `json:"toolName"`
	Args      json.RawMessage `json:"args"`
	ExpiresAt time.Time       `json:"expiresAt"`

	ParentCallID string `json:"parentCallId,omitempty"`
}

// ApprovalResolved records what became of an approval.
type ApprovalResolved struct {
	CallID   string `json:"callId"`
	Decision string `json:"decision"` // approve, deny, expired or cancelled
	By       string `json:"by,omitempty"`
	Note     string `json:"note,omitempty"`
}

// ActionResult is the outcome of a call.
type ActionResult struct {
	CallID   string          `json:"callId"`
	ToolName string          `json:"toolName"`
	Output   json.RawMessage `json:"output,omitempty"` // a JSON string for text, any JSON otherwise
	IsError  bool            `json:"isError"`
	Stubbed  bool            `json:"stubbed,omitempty"`  // a dry-run session answered a write without running it
	Rejected bool            `json:"rejected,omitempty"` // denied or expired

	// Workspace is the blob with the list of the session's files after the call, if the call changed any.
	Workspace    string `json:"workspace,omitempty"`
	ParentCallID string `json:"parentCallId,omitempty"`
}

// SkillLoaded says that the model opened a skill.
type SkillLoaded struct {
	Name string `json:"name"`
}

// SubagentCalled says that the model delegated to a subagent.
type SubagentCalled struct {
	CallID string `json:"callId"`
	Name   string `json:"name"`
	Prompt string `json:"prompt,omitempty"`
}

// SubagentCompleted is the outcome of a delegation.
type SubagentCompleted struct {
	CallID  string          `json:"callId"`
	Name    string          `json:"name"`
	Output  json.RawMessage `json:"output,omitempty"`
	IsError bool            `json:"isError"`
}

// ArtifactTagged says that an artifact was recorded.
type ArtifactTagged struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Key   string `json:"key"`
	Title string `json:"title,omitempty"`
}

// StepRestarted says that a model call was made again: readers drop the partial text of the step.
type StepRestarted struct {
	Step   int    `json:"step"` // 1 for the first model call of the turn
	Reason string `json:"reason"`

	ParentCallID string `json:"parentCallId,omitempty"`
}

// ResultRejected says that the final text does not match the agent's result schema. The model is told and asked once more.
type ResultRejected struct {
	Reason string `json:"reason"`
}

// ContextCompacted says that older messages were replaced by a summary.
type ContextCompacted struct {
	BeforeTokens int64  `json:"beforeTokens"`
	AfterTokens  int64  `json:"afterTokens"`
	Summary      string `json:"summary"`           // what stands in their place
	Kept         int    `json:"kept"`              // how many of the newest messages stayed as they were
	Usage        *Usage `json:"usage,omitempty"`   // what the summary cost
	UsageOf      string `json:"usageOf,omitempty"` // the model that wrote it, provider:name
	ParentCallID string `json:"parentCallId,omitempty"`
}

// The decisions about an approval.
const (
	Approve   = "approve"
	Deny      = "deny"
	Expired   = "expired"   // nobody decided in time
	Cancelled = "cancelled" // the turn was stopped before
)

// Usage counts the tokens of a model step or of a turn.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens,omitempty"`
}

// Cost is what a turn cost. It is absent when the price of a model is unknown.
type Cost struct {
	TotalUSD float64 `json:"totalUsd"`
	Model    string  `json:"model"` // provider:name
}

// TurnCompleted ends a turn well.
type TurnCompleted struct {
	Result string `json:"result,omitempty"` // the text of the last reply
	Usage  *Usage `json:"usage,omitempty"`
	Cost   *Cost  `json:"cost,omitempty"`
}

// TurnFailed ends a turn that could not be finished.
type TurnFailed struct {
	Message string `json:"message"`
	Status  string `json:"status,omitempty"` // error or cancelled
}

// The statuses of a failed turn.
const (
	StatusError     = "error"
	StatusCancelled = "cancelled"
)

// SessionWaiting says that a chat session takes a follow-up.
type SessionWaiting struct{}

// SessionCompleted ends a task session well.
type SessionCompleted struct {
	Result string `json:"result,omitempty"`
}

// SessionFailed ends a task session that could not be finished.
type SessionFailed struct {
	Message string `json:"message"`
}

// Type implements [Data].
func (SessionStarted) Type() Type { return TypeSessionStarted }

// Type implements [Data].
func (MessageReceived) Type() Type { return TypeMessageReceived }

// Type implements [Data].
func (TurnStarted) Type() Type { return TypeTurnStarted }

// Type implements [Data].
func (ReasoningAppended) Type() Type { return TypeReasoningAppended }

// Type implements [Data].
func (ReasoningCompleted) Type() Type { return TypeReasoningCompleted }

// Type implements [Data].
func (MessageAppended) Type() Type { return TypeMessageAppended }

// Type implements [Data].
func (MessageCompleted) Type() Type { return TypeMessageCompleted }

// Type implements [Data].
func (ActionsRequested) Type() Type { return TypeActionsRequested }

// Type implements [Data].
func (ApprovalRequested) Type() Type { return TypeApprovalRequested }

// Type implements [Data].
func (ApprovalResolved) Type() Type { return TypeApprovalResolved }

// Type implements [Data].
func (ActionResult) Type() Type { return TypeActionResult }

// Type implements [Data].
func (SkillLoaded) Type() Type { return TypeSkillLoaded }

// Type implements [Data].
func (SubagentCalled) Type() Type { return TypeSubagentCalled }

// Type implements [Data].
func (SubagentCompleted) Type() Type { return TypeSubagentCompleted }

// Type implements [Data].
func (ArtifactTagged) Type() Type { return TypeArtifactTagged }

// Type implements [Data].
func (StepRestarted) Type() Type { return TypeStepRestarted }

// Type implements [Data].
func (ContextCompacted) Type() Type { return TypeContextCompacted }

// Type implements [Data].
func (ResultRejected) Type() Type { return TypeResultRejected }

// Type implements [Data].
func (TurnCompleted) Type() Type { return TypeTurnCompleted }

// Type implements [Data].
func (TurnFailed) Type() Type { return TypeTurnFailed }

// Type implements [Data].
func (SessionWaiting) Type() Type { return TypeSessionWaiting }

// Type implements [Data].
func (SessionCompleted) Type() Type { return TypeSessionCompleted }

// Type implements [Data].
func (SessionFailed) Type() Type { return TypeSessionFailed }
