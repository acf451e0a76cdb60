package model

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// An Answer is what the deltas of one model call add up to.
type Answer struct {
	Message Message      // role Assistant; the arguments of its calls are as the model wrote them, nil for a call without any
	Usage   Usage        // zero when the provider reported none
	Finish  FinishReason // "" when the stream ended before its finish
}

// An Accumulator adds up the deltas of one model call. Nothing is validated on the way.
// It is not safe for concurrent use.
type Accumulator struct {
	model string

	text      strings.Builder
	thought   strings.Builder // the open reasoning block
	reasoning []Reasoning
	calls     []*openCall
	usage     Usage
	finish    FinishReason
}

type openCall struct {
	index    int
	id, name string
	args     strings.Builder
}

// NewAccumulator returns an empty Accumulator. The id of the model, provider:name, is written on each signed reasoning block.
func NewAccumulator(modelID string) *Accumulator {
	return &Accumulator{model: modelID}
}

// Add takes the next delta.
func (a *Accumulator) Add(d Delta) {
	if d.Reasoning != "" {
		a.thought.WriteString(d.Reasoning)
	}
	if d.Signature != "" {
		a.closeThought(d.Signature)
	}
	if d.Text != "" {
		a.closeThought("")
		a.text.WriteString(d.Text)
	}
	if d.Call != nil {
		a.closeThought("")
		a.addCall(d.Call)
	}
	if d.Usage != nil {
		a.usage = *d.Usage
	}
	if d.Finish != "" {
		a.finish = d.Finish
	}
}

func (a *Accumulator) closeThought(signature string) {
	if a.thought.Len() == 0 && signature == "" {
		return
	}
	a.reasoning = append(a.reasoning, a.block(signature))
	a.thought.Reset()
}

func (a *Accumulator) block(signature string) Reasoning {
	r := Reasoning{Text: a.thought.String(), Signature: signature}
	if signature != "" {
		r.Model = a.model
	}
	return r
}

func (a *Accumulator) addCall(d *CallDelta) {
	i := slices.IndexFunc(a.calls, func(c *openCall) bool { return c.index == d.Index })
	if i < 0 {
		i = len(a.calls)
		a.calls = append(a.calls, &openCall{index: d.Index})
	}
	c := a.calls[i]
	if c.id == "" {
		c.id = d.ID
	}
	if c.name == "" {
		c.name = d.Name
	}
	c.args.WriteString(d.Args)
}

// Answer returns what was added so far: reasoning blocks and calls are in the order of their first pieces.
func (a *Accumulator) Answer() Answer {
	m := Message{Role: Assistant, Text: a.text.String(), Reasoning: slices.Clone(a.reasoning)}
	if a.thought.Len() > 0 {
		m.Reasoning = append(m.Reasoning, a.block(""))
	}
	for _, c := range a.calls {
		call := Call{ID: c.id, Name: c.name}
		if c.args.Len() > 0 {
			call.Args = json.RawMessage(c.args.String())
		}
		m.Calls = append(m.Calls, call)
	}
	return Answer{Message: m, Usage: a.usage, Finish: a.finish}
}

// Collect ranges over the whole stream and adds it up. With an error it also returns what came before it.
// A stream that ends without a finish reason is an [*Error] of kind [Unavailable].
func Collect(modelID string, stream iter.Seq2[Delta, error]) (Answer, error) {
	a := NewAccumulator(modelID)
	for d, err := range stream {
		if err != nil {
			return a.Answer(), err
		}
		a.Add(d)
	}
	if a.finish == "" {
		return a.Answer(), &Error{Kind: Unavailable, Message: "the answer ended without a finish reason"}
	}
	return a.Answer(), nil
}
