package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// transcript is what the log of a session amounts to: the conversation as the model sees it and how far the current turn
// got. It is a pure fold over events, so it can be thrown away and built again at any time.
type transcript struct {
	Next     int64           `json:"next"` // index of the next event to fold
	Messages []model.Message `json:"messages"`
	Bytes    int             `json:"bytes"` // size of Messages, see sizeOf
	Spent    spending        `json:"spent"` // of the whole session
	Turn     progress        `json:"turn"`

	budget int   // bytes of tool output in one step that the model reads
	kept   int64 // Next of the snapshot it was read from or last stored as
}

// progress is how far a turn got.
type progress struct {
	ID        string                  `json:"id"`
	StartedAt time.Time               `json:"startedAt"`
	Steps     int                     `json:"steps"`    // finished model steps
	Restarts  int                     `json:"restarts"` // of the step that is not finished
	Begun     bool                    `json:"begun"`    // the step that is not finished has written something
	Partial   string                  `json:"partial,omitempty"`
	Reasoning []model.Reasoning       `json:"reasoning,omitempty"` // of the step that is not finished
	Calls     []event.ActionCall      `json:"calls,omitempty"`     // requested in the last step and not all answered
	Results   map[string]model.Result `json:"results,omitempty"`   // of Calls, by call id
	Spent     spending                `json:"spent"`
	Ended     bool                    `json:"ended"`
}

// errUnreadable says that a log is not one that engines write. No later try will read it.
var errUnreadable = errors.New("the session's log cannot be read")

// fold takes the next event of the log in.
func (t *transcript) fold(e event.Event) error {
	if e.Index != t.Next {
		return fmt.Errorf("%w: event %d stands where %d is next", errUnreadable, e.Index, t.Next)
	}
	t.Next++
	if e.Type == event.TypeMessageReceived {
		return with(e, func(d event.MessageReceived) { t.beginTurn(e.TurnID, d.Text) })
	}
	if e.TurnID == "" || e.TurnID != t.Turn.ID {
		return nil
	}
	return t.foldTurn(e)
}

// foldTurn takes an event of the current turn in. Types it does not know do not matter to the conversation.
func (t *transcript) foldTurn(e event.Event) error {
	p := &t.Turn
	switch e.Type {
	case event.TypeTurnStarted:
		p.StartedAt = e.At
	case event.TypeReasoningAppended:
		p.Begun = true
	case event.TypeReasoningCompleted:
		return with(e, func(d event.ReasoningCompleted) {
			p.Reasoning = append(p.Reasoning, model.Reasoning{Text: d.Text, Signature: d.Signature, Model: d.Model})
		})
	case event.TypeMessageAppended:
		return with(e, func(d event.MessageAppended) { p.Begun, p.Partial = true, p.Partial+d.Text })
	case event.TypeMessageCompleted:
		return with(e, t.finishStep)
	case event.TypeActionsRequested:
		return with(e, t.request)
	case event.TypeActionResult:
		return with(e, t.answer)
	case event.TypeStepRestarted:
		p.Restarts++
		p.Begun, p.Partial, p.Reasoning = false, "", nil
	case event.TypeContextCompacted:
		return with(e, t.replace)
	case event.TypeTurnCompleted, event.TypeTurnFailed:
		t.endTurn()
	default:
	}
	return nil
}

func with[T event.Data](e event.Event, take func(T)) error {
	d, err := event.Decode[T](e)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	take(d)
	return nil
}

func (t *transcript) beginTurn(id, text string) {
	t.endTurn()
	t.push(model.Message{Role: model.User, Text: text})
	t.Turn = progress{ID: id}
}

func (t *transcript) finishStep(d event.MessageCompleted) {
	p := &t.Turn
	t.closeCalls()
	t.push(model.Message{Role: model.Assistant, Text: d.Text, Reasoning: p.Reasoning})
	p.Steps++
	p.Restarts, p.Begun, p.Partial, p.Reasoning = 0, false, "", nil
	t.spend(d.Usage, d.UsageOf)
}

