package model

import (
	"errors"
	"time"
)

// Kind sorts model faults by what a caller can do about them.
type Kind string

// The kinds.
const (
	Throttled     Kind = "throttled"      // too many requests: wait, then retry
	Overloaded    Kind = "overloaded"     // the provider is busy: wait, then retry
	Unavailable   Kind = "unavailable"    // connection refused or cut, 5xx: retry
	Invalid       Kind = "invalid"        // the request is wrong: a retry fails too
	ContextLength Kind = "context_length" // the conversation is too long: compact it
	Denied        Kind = "denied"         // no or wrong credentials, no access to the model
)

// Error is a fault of a provider, mapped once, in its adapter.
type Error struct {
	Kind       Kind
	Message    string        // the provider's words, without credentials
	RetryAfter time.Duration // what the provider asked for; 0 if nothing
	Err        error         // the cause; may be nil
}

// Error returns the kind and the provider's words.
func (e *Error) Error() string { return string(e.Kind) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	return e.Kind == Throttled || e.Kind == Overloaded || e.Kind == Unavailable
}

// KindOf returns the kind of the first Error in err's chain, "" when there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
