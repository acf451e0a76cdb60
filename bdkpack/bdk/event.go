package bdk

import "github.com/bdk-lambda/bdk/shared/event"

// Event is one entry of a session's log, as the stream of the HTTP API delivers it, one JSON object a line. Indexes are
// dense from 0. [DecodeEvent] reads its Data.
type Event = event.Event

// EventType says what happened. Ignore types you do not know: there will be more.
type EventType = event.Type

// EventData is the data of one event type: one of the structs below. Their fields are shown by
// `go doc github.com/bdk-lambda/bdk/shared/event`.
type EventData = event.Data

// The event types, each with the struct that holds its data.
const (
	EventSessionStarted     = event.TypeSessionStarted     // SessionStarted
	EventMessageReceived    = event.TypeMessageReceived    // MessageReceived
	EventTurnStarted        = event.TypeTurnStarted        // TurnStarted
	EventReasoningAppended  = event.TypeReasoningAppended  // ReasoningAppended
	EventReasoningCompleted = event.TypeReasoningCompleted // ReasoningCompleted
	EventMessageAppended    = event.TypeMessageAppended    // MessageAppended
	EventMessageCompleted   = event.TypeMessageCompleted   // MessageCompleted
	EventActionsRequested   = event.TypeActionsRequested   // ActionsRequested
	EventApprovalRequested  = event.TypeApprovalRequested  // ApprovalRequested
	EventApprovalResolved   = event.TypeApprovalResolved   // ApprovalResolved
	EventActionResult       = event.TypeActionResult       // ActionResult
	EventSkillLoaded        = event.TypeSkillLoaded        // SkillLoaded
	EventSubagentCalled     = event.TypeSubagentCalled     // SubagentCalled
	EventSubagentCompleted  = event.TypeSubagentCompleted  // SubagentCompleted
	EventArtifactTagged     = event.TypeArtifactTagged     // ArtifactTagged
	EventStepRestarted      = event.TypeStepRestarted      // StepRestarted
	EventContextCompacted   = event.TypeContextCompacted   // ContextCompacted
	EventResultRejected     = event.TypeResultRejected     // ResultRejected
	EventTurnCompleted      = event.TypeTurnCompleted      // TurnCompleted
	EventTurnFailed         = event.TypeTurnFailed         // TurnFailed
	EventSessionWaiting     = event.TypeSessionWaiting     // SessionWaiting
	EventSessionCompleted   = event.TypeSessionCompleted   // SessionCompleted
	EventSessionFailed      = event.TypeSessionFailed      // SessionFailed
)

// The data of the event types, and what is in it.
type (
	// SessionStarted is the first event of every session.
	SessionStarted = event.SessionStarted
	// MessageReceived records an accepted user message.
	MessageReceived = event.MessageReceived
	// TurnStarted says that the agent works on the message before it.
	TurnStarted = event.TurnStarted
	// ReasoningAppended is a delta of the model's reasoning.
	ReasoningAppended = event.ReasoningAppended
	// ReasoningCompleted ends a block of reasoning with its whole text.
	ReasoningCompleted = event.ReasoningCompleted
	// MessageAppended is a delta of the reply.
	MessageAppended = event.MessageAppended
	// MessageCompleted ends one model step with the whole text of its reply.
	MessageCompleted = event.MessageCompleted
	// ActionsRequested lists the tools the model asked for in one step.
	ActionsRequested = event.ActionsRequested
	// ActionCall is one requested call.
	ActionCall = event.ActionCall
	// ApprovalRequested says that a call waits for a person.
	ApprovalRequested = event.ApprovalRequested
	// ApprovalResolved records what became of an approval.
	ApprovalResolved = event.ApprovalResolved
	// ActionResult is the outcome of a call.
	ActionResult = event.ActionResult
	// SkillLoaded says that the model opened a skill.
	SkillLoaded = event.SkillLoaded
	// SubagentCalled says that the model delegated to a subagent.
	SubagentCalled = event.SubagentCalled
	// SubagentCompleted is the outcome of a delegation.
	SubagentCompleted = event.SubagentCompleted
	// ArtifactTagged says that an artifact was recorded.
	ArtifactTagged = event.ArtifactTagged
	// StepRestarted says that a model call was made again: readers drop the partial text of the step.
	StepRestarted = event.StepRestarted
	// ContextCompacted says that older messages were replaced by a summary.
	ContextCompacted = event.ContextCompacted
	// ResultRejected says that the final text does not match the agent's result schema.
	ResultRejected = event.ResultRejected
	// TurnCompleted ends a turn well.
	TurnCompleted = event.TurnCompleted
	// Usage counts the tokens of a model step or of a turn.
	Usage = event.Usage
	// Cost is what a turn cost. It is absent when the price of a model is unknown.
	Cost = event.Cost
	// TurnFailed ends a turn that could not be finished.
	TurnFailed = event.TurnFailed
	// SessionWaiting says that a chat session takes a follow-up.
	SessionWaiting = event.SessionWaiting
	// SessionCompleted ends a task session well.
	SessionCompleted = event.SessionCompleted
	// SessionFailed ends a task session that could not be finished.
	SessionFailed = event.SessionFailed
)

// DecodeEvent returns the data of an event. It fails if the event is of another type, or its data of another shape.
func DecodeEvent[T EventData](e Event) (T, error) { return event.Decode[T](e) }
