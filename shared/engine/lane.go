package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// mind is what thinks in a thread: the agent itself, or a subagent.
type mind struct {
	instructions string
	models       []NamedModel
	tools        []model.Tool // what the models are offered, in name order
	fixed        int          // bytes of a request besides its messages
}

func newMind(instructions string, models []NamedModel, tools []model.Tool) mind {
	m := mind{instructions, models, tools, len(instructions)}
	for _, t := range tools {
		m.fixed += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	return m
}

// lane is a thread at work. The agent has one, and every delegation one of its own, which runs beside the calls of the agent's.
type lane struct {
	*run
	mind

	parent    string // call id of the delegation; "" for the agent itself
	th        *thread
	inherited map[string]bool  // calls that another invocation may have begun, by call id
	malformed map[string]error // calls whose arguments cannot be used, by call id
	fault     string           // why the last model call has to be made again; "" if it has not
	answered  bool             // its last text was recorded, or why there is none
}

func (r *run) lane(parent string, m mind, th *thread) *lane {
	l := &lane{run: r, mind: m.with(r.connected), parent: parent, th: th, inherited: make(map[string]bool)}
	for _, c := range th.open() {
		l.inherited[c.CallID] = true
	}
	return l
}

// work makes moves until the thread has its last text (turn.Done), nothing but approvals can take it further (turn.Await), or the
// turn should be handed back (turn.Continue).
func (l *lane) work(ctx context.Context) (turn.Outcome, error) {
	for !l.answered {
		if turn.ShouldYield(ctx, l.need()) {
			return turn.Continue, nil
		}
		out, err := l.next(ctx)
		if err != nil || out != "" {
			return out, err
		}
	}
	return turn.Done, nil
}

// need returns how long the next move may take at most, 0 if nobody knows: a model has no time limit of its own.
func (l *lane) need() time.Duration {
	var most time.Duration
	for _, c := range l.th.open() {
		if !l.delegates(c) { // a subagent looks at the time by itself
			most = max(most, l.deps.Tools.Timeout(c.ToolName))
		}
	}
	return most
}

// next makes one move: it runs the calls that are open, or asks the model, whose last answer ends the thread. The outcome is "" if
// another move can follow.
func (l *lane) next(ctx context.Context) (turn.Outcome, error) {
	if calls := l.th.open(); len(calls) > 0 {
		return l.callTools(ctx, calls)
	}
	if reason := l.reached(); reason != "" {
		return "", l.fail(ctx, "limit reached: "+reason)
	}
	return "", l.ask(ctx)
}

// complete ends the thread well, with the events of its last step. A last text that is not what the agent's result must be is
// refused once.
func (l *lane) complete(ctx context.Context, last event.MessageCompleted, before ...event.Data) error {
	if l.parent != "" {
		l.answered = true
		return l.report(ctx, append(before, last), last.Text, false)
	}
	if why := l.project.Agent.Result.Check(strings.TrimSpace(last.Text)); why != nil {
		return l.refuse(ctx, append(before, last), why)
	}
	l.answered = true
	spent := l.t.Turn.Spent
	spent.add(*last.Usage, last.UsageOf)
	done := event.TurnCompleted{Result: last.Text, Usage: &spent.Usage, Cost: spent.cost()}
	end := event.Data(event.SessionWaiting{})
	if l.w.Row().Mode == session.Task {
		end = event.SessionCompleted{Result: last.Text}
	}
	return l.finish(ctx, append(before, last, done, end)...)
}

// refuse has the model answer again, with what is wrong, or fails the turn if it has had its second try.
func (l *lane) refuse(ctx context.Context, last []event.Data, why error) error {
	if l.t.Turn.Refused > 0 {
		if err := l.append(ctx, last...); err != nil {
			return err
		}
		return l.fail(ctx, fmt.Sprintf("the result does not match the agent's schema: %s", why))
	}
	reason := fmt.Sprintf("Your last message is not the result that is asked for: %s\nAnswer again, with the corrected JSON object and nothing else.", why)
	return l.append(ctx, append(last, event.ResultRejected{Reason: reason})...)
}

// fail ends the thread with an error: the turn, or the delegation alone, whose caller reads why.
func (l *lane) fail(ctx context.Context, message string) error {
	l.answered = true
	if l.parent != "" {
		return l.report(ctx, nil, "The subagent could not finish: "+message, true)
	}
	return l.run.fail(ctx, message)
}

// resultNote tells the model what its last text must be.
func resultNote(schema []byte) string {
	if len(schema) == 0 {
		return ""
	}
	return "Your last message of each turn must be one JSON object, without any text around it, that matches this JSON Schema:\n" + string(schema)
}

// fenced reports whether an error says that the turn is not ours any more.
func fenced(err error) bool { return errors.Is(err, session.ErrFenced) }
