package bedrock

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	smithydocument "github.com/aws/smithy-go/document"

	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/history"
)

// redacted marks, in the signature of a reasoning block, one that the provider sent encrypted; base64 follows.
const redacted = "redacted:"

func (m *Model) request(req *model.Request) (*bedrockruntime.ConverseStreamInput, error) {
	turns := history.Turns(req.Messages, model.ProviderBedrock+":"+m.id)
	limit := req.MaxTokens
	if limit == 0 {
		limit = DefaultMaxTokens
	}
	in := &bedrockruntime.ConverseStreamInput{ModelId: aws.String(m.id)}
	if m.thinking > 0 {
		limit = max(limit, m.thinking+minAnswer)
		in.AdditionalModelRequestFields = document.NewLazyDocument(map[string]any{
			"thinking": map[string]any{"type": "enabled", "budget_tokens": m.thinking},
		})
	}
	in.InferenceConfig = &types.InferenceConfiguration{MaxTokens: aws.Int32(int32(min(limit, 1<<31-1)))}
	if req.Instructions != "" {
		in.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: req.Instructions}}
	}
	if req.SessionID != "" {
		in.RequestMetadata = map[string]string{"session": history.Name(req.SessionID)}
	}
	for _, t := range turns {
		msg, err := message(t)
		if err != nil {
			return nil, err
		}
		in.Messages = append(in.Messages, msg)
	}
	tools, err := toolConfig(history.ToolsOrStub(req, turns))
	if err != nil {
		return nil, err
	}
	in.ToolConfig = tools
	if m.cache {
		markCache(in)
	}
	return in, nil
}

// markCache asks the provider to keep what is equal in the next request: tools and instructions, and the conversation so far.
func markCache(in *bedrockruntime.ConverseStreamInput) {
	point := types.CachePointBlock{Type: types.CachePointTypeDefault}
	if len(in.System) > 0 {
		in.System = append(in.System, &types.SystemContentBlockMemberCachePoint{Value: point})
	}
	if n := len(in.Messages); n > 0 {
		in.Messages[n-1].Content = append(in.Messages[n-1].Content, &types.ContentBlockMemberCachePoint{Value: point})
	}
}

func toolConfig(tools []model.Tool) (*types.ToolConfiguration, error) {
	if len(tools) == 0 {
		return nil, nil //nolint:nilnil // a request without tools has no tool configuration
	}
	c := &types.ToolConfiguration{}
	for _, t := range tools {
		schema, err := toDocument(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("reading the input schema of tool %q: %w", t.Name, err)
		}
		spec := types.ToolSpecification{
			Name: aws.String(t.Name), InputSchema: &types.ToolInputSchemaMemberJson{Value: schema},
		}
		if t.Description != "" { // an empty one is refused
			spec.Description = aws.String(t.Description)
		}
		c.Tools = append(c.Tools, &types.ToolMemberToolSpec{Value: spec})
	}
	return c, nil
}

func message(t history.Turn) (types.Message, error) {
	m := types.Message{Role: types.ConversationRoleUser}
	if t.Assistant {
		m.Role = types.ConversationRoleAssistant
	}
	for _, r := range t.Results {
		m.Content = append(m.Content, result(r))
	}
	for _, r := range t.Reasoning {
		block, err := reasoning(r)
		if err != nil {
			return m, err
		}
		m.Content = append(m.Content, &types.ContentBlockMemberReasoningContent{Value: block})
	}
	if t.Text != "" {
		m.Content = append(m.Content, &types.ContentBlockMemberText{Value: t.Text})
	}
	for _, c := range t.Calls {
		input, err := toDocument(c.Args)
		if err != nil {
			return m, fmt.Errorf("reading the arguments of call %s: %w", c.ID, err)
		}
		m.Content = append(m.Content, &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
			ToolUseId: aws.String(c.ID), Name: aws.String(c.Name), Input: input,
		}})
	}
	return m, nil
}

func result(r model.Result) types.ContentBlock {
	block := types.ToolResultBlock{
		ToolUseId: aws.String(r.CallID),
		Content:   []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: r.Output}},
	}
	if r.IsError {
		block.Status = types.ToolResultStatusError
	}
	return &types.ContentBlockMemberToolResult{Value: block}
}

func reasoning(r model.Reasoning) (types.ReasoningContentBlock, error) {
	data, ok := strings.CutPrefix(r.Signature, redacted)
	if !ok {
		return &types.ReasoningContentBlockMemberReasoningText{Value: types.ReasoningTextBlock{
			Text: aws.String(r.Text), Signature: aws.String(r.Signature),
		}}, nil
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, fmt.Errorf("reading a redacted reasoning block: %w", err)
	}
	return &types.ReasoningContentBlockMemberRedactedContent{Value: b}, nil
}

// toDocument turns JSON into a document that the SDK writes with the same numbers: it would write a json.Number as a string,
// and json.RawMessage as a list of bytes.
func toDocument(raw json.RawMessage) (document.Interface, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if v == nil {
		v = map[string]any{} // a nil map would be written as null
	}
	return document.NewLazyDocument(numbers(v)), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return smithydocument.Number(v)
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	}
	return v
}
