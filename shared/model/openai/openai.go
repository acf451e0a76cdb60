// Package openai asks models over OpenAI's chat completions protocol, at OpenAI or at any server that speaks it.
//
// Compatible servers differ, and the adapter takes what they send: usage in a last chunk, in every chunk or nowhere, calls
// without ids or indexes, arguments as objects, pieces that are cut inside a character, comments that keep the connection
// alive, a missing [DONE]. Error results are sent as text that begins with "Error: ", as the protocol has no field for them.
// Reasoning text is yielded where a server sends it, and never sent back.
package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/fault"
	"github.com/bdk-lambda/bdk/shared/model/internal/post"
	"github.com/bdk-lambda/bdk/shared/model/internal/sse"
)

var _ model.Model = (*Model)(nil)

// Options are the optional settings of [New]. The zero value is fine.
type Options struct {
	BaseURL         string      // up to and including the version; default https://api.openai.com/v1
	Header          http.Header // more headers for each request, as gateways want; kept out of errors
	ReasoningEffort string      // minimal, low, medium, high…; default: not sent
	Clock           clock.Clock // default clock.System{}
}

// Model is one model at one server. It makes no retries. It is safe for concurrent use.
type Model struct {
	name       string
	effort     string
	compatible bool // not OpenAI's own server
	client     post.Client
}

// New returns the model of the given name. The API key may be empty for servers that need none. Opts may be nil.
//
// [model.Request.MaxTokens] is sent as max_completion_tokens to OpenAI and as max_tokens to a server of another BaseURL;
// when it is 0 neither is sent and the server's own limit holds.
func New(client *http.Client, apiKey, name string, opts *Options) *Model {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	m := &Model{name: name, effort: o.ReasoningEffort, compatible: o.BaseURL != ""}
	if !m.compatible {
		o.BaseURL = "https://api.openai.com/v1"
	}
	apiKey = strings.TrimSpace(apiKey)
	header := http.Header{}
	secrets := []string{apiKey}
	if apiKey != "" {
		header.Set("Authorization", "Bearer "+apiKey)
	}
	for key, values := range o.Header {
		header[http.CanonicalHeaderKey(key)] = values
		secrets = append(secrets, values...)
	}
	m.client = post.Client{
		HTTP: client, Clock: o.Clock, Header: header, Secrets: secrets,
		URL:  strings.TrimRight(o.BaseURL, "/") + "/chat/completions",
		Last: func(e sse.Event) bool { return string(e.Data) == done },
	}
	return m
}

// done is the data of the event that ends an answer.
const done = "[DONE]"

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := answer{step: req.Step, yield: yield}
		for e, err := range m.client.Events(ctx, m.request(req)) {
			if err == nil {
				err = a.event(e.Data)
			}
			if err != nil {
				if !a.stopped {
					yield(model.Delta{}, m.client.Mend(ctx, err))
				}
				return
			}
			if a.stopped {
				return
			}
		}
		a.end()
	}
}

// An answer is the state of one stream.
type answer struct {
	step    int
	yield   func(model.Delta, error) bool
	stopped bool // the consumer broke off

	text, thought joiner
	calls         []openCall
	finish        model.FinishReason
	usage         *model.Usage
}

type openCall struct {
	index int    // the server's
	id    string // the server's
}

// send yields a delta unless the consumer broke off before.
func (a *answer) send(d model.Delta) {
	a.stopped = a.stopped || !a.yield(d, nil)
}

func (a *answer) event(data []byte) error {
	if string(data) == done {
		if a.finish == "" {
			a.finish = model.FinishOther // the answer is whole, only nobody says why it ended
		}
		return nil
	}
	var c chunkJSON
	if err := json.Unmarshal(data, &c); err != nil {
		return &model.Error{Kind: model.Unavailable, Message: "the server sent an event that is not readable: " + err.Error(), Err: err}
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return fault.FromBody(0, data)
	}
	if c.Usage != nil {
		a.usage = c.Usage.usage()
	}
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			a.choice(&c.Choices[i])
		}
	}
	return nil
}

func (a *answer) choice(c *choiceJSON) {
	thought := c.Delta.ReasoningContent
	if thought == "" {
		thought = c.Delta.Reasoning
	}
	if s := a.thought.next(string(thought)); s != "" {
		a.send(model.Delta{Reasoning: s})
	}
	if s := a.text.next(string(c.Delta.Content + c.Delta.Refusal)); s != "" {
		a.send(model.Delta{Text: s})
	}
	for i := range c.Delta.ToolCalls {
		a.call(&c.Delta.ToolCalls[i])
	}
	if c.FinishReason != "" {
		a.finish = finish(c.FinishReason)
	}
}

// call yields a piece of a call. A piece belongs to the call of its index, but starts a new one when it has a name and another
// id: there are servers that give every call the index 0. Without an index it belongs to the last call, unless it has a name.
func (a *answer) call(d *callDeltaJSON) {
	at := len(a.calls) - 1
	if d.Index != nil {
		for at >= 0 && a.calls[at].index != *d.Index {
			at--
		}
	}
	isNew := at < 0 || d.Function.Name != "" && (d.Index == nil || d.ID != "" && d.ID != a.calls[at].id)
	piece := model.CallDelta{Index: at, Args: string(d.Function.Arguments)}
	if isNew {
		at = len(a.calls)
		index := at
		if d.Index != nil {
			index = *d.Index
		}
		a.calls = append(a.calls, openCall{index: index, id: d.ID})
		piece.Index, piece.ID, piece.Name = at, d.ID, d.Function.Name
		if piece.ID == "" {
			piece.ID = fmt.Sprintf("call_%d_%d", a.step, at)
		}
	}
	if isNew || piece.Args != "" {
		a.send(model.Delta{Call: &piece})
	}
}

// end yields what is known at the end of the stream only.
func (a *answer) end() {
	if a.finish == "" {
		a.yield(model.Delta{}, &model.Error{Kind: model.Unavailable, Message: "the server closed the stream before the answer ended"})
		return
	}
	if len(a.calls) > 0 && (a.finish == model.FinishStop || a.finish == model.FinishOther) {
		a.finish = model.FinishToolCalls // some servers say stop
	}
	a.send(model.Delta{Finish: a.finish})
	if a.usage != nil && !a.stopped {
		a.send(model.Delta{Usage: a.usage})
	}
}
