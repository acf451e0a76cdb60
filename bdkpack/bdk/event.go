package bdk

import "github.com/bdk-lambda/bdk/shared/event"

// Event is one entry of a session's log, as the stream of the HTTP API delivers it, one JSON object a line. Indexes are
// dense from 0. [DecodeEvent] reads its Data.
type Event = event.Event

// EventType says what happened. Ignore types you do not know: there will be more.
type EventType = event.Type

// EventData is the data of one event type: one of the structs below.
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
	EventTurnCompleted      = event.TypeTurnCompleted      // TurnCompleted
	EventTurnFailed         = event.TypeTurnFailed         // TurnFailed
	EventSessionWaiting     = event.TypeSessionWaiting     // SessionWaiting
	EventSessionCompleted   = event.TypeSessionCompleted   // SessionCompleted
	EventSessionFailed      = event.TypeSessionFailed      // SessionFailed
)

// The data of the event types.
type (
	SessionStarted     = event.SessionStarted
	MessageReceived    = event.MessageReceived
	TurnStarted        = event.TurnStarted
	ReasoningAppended  = event.ReasoningAppended
	ReasoningCompleted = event.ReasoningCompleted
	MessageAppended    = event.MessageAppended
	MessageCompleted   = event.MessageCompleted
	ActionsRequested   = event.ActionsRequested
	ActionCall         = event.ActionCall // in ActionsRequested
	ApprovalRequested  = event.ApprovalRequested
	ApprovalResolved   = event.ApprovalResolved
	ActionResult       = event.ActionResult
	SkillLoaded        = event.SkillLoaded
	SubagentCalled     = event.SubagentCalled
	SubagentCompleted  = event.SubagentCompleted
	ArtifactTagged     = event.ArtifactTagged
	StepRestarted      = event.StepRestarted
	ContextCompacted   = event.ContextCompacted
	TurnCompleted      = event.TurnCompleted
	Usage              = event.Usage // in TurnCompleted, MessageCompleted and ContextCompacted
	Cost               = event.Cost  // in TurnCompleted
	TurnFailed         = event.TurnFailed
	SessionWaiting     = event.SessionWaiting
	SessionCompleted   = event.SessionCompleted
	SessionFailed      = event.SessionFailed
)

// DecodeEvent returns the data of an event. It fails if the event is of another type, or its data of another shape.
func DecodeEvent[T EventData](e Event) (T, error) { return event.Decode[T](e) }
