// Package bdkerr is the one list of error codes of the product. A code travels from the place that
// found the fault to the HTTP envelope, the CLI's exit code and the log, without being translated on the way.
package bdkerr

import (
	"errors"
	"fmt"
)

// A Code names a kind of fault. The codes are part of the HTTP API: clients compare them.
type Code string

// The codes. [Code.Status] gives each one's HTTP status.
const (
	InvalidRequest   Code = "invalid_request"   // the body, query or path is not of the documented shape
	PayloadTooLarge  Code = "payload_too_large" // the body or a field is over its documented limit
	Unauthenticated  Code = "unauthenticated"   // no auth policy admitted the caller
	Forbidden        Code = "forbidden"         // the caller is known but does not own the resource
	NotFound         Code = "not_found"         // no such resource
	MethodNotAllowed Code = "method_not_allowed"
	StaleToken       Code = "stale_token"     // the continuation token was already used
	SessionClosed    Code = "session_closed"  // a task session takes no follow-up
	TurnMismatch     Code = "turn_mismatch"   // the turn named by the caller is not the active one
	KeyReused        Code = "idempotency_key" // an idempotency key came again with another body
	Conflict         Code = "conflict"        // somebody else changed the resource meanwhile: read it again
	UnknownTool      Code = "unknown_tool"    // no tool of that name can be called
	NotCallable      Code = "tool_not_callable"
	BadToolInput     Code = "invalid_tool_input" // the input does not match the tool's schema: the tool was not run
	BadToken         Code = "invalid_continuation_token"
	NoSession        Code = "session_not_found"     // the session that a tool call names does not exist
	SessionBusy      Code = "session_busy"          // a turn runs: a call that writes has to wait for its end
	Decided          Code = "already_decided"       // an approval was resolved otherwise, or is too late
	NoWorkspace      Code = "workspace_unavailable" // the session's files cannot be had: the call was not made
	ScheduleFailed   Code = "schedule_failed"       // the function of a schedule that somebody had happen failed
	Unavailable      Code = "unavailable"           // the host cannot take the request now: retry later
	Internal         Code = "internal"              // a fault of the host: the log knows more
)

// Status returns the HTTP status of c, 500 for a code that is not in the list.
func (c Code) Status() int {
	switch c {
	case InvalidRequest, NotCallable, BadToolInput, BadToken:
		return 400
	case Unauthenticated:
		return 401
	case Forbidden:
		return 403
	case NotFound, UnknownTool, NoSession:
		return 404
	case MethodNotAllowed:
		return 405
	case StaleToken, SessionClosed, TurnMismatch, KeyReused, Conflict, SessionBusy, Decided:
		return 409
	case PayloadTooLarge:
		return 413
	case Unavailable:
		return 503
	case Internal, NoWorkspace, ScheduleFailed:
		return 500
	}
	return 500
}

// Error is a fault with a code and a text that is safe to show to a client.
type Error struct {
	Code    Code
	Message string // what is wrong and how to mend it, for the client
	Err     error  // the cause, for the log; may be nil
}

// New returns an Error whose message is formatted for the client.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error of the same code, so that errors.Is(err, bdkerr.New(code, "")) asks for the code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of the first Error in err's chain, Internal when there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}
