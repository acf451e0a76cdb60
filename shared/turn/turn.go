// Package turn is the port to whatever runs turns durably: a process of its own on one machine, a state machine in the cloud.
package turn

import "context"

// Ref names a turn. It is all that travels: what happened in the turn is in the session's log.
type Ref struct {
	SessionID string `json:"sessionId"`
	TurnID    string `json:"turnId"`
}

// Outcome says what comes after a step.
type Outcome string

// The outcomes.
const (
	Done     Outcome = "done"     // the turn has ended
	Continue Outcome = "continue" // call Step again: the time of this invocation is running out
	Await    Outcome = "await"    // call Step again once a decision was made, or a call has waited long enough; see [Runner.Resume]
)

// Step works on a turn until its outcome. It finds its place in the session's log, so it may be called again after any
// fault, in any process; when two calls run at once, the log stops one of them. An error means that nothing is known:
// call again later.
type Step func(ctx context.Context, ref Ref) (Outcome, error)

// A Runner runs turns. Implementations are safe for concurrent use.
type Runner interface {
	// Start has a turn run that the session store has accepted. It returns before the turn ends. Starting a turn again is
	// harmless. A turn that was accepted but not started, because the process died between the two, is found and started
	// by the runner itself.
	Start(ctx context.Context, ref Ref) error

	// Resume has a turn go on that waits for decisions about calls, once one was made. Parked says that nobody ran it; otherwise
	// whoever runs it finds the decision. CallIDs are the calls that it waits for, with the one that was decided. Resuming
	// again is harmless. An error means that the turn goes on later.
	Resume(ctx context.Context, ref Ref, parked bool, callIDs ...string) error

	// Stop frees what a turn holds that was ended in the log. The turn's context ends where the runner can reach it; Stop does
	// not wait for it.
	Stop(ctx context.Context, ref Ref) error
}
