// Package narrate tells a person at a terminal what happens in a turn.
package narrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/bdk-lambda/bdk/shared/event"
)

// Narrator prints a turn as it happens: the reply to one writer, tool calls and the rest to another. It is for one goroutine.
type Narrator struct {
	out, calls io.Writer
	partial    bool // deltas of the current step were printed
	open       bool // the last line of out has no end yet
}

// New returns a Narrator of the next turn.
func New(out, calls io.Writer) *Narrator { return &Narrator{out: out, calls: calls} }

// Show prints what an event says. It reports whether the event ends the turn, and the failure it ended with.
func (r *Narrator) Show(e event.Event) (done bool, err error) {
	switch e.Type {
	case event.TypeMessageAppended:
		if d, err := event.Decode[event.MessageAppended](e); err == nil && d.ParentCallID == "" {
			r.print(d.Text)
			r.partial = true
		}
	case event.TypeMessageCompleted:
		if d, err := event.Decode[event.MessageCompleted](e); err == nil && d.ParentCallID == "" {
			if !r.partial {
				r.print(d.Text)
			}
			r.endLine()
		}
	case event.TypeStepRestarted:
		if d, err := event.Decode[event.StepRestarted](e); err == nil && d.ParentCallID == "" && r.partial {
			r.endLine()
			fmt.Fprintln(r.calls, "(the model starts this answer again)")
		}
	case event.TypeActionsRequested:
		if d, err := event.Decode[event.ActionsRequested](e); err == nil {
			for _, c := range d.Calls {
				fmt.Fprintf(r.calls, "> %s %s\n", c.ToolName, shorten(c.Args))
			}
		}
	case event.TypeActionResult:
		if d, err := event.Decode[event.ActionResult](e); err == nil {
			fmt.Fprintf(r.calls, "< %s%s %s\n", d.ToolName, map[bool]string{true: " failed:"}[d.IsError], shorten(d.Output))
		}
	case event.TypeTurnCompleted:
		r.endLine()
		return true, nil
	case event.TypeTurnFailed:
		r.endLine()
		d, _ := event.Decode[event.TurnFailed](e) // without its data it still failed
		return true, fmt.Errorf("the turn failed: %s", d.Message)
	default: // of no interest here
	}
	return false, nil
}

func (r *Narrator) print(text string) {
	if text != "" {
		_, _ = io.WriteString(r.out, text)
		r.open = text[len(text)-1] != '\n'
	}
}

func (r *Narrator) endLine() {
	if r.open {
		_, _ = io.WriteString(r.out, "\n")
	}
	r.open, r.partial = false, false
}

// shorten returns JSON in one line of bounded length.
func shorten(raw json.RawMessage) string {
	const most = 200
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	text := []rune(b.String())
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
