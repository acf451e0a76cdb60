// Package hook tells subscribers what happens in sessions, after it was recorded.
//
// A subscriber is told the events of a session one at a time and in order, and those of different sessions at the same time, so that a
// slow one holds nothing but its own session. Nobody else waits: neither the turn nor another subscriber. [Dispatcher] does that in one
// process; on AWS a queue for each subscriber does (package sqshook).
package hook

import (
	"context"

	"github.com/bdk-lambda/bdk/shared/event"
)

// Named returns the name of a hook among subscribers.
func Named(name string) string { return "hook/" + name }

// Subscriber is who is told.
type Subscriber struct {
	Name string // one of its own among those of an agent, and the same in each process: it names cursors and queues

	// Wants reports whether the subscriber is told an event. It may not see the data of it.
	Wants func(e event.Event) bool

	// Handle is told an event. It is called concurrently for different sessions. Without Retry its error is ignored.
	Handle func(ctx context.Context, e event.Event) error

	// Retry says that an event is told again until Handle accepts it, also by another process after this one has died: at least once.
	// Without it an event is told at most once.
	Retry bool
}