func (t *transcript) request(d event.ActionsRequested) {
	t.closeCalls()
	if len(d.Calls) == 0 {
		return
	}
	t.Turn.Calls = d.Calls
	calls := make([]model.Call, len(d.Calls))
	for i, c := range d.Calls {
		calls[i] = model.Call{ID: c.CallID, Name: c.ToolName, Args: c.Args}
		if len(c.Args) == 0 {
			calls[i].Args = json.RawMessage("{}")
		}
	}
	if n := len(t.Messages); n == 0 || t.Messages[n-1].Role != model.Assistant || len(t.Messages[n-1].Calls) > 0 {
		t.push(model.Message{Role: model.Assistant})
	}
	last := &t.Messages[len(t.Messages)-1]
	t.Bytes -= sizeOf(*last)
	last.Calls = calls
	t.Bytes += sizeOf(*last)
}

func (t *transcript) answer(d event.ActionResult) {
	p := &t.Turn
	_, answered := p.Results[d.CallID]
	if answered || !slices.ContainsFunc(p.Calls, func(c event.ActionCall) bool { return c.CallID == d.CallID }) {
		return
	}
	if p.Results == nil {
		p.Results = make(map[string]model.Result, len(p.Calls))
	}
	p.Results[d.CallID] = model.Result{CallID: d.CallID, Name: d.ToolName, Output: readable(d.Output), IsError: d.IsError}
	if len(p.Results) == len(p.Calls) {
		t.closeCalls()
	}
}

// closeCalls ends the tool calls of a step, if there are any. What the model reads of a call without a result says so.
func (t *transcript) closeCalls() {
	p := &t.Turn
	if len(p.Calls) == 0 {
		return
	}
	results := make([]model.Result, len(p.Calls))
	for i, c := range p.Calls {
		r, ok := p.Results[c.CallID]
		if !ok {
			r = model.Result{
				CallID: c.CallID, Name: c.ToolName, IsError: true,
				Output: "The turn was stopped before this call had a result. Its outcome is unknown.",
			}
		}
		results[i] = r
	}
	p.Calls, p.Results = nil, nil
	t.push(model.Message{Role: model.Results, Results: shorten(results, t.budget)})
}

// endTurn leaves the conversation so that another turn can follow: what the user saw stays, every call has its result.
func (t *transcript) endTurn() {
	p := &t.Turn
	t.closeCalls()
	if p.Partial != "" {
		t.push(model.Message{Role: model.Assistant, Text: p.Partial})
	}
	p.Partial, p.Reasoning, p.Ended = "", nil, true
}

// replace puts a summary in the place of all messages but the newest. Results do not stay without their calls.
func (t *transcript) replace(d event.ContextCompacted) {
	t.closeCalls()
	kept := t.Messages[len(t.Messages)-max(0, min(d.Kept, len(t.Messages))):]
	for len(kept) > 0 && kept[0].Role == model.Results {
		kept = kept[1:]
	}
	t.Messages, t.Bytes = nil, 0
	t.push(model.Message{Role: model.User, Text: d.Summary})
	for _, m := range kept {
		t.push(m)
	}
	t.spend(d.Usage, d.UsageOf)
}

func (t *transcript) push(m model.Message) {
	t.Messages = append(t.Messages, m)
	t.Bytes += sizeOf(m)
}

func (t *transcript) spend(u *event.Usage, modelID string) {
	if u == nil {
		return
	}
	t.Spent.add(*u, modelID)
	t.Turn.Spent.add(*u, modelID)
}

// open returns the calls that have no result yet.
func (p *progress) open() []event.ActionCall {
	var open []event.ActionCall
	for _, c := range p.Calls {
		if _, ok := p.Results[c.CallID]; !ok {
			open = append(open, c)
		}
	}
	return open
}

// readable returns a tool's output as the model reads it: text as it is, anything else as JSON.
func readable(output json.RawMessage) string {
	var text string
	if bytes.HasPrefix(output, []byte{'"'}) && json.Unmarshal(output, &text) == nil {
		return text
	}
	return string(output)
}

// sizeOf returns how many bytes of a request a message makes up, near enough.
func sizeOf(m model.Message) int {
	const overhead = 16
	n := overhead + len(m.Text)
	for _, r := range m.Reasoning {
		n += overhead + len(r.Text) + len(r.Signature)
	}
	for _, c := range m.Calls {
		n += overhead + len(c.ID) + len(c.Name) + len(c.Args)
	}
	for _, r := range m.Results {
		n += overhead + len(r.CallID) + len(r.Output)
	}
	return n
}
