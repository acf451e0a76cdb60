// Package anthropic asks models over Anthropic's messages protocol.
//
// Signed thinking is yielded as reasoning and sent back unchanged; a block that the provider sent encrypted has no text and a
// signature that begins with "redacted:". Unless told otherwise, the adapter marks instructions and conversation for the
// provider's prompt cache, which an agent that calls tools hits from its second step on.
package anthropic

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/fault"
	"github.com/bdk-lambda/bdk/shared/model/internal/post"
	"github.com/bdk-lambda/bdk/shared/model/internal/sse"
)

// DefaultMaxTokens is the bound on output tokens of a request that sets none.
const DefaultMaxTokens = 8192

// minAnswer is how many output tokens a request leaves at least for what is not thinking.
const minAnswer = 1024

// version is the version of the protocol.
const version = "2023-06-01"

var _ model.Model = (*Model)(nil)

// Options are the optional settings of [New]. The zero value is fine.
type Options struct {
	BaseURL        string      // without the version; default https://api.anthropic.com
	Header         http.Header // more headers for each request; kept out of errors
	ThinkingBudget int         // tokens for extended thinking, at least 1024, for models that do not decide themselves; default 0: not sent. The bound on output tokens is raised to leave 1024 beside it
	NoCache        bool        // do not mark anything for the prompt cache
	Clock          clock.Clock // default clock.System{}
}

// Model is one model. It makes no retries. It is safe for concurrent use.
type Model struct {
	name     string
	thinking int
	noCache  bool
	client   post.Client
}

// New returns the model of the given name. Opts may be nil.
func New(client *http.Client, apiKey, name string, opts *Options) *Model {
	o := Options{BaseURL: "https://api.anthropic.com", Clock: clock.System{}}
	if opts != nil {
		url, clk := o.BaseURL, o.Clock
		o = *opts
		if o.BaseURL == "" {
			o.BaseURL = url
		}
		if o.Clock == nil {
			o.Clock = clk
		}
	}
	apiKey = strings.TrimSpace(apiKey)
	header := http.Header{"X-Api-Key": {apiKey}, "Anthropic-Version": {version}}
	secrets := []string{apiKey}
	for key, values := range o.Header {
		header[http.CanonicalHeaderKey(key)] = values
		secrets = append(secrets, values...)
	}
	return &Model{
		name: name, thinking: o.ThinkingBudget, noCache: o.NoCache,
		client: post.Client{
			HTTP: client, Clock: o.Clock, Header: header, Secrets: secrets,
			URL:  strings.TrimRight(o.BaseURL, "/") + "/v1/messages",
			Last: func(e sse.Event) bool { return e.Name == "message_stop" || e.Name == "error" },
		},
	}
}

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := answer{yield: yield, blocks: map[int]*block{}}
		for e, err := range m.client.Events(ctx, m.request(req)) {
			if err == nil {
				err = a.event(e.Data)
			}
			if a.stopped {
				return
			}
			if err != nil {
				yield(model.Delta{}, m.client.Mend(ctx, err))
				return
			}
		}
		a.end()
	}
}

// An answer is the state of one stream.
type answer struct {
	yield   func(model.Delta, error) bool
	stopped bool // the consumer broke off

	blocks map[int]*block // by the provider's index
	calls  int
	usage  usageJSON
	finish model.FinishReason
}

type block struct {
	call      int             // position among the calls; -1 for a block that is none
	input     json.RawMessage // came with the start of the block
	hasArgs   bool            // pieces of arguments came
	signature string
}

// send yields a delta unless the consumer broke off before.
func (a *answer) send(d model.Delta) {
	a.stopped = a.stopped || !a.yield(d, nil)
}

func (a *answer) event(data []byte) error {
	var e eventJSON
	if err := json.Unmarshal(data, &e); err != nil {
		return &model.Error{Kind: model.Unavailable, Message: "the provider sent an event that is not readable: " + err.Error(), Err: err}
	}
	switch e.Type {
	case "message_start":
		a.usage.add(e.Message.Usage)
	case "content_block_start":
		a.open(&e)
	case "content_block_delta":
		a.piece(&e)
	case "content_block_stop":
		a.close(e.Index)
	case "message_delta":
		a.usage.add(e.Usage)
		if e.Delta.StopReason != "" {
			a.finish = finish(e.Delta.StopReason)
		}
	case "error":
		return fault.FromBody(0, data)
	}
	return nil // other events, such as ping, may come at any time
}

func (a *answer) open(e *eventJSON) {
	b := &block{call: -1}
	a.blocks[e.Index] = b
	switch e.Block.Type {
	case "tool_use":
		b.call, b.input = a.calls, e.Block.Input
		a.calls++
		a.send(model.Delta{Call: &model.CallDelta{Index: b.call, ID: e.Block.ID, Name: e.Block.Name}})
	case "redacted_thinking":
		b.signature = redacted + e.Block.Data
	case "text":
		if e.Block.Text != "" {
			a.send(model.Delta{Text: e.Block.Text})
		}
	}
}

func (a *answer) piece(e *eventJSON) {
	b := a.blocks[e.Index]
	if b == nil {
		return // a piece of a block that was never opened
	}
	switch e.Delta.Type {
	case "text_delta":
		if e.Delta.Text != "" {
			a.send(model.Delta{Text: e.Delta.Text})
		}
	case "input_json_delta":
		if b.call >= 0 && e.Delta.PartialJSON != "" {
			b.hasArgs = true
			a.send(model.Delta{Call: &model.CallDelta{Index: b.call, Args: e.Delta.PartialJSON}})
		}
	case "thinking_delta":
		if e.Delta.Thinking != "" {
			a.send(model.Delta{Reasoning: e.Delta.Thinking})
		}
	case "signature_delta":
		b.signature += e.Delta.Signature
	}
}

func (a *answer) close(index int) {
	b := a.blocks[index]
	if b == nil {
		return
	}
	delete(a.blocks, index)
	if b.signature != "" {
		a.send(model.Delta{Signature: b.signature})
	}
	if input := string(b.input); b.call >= 0 && !b.hasArgs && input != "" && input != "{}" && input != "null" {
		a.send(model.Delta{Call: &model.CallDelta{Index: b.call, Args: input}})
	}
}

func (a *answer) end() {
	if a.finish == "" {
		a.yield(model.Delta{}, &model.Error{Kind: model.Unavailable, Message: "the provider closed the stream before the answer ended"})
		return
	}
	a.send(model.Delta{Finish: a.finish})
	if u := a.usage.usage(); u != nil {
		a.send(model.Delta{Usage: u})
	}
}
