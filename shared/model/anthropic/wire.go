package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/history"
)

// The request.
type (
	requestJSON struct {
		Model     string        `json:"model"`
		MaxTokens int           `json:"max_tokens"`
		System    []blockJSON   `json:"system,omitempty"`
		Messages  []messageJSON `json:"messages"`
		Tools     []toolJSON    `json:"tools,omitempty"`
		Thinking  *thinkingJSON `json:"thinking,omitempty"`
		Stream    bool          `json:"stream"`
	}
	messageJSON struct {
		Role    string      `json:"role"`
		Content []blockJSON `json:"content"`
	}
	blockJSON struct {
		Type      string          `json:"type"`
		Text      string          `json:"text,omitempty"`
		Thinking  *string         `json:"thinking,omitempty"`
		Signature string          `json:"signature,omitempty"`
		Data      string          `json:"data,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		Content   string          `json:"content,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
		Cache     *cacheJSON      `json:"cache_control,omitempty"`
	}
	toolJSON struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	thinkingJSON struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	}
	cacheJSON struct {
		Type string `json:"type"`
	}
)

// The answer, as far as it is read.
type (
	eventJSON struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Usage usageJSON `json:"usage"`
		} `json:"message"`
		Block struct {
			Type  string          `json:"type"`
			ID    string          `json:"id"`
			Name  string          `json:"name"`
			Text  string          `json:"text"`
			Data  string          `json:"data"`
			Input json.RawMessage `json:"input"`
		} `json:"content_block"`
		Delta struct {
			Type        string `json:"type"`
			Text        string `json:"text"`
			PartialJSON string `json:"partial_json"`
			Thinking    string `json:"thinking"`
			Signature   string `json:"signature"`
			StopReason  string `json:"stop_reason"`
		} `json:"delta"`
		Usage usageJSON `json:"usage"`
	}
	usageJSON struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
	}
)

// redacted marks, in the signature of a reasoning block, one that the provider sent encrypted.
const redacted = "redacted:"

func (m *Model) request(req *model.Request) *requestJSON {
	turns := history.Turns(req.Messages, model.ProviderAnthropic+":"+m.name)
	r := &requestJSON{Model: m.name, MaxTokens: req.MaxTokens, Stream: true}
	if r.MaxTokens == 0 {
		r.MaxTokens = DefaultMaxTokens
	}
	if m.thinking > 0 {
		r.Thinking = &thinkingJSON{Type: "enabled", Budget: m.thinking}
		r.MaxTokens = max(r.MaxTokens, m.thinking+minAnswer)
	}
	if req.Instructions != "" {
		r.System = []blockJSON{{Type: "text", Text: req.Instructions}}
	}
	for _, t := range turns {
		r.Messages = append(r.Messages, message(t))
	}
	for _, t := range history.ToolsOrStub(req, turns) {
		r.Tools = append(r.Tools, toolJSON(t))
	}
	if !m.noCache {
		r.markCache()
	}
	return r
}

// markCache asks the provider to keep what is equal in the next request: tools and instructions, and the conversation so far.
func (r *requestJSON) markCache() {
	mark := func(blocks []blockJSON) {
		if len(blocks) > 0 {
			blocks[len(blocks)-1].Cache = &cacheJSON{Type: "ephemeral"}
		}
	}
	mark(r.System)
	if len(r.Messages) > 0 {
		mark(r.Messages[len(r.Messages)-1].Content)
	}
}

func message(t history.Turn) messageJSON {
	m := messageJSON{Role: "user"}
	if t.Assistant {
		m.Role = "assistant"
	}
	for _, r := range t.Results {
		m.Content = append(m.Content, blockJSON{Type: "tool_result", ToolUseID: r.CallID, Content: r.Output, IsError: r.IsError})
	}
	for _, r := range t.Reasoning {
		b := blockJSON{Type: "thinking", Thinking: &r.Text, Signature: r.Signature}
		if data, ok := strings.CutPrefix(r.Signature, redacted); ok {
			b = blockJSON{Type: "redacted_thinking", Data: data}
		}
		m.Content = append(m.Content, b)
	}
	if t.Text != "" {
		m.Content = append(m.Content, blockJSON{Type: "text", Text: t.Text})
	}
	for _, c := range t.Calls {
		m.Content = append(m.Content, blockJSON{Type: "tool_use", ID: c.ID, Name: c.Name, Input: c.Args})
	}
	return m
}

// add takes the counts of a later report, which are totals.
func (u *usageJSON) add(v usageJSON) {
	u.Input = max(u.Input, v.Input)
	u.Output = max(u.Output, v.Output)
	u.CacheRead = max(u.CacheRead, v.CacheRead)
	u.CacheWrite = max(u.CacheWrite, v.CacheWrite)
}

func (u *usageJSON) usage() *model.Usage {
	if *u == (usageJSON{}) {
		return nil
	}
	return &model.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
	}
}

func finish(reason string) model.FinishReason {
	switch reason {
	case "end_turn", "stop_sequence":
		return model.FinishStop
	case "tool_use":
		return model.FinishToolCalls
	case "max_tokens", "model_context_window_exceeded":
		return model.FinishLength
	case "refusal":
		return model.FinishContentFilter
	}
	return model.FinishOther
}
