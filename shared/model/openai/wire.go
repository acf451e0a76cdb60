package openai

import (
	"encoding/json"

	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/history"
)

// The request.
type (
	requestJSON struct {
		Model           string          `json:"model"`
		Messages        []messageJSON   `json:"messages"`
		Tools           []toolJSON      `json:"tools,omitempty"`
		MaxCompletion   int             `json:"max_completion_tokens,omitempty"`
		MaxTokens       int             `json:"max_tokens,omitempty"`
		ReasoningEffort string          `json:"reasoning_effort,omitempty"`
		Stream          bool            `json:"stream"`
		StreamOptions   map[string]bool `json:"stream_options"`
	}
	messageJSON struct {
		Role       string     `json:"role"`
		Content    *string    `json:"content,omitempty"`
		ToolCalls  []callJSON `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	callJSON struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function functionJSON `json:"function"`
	}
	functionJSON struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	toolJSON struct {
		Type     string          `json:"type"`
		Function declarationJSON `json:"function"`
	}
	declarationJSON struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// The answer, as far as it is read.
type (
	chunkJSON struct {
		Choices []choiceJSON    `json:"choices"`
		Usage   *usageJSON      `json:"usage"`
		Error   json.RawMessage `json:"error"`
	}
	choiceJSON struct {
		Index        int       `json:"index"`
		Delta        deltaJSON `json:"delta"`
		FinishReason string    `json:"finish_reason"`
	}
	deltaJSON struct {
		Content          exact           `json:"content"`
		Refusal          exact           `json:"refusal"`
		ReasoningContent exact           `json:"reasoning_content"` // the two names that
		Reasoning        exact           `json:"reasoning"`         // compatible servers use
		ToolCalls        []callDeltaJSON `json:"tool_calls"`
	}
	callDeltaJSON struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments exact  `json:"arguments"`
		} `json:"function"`
	}
	usageJSON struct {
		Prompt        int64 `json:"prompt_tokens"`
		Completion    int64 `json:"completion_tokens"`
		PromptDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
)

func (m *Model) request(req *model.Request) *requestJSON {
	r := &requestJSON{
		Model:           m.name,
		Stream:          true,
		StreamOptions:   map[string]bool{"include_usage": true},
		ReasoningEffort: m.effort,
	}
	if m.compatible {
		r.MaxTokens = req.MaxTokens
	} else {
		r.MaxCompletion = req.MaxTokens
	}
	if req.Instructions != "" {
		r.Messages = append(r.Messages, messageJSON{Role: "system", Content: &req.Instructions})
	}
	for _, t := range history.Turns(req.Messages, model.ProviderOpenAI+":"+m.name) {
		r.Messages = append(r.Messages, messages(t)...)
	}
	for _, t := range history.Tools(req) {
		r.Tools = append(r.Tools, toolJSON{Type: "function", Function: declarationJSON{
			Name: t.Name, Description: t.Description, Parameters: t.InputSchema,
		}})
	}
	return r
}

func messages(t history.Turn) []messageJSON {
	var out []messageJSON
	for _, r := range t.Results {
		if r.IsError {
			r.Output = "Error: " + r.Output // the protocol has no field for it
		}
		out = append(out, messageJSON{Role: "tool", ToolCallID: r.CallID, Content: &r.Output})
	}
	if t.Text == "" && len(t.Calls) == 0 {
		return out
	}
	m := messageJSON{Role: "user"}
	if t.Assistant {
		m.Role = "assistant"
	}
	if t.Text != "" {
		m.Content = &t.Text
	}
	for _, c := range t.Calls {
		f := functionJSON{Name: c.Name, Arguments: string(c.Args)}
		m.ToolCalls = append(m.ToolCalls, callJSON{ID: c.ID, Type: "function", Function: f})
	}
	return append(out, m)
}

func (u *usageJSON) usage() *model.Usage {
	return &model.Usage{
		InputTokens:     max(0, u.Prompt-u.PromptDetails.Cached),
		OutputTokens:    u.Completion,
		CacheReadTokens: u.PromptDetails.Cached,
		ReasoningTokens: u.CompletionDetails.Reasoning,
	}
}

func finish(reason string) model.FinishReason {
	switch reason {
	case "stop":
		return model.FinishStop
	case "tool_calls", "function_call":
		return model.FinishToolCalls
	case "length":
		return model.FinishLength
	case "content_filter":
		return model.FinishContentFilter
	}
	return model.FinishOther
}
