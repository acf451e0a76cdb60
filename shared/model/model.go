// Package model is the port to language models: one streaming call. Adapters live in the packages below it:
// scripted, openai, anthropic and bedrock.
package model

import (
	"context"
	"encoding/json"
	"iter"
)

// A Model answers a request with a stream of deltas. Implementations are safe for concurrent use.
type Model interface {
	// Stream sends the request when the sequence is ranged over and yields the answer piece by piece.
	// A well-ended stream holds exactly one delta with a Finish reason; it may be followed by one with Usage only.
	// A fault is yielded once, as the last pair, and is an [*Error] unless ctx ended. A stream that is cut
	// before its finish yields an [*Error] of kind [Unavailable]. Breaking off the range closes the provider request.
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// A Request is everything a model sees. Adapters must not keep or change it.
type Request struct {
	Instructions string    // the system prompt; may be empty
	Messages     []Message // oldest first, never empty, the last one is a user message or tool results
	Tools        []Tool    // may be empty; in name order, so that provider caches hit
	MaxTokens    int       // upper bound of output tokens; 0 means the adapter's documented default

	SessionID string // for providers that attribute requests, and for scripted rules counted per session
	Step      int    // 1 for the first model call of a turn
}

// Role says who wrote a message.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Results   Role = "results" // the results of the calls in the assistant message before it
)

// A Message is one entry of the conversation. Which fields are set depends on the role.
type Message struct {
	Role      Role        `json:"role"`
	Text      string      `json:"text,omitempty"`      // User, Assistant
	Reasoning []Reasoning `json:"reasoning,omitempty"` // Assistant, in order
	Calls     []Call      `json:"calls,omitempty"`     // Assistant
	Results   []Result    `json:"results,omitempty"`   // Results: exactly one for each call before it, in the order of the calls
}

// Reasoning is a block of the model's own thoughts. A provider that signs them must get them back unchanged.
type Reasoning struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"` // opaque; set by the provider
	Model     string `json:"model,omitempty"`     // who signed, provider:name: a request to another model leaves the block out
}

// A Call is a tool call the model asks for.
type Call struct {
	ID   string          `json:"id"`   // chosen by the provider, or by the adapter where the provider gives none; unique in a turn
	Name string          `json:"name"` // as the model wrote it: may be unknown
	Args json.RawMessage `json:"args"` // a JSON object in requests; in answers whatever text the model produced
}

// A Result answers a call.
type Result struct {
	CallID  string `json:"callId"`
	Name    string `json:"name"`
	Output  string `json:"output"` // what the model reads
	IsError bool   `json:"isError,omitempty"`
}

// A Tool is a tool the model may call.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage // a JSON Schema of type object
}

// A Delta is one piece of an answer. Usually one field is set.
type Delta struct {
	Text      string       // a piece of the reply; pieces may be cut anywhere, also inside a character
	Reasoning string       // a piece of reasoning text
	Signature string       // ends a reasoning block and signs it
	Call      *CallDelta   // a piece of a tool call
	Usage     *Usage       // the whole usage of the call, at most once
	Finish    FinishReason // why the answer ended
}

// A CallDelta is a piece of a tool call. Pieces of several calls may be interleaved: Index tells them apart.
type CallDelta struct {
	Index int    // position of the call in the answer, from 0
	ID    string // set in the first piece of the call
	Name  string // set in the first piece of the call
	Args  string // the next piece of the arguments; a call without any piece has no arguments
}

// Usage counts tokens. InputTokens excludes those read from or written to a cache.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens,omitempty"` // part of OutputTokens, where the provider tells
}

// Add returns the sum of both usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		ReasoningTokens:  u.ReasoningTokens + v.ReasoningTokens,
	}
}

// Total returns all tokens that were sent or received.
func (u Usage) Total() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}

// FinishReason says why an answer ended. The values are those of the message.completed event.
type FinishReason string

// The finish reasons. An adapter maps what it does not know to FinishOther.
const (
	FinishStop          FinishReason = "stop"
	FinishToolCalls     FinishReason = "tool_calls"
	FinishLength        FinishReason = "length"
	FinishContentFilter FinishReason = "content_filter"
	FinishOther         FinishReason = "other"
)
