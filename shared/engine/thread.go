package engine

import (
	"encoding/json"
	"slices"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/tool"
)

// thread is one conversation with a model, as the model sees it, and how far its step got: the session's own, or that of a
// delegation to a subagent.
type thread struct {
	Messages  []model.Message         `json:"messages"`
	Bytes     int                     `json:"bytes"`    // size of Messages, see sizeOf
	Steps     int                     `json:"steps"`    // finished model steps of the turn
	Restarts  int                     `json:"restarts"` // of the step that is not finished
	Begun     bool                    `json:"begun"`    // the step that is not finished has written something
	Partial   string                  `json:"partial,omitempty"`
	Reasoning []model.Reasoning       `json:"reasoning,omitempty"` // of the step that is not finished
	Calls     []event.ActionCall      `json:"calls,omitempty"`     // requested in the last step and not all answered
	Results   map[string]model.Result `json:"results,omitempty"`   // of Calls, by call id

	budget int // bytes of tool output in one step that the model reads
}

func (t *thread) finishStep(d event.MessageCompleted) {
	t.closeCalls()
	t.push(model.Message{Role: model.Assistant, Text: d.Text, Reasoning: t.Reasoning})
	t.Steps++
	t.Restarts, t.Begun, t.Partial, t.Reasoning = 0, false, "", nil
}

func (t *thread) restart() {
	t.Restarts++
	t.Begun, t.Partial, t.Reasoning = false, "", nil
}

func (t *thread) request(d event.ActionsRequested) {
	t.closeCalls()
	if len(d.Calls) == 0 {
		return
	}
	t.Calls = d.Calls
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

func (t *thread) answer(d event.ActionResult) {
	_, answered := t.Results[d.CallID]
	if answered || !slices.ContainsFunc(t.Calls, func(c event.ActionCall) bool { return c.CallID == d.CallID }) {
		return
	}
	if t.Results == nil {
		t.Results = make(map[string]model.Result, len(t.Calls))
	}
	t.Results[d.CallID] = model.Result{CallID: d.CallID, Name: d.ToolName, Output: tool.Readable(d.Output), IsError: d.IsError}
	if len(t.Results) == len(t.Calls) {
		t.closeCalls()
	}
}

// closeCalls ends the tool calls of a step, if there are any. What the model reads of a call without a result says so.
func (t *thread) closeCalls() {
	if len(t.Calls) == 0 {
		return
	}
	results := make([]model.Result, len(t.Calls))
	for i, c := range t.Calls {
		r, ok := t.Results[c.CallID]
		if !ok {
			r = model.Result{
				CallID: c.CallID, Name: c.ToolName, IsError: true,
				Output: "The turn was stopped before this call had a result. Its outcome is unknown.",
			}
		}
		results[i] = r
	}
	t.Calls, t.Results = nil, nil
	t.push(model.Message{Role: model.Results, Results: shorten(results, t.budget)})
}

// end leaves the conversation so that another turn can follow: what the user saw stays, every call has its result.
func (t *thread) end() {
	t.closeCalls()
	if t.Partial != "" {
		t.push(model.Message{Role: model.Assistant, Text: t.Partial})
	}
	t.Partial, t.Reasoning = "", nil
}

// begin begins another turn with what the user says.
func (t *thread) begin(text string) {
	t.end()
	t.push(model.Message{Role: model.User, Text: text})
	t.Steps, t.Restarts, t.Begun = 0, 0, false
}

// replace puts a summary in the place of all messages but the newest. Results do not stay without their calls.
func (t *thread) replace(d event.ContextCompacted) {
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
}

func (t *thread) push(m model.Message) {
	t.Messages = append(t.Messages, m)
	t.Bytes += sizeOf(m)
}

// open returns the calls that have no result yet.
func (t *thread) open() []event.ActionCall {
	var open []event.ActionCall
	for _, c := range t.Calls {
		if _, ok := t.Results[c.CallID]; !ok {
			open = append(open, c)
		}
	}
	return open
}
