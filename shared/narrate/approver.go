package narrate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/bdk-lambda/bdk/shared/event"
)

// Approver decides about the calls of a turn at a terminal. It is for one goroutine.
type Approver struct {
	Mode string        // one of the modes; "" is Leave
	In   *bufio.Reader // answers, for Ask
	Out  io.Writer     // questions, for Ask
}

// The modes of an Approver.
const (
	Approve = "approve" // every call
	Deny    = "deny"    // every call
	Ask     = "ask"     // a person; without an answer a call is denied
	Leave   = "leave"   // nobody decides here
)

// ErrWaits says that a turn waits for a decision that is not made here.
var ErrWaits = errors.New("the turn waits for approval")

// Decide returns what an event that asks for an approval is answered with. ok is false for other events. It fails with ErrWaits if the
// decision is left to others.
func (a *Approver) Decide(e event.Event) (callID, decision string, ok bool, err error) {
	d, err := event.Decode[event.ApprovalRequested](e)
	if e.Type != event.TypeApprovalRequested || err != nil {
		return "", "", false, nil //nolint:nilerr // what cannot be read asks for nothing
	}
	switch a.Mode {
	case Approve:
		return d.CallID, event.Approve, true, nil
	case Deny:
		return d.CallID, event.Deny, true, nil
	case Ask:
		return d.CallID, a.ask(d), true, nil
	}
	return d.CallID, "", true, fmt.Errorf("%w of %s %s, call %s of session %s: run with --approve or --deny, or decide where the agent is served", ErrWaits, d.ToolName, shorten(d.Args), d.CallID, e.SessionID)
}

func (a *Approver) ask(d event.ApprovalRequested) string {
	fmt.Fprintf(a.Out, "? approve %s %s [y/N] ", d.ToolName, d.Args)
	line, err := a.In.ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.Out)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return event.Approve
	}
	return event.Deny
}
