package mcphost

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/tool"
)

// serverTools returns the agent's own tools that can be called without a model, in name order.
func (e *Endpoint) serverTools() []bdk.NamedTool {
	return slices.DeleteFunc(slices.Clone(e.agent.Project().Tools), func(t bdk.NamedTool) bool { return t.Tool.Script() != "" })
}

func (e *Endpoint) toolNames() []string {
	var names []string
	for _, t := range e.serverTools() {
		names = append(names, t.Name)
	}
	return names
}

// toolServer returns the server of the agent as a set of tools.
func (e *Endpoint) toolServer() *mcp.Server {
	p := e.agent.Project()
	s := e.server(fmt.Sprintf("These are the tools of the agent %s. They run without it.", cmp.Or(p.Agent.Name, p.Slug)))
	for _, t := range e.serverTools() {
		s.AddTool(describe(t), func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, err := e.run(ctx, engine.ToolCall{Name: t.Name, Input: r.Params.Arguments})
			if err != nil {
				return e.fault(ctx, err), nil
			}
			return res, nil
		})
	}
	return s
}

// describe returns a tool as clients see it.
func describe(t bdk.NamedTool) *mcp.Tool {
	spec := t.Tool.Spec()
	d := &mcp.Tool{
		Name: t.Name, Title: spec.Title, Description: spec.Description, InputSchema: t.Tool.InputSchema(),
		Annotations: &mcp.ToolAnnotations{Title: spec.Title, ReadOnlyHint: spec.Effect == bdk.Read},
	}
	if len(spec.OutputSchema) > 0 {
		d.OutputSchema = spec.OutputSchema
	}
	return d
}

type callInput struct {
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
}

const callSchema = `{
  "type": "object",
  "properties": {
    "name": {"type": "string", "description": "the name of the tool"},
    "input": {"type": "object", "description": "what the tool takes"},
    "sessionId": {"type": "string", "description": "binds the call to a conversation, and to its files"}
  },
  "required": ["name"],
  "additionalProperties": false
}`

// callTool runs a tool by its name.
func (e *Endpoint) callTool(ctx context.Context, in callInput) (*mcp.CallToolResult, error) {
	if in.SessionID != "" {
		if _, err := e.session(ctx, in.SessionID); err != nil {
			return nil, err
		}
	}
	res, err := e.run(ctx, engine.ToolCall{Name: in.Name, Input: in.Input, SessionID: in.SessionID})
	if bdkerr.CodeOf(err) == bdkerr.UnknownTool {
		err = bdkerr.New(bdkerr.UnknownTool, "there is no tool %.80q: the tools are %v", in.Name, e.toolNames())
	}
	return res, err
}

// run runs a tool for the caller.
func (e *Endpoint) run(ctx context.Context, c engine.ToolCall) (*mcp.CallToolResult, error) {
	caller, _ := auth.FromContext(ctx)
	c.Caller = string(caller)
	out, err := e.agent.CallTool(ctx, c)
	if err != nil {
		return nil, err
	}
	res := resultOf(out.CallID, out.Result)
	res.IsError = res.IsError || out.IsError
	return res, nil
}

// resultOf returns an output as the result of a call: an envelope as its parts, an object as structured content too.
func resultOf(callID string, output json.RawMessage) *mcp.CallToolResult {
	parts, ok := tool.Parts(output)
	if !ok {
		res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: tool.Readable(output)}}}
		if len(output) > 0 && output[0] == '{' {
			res.StructuredContent = output
		}
		return res
	}
	res := &mcp.CallToolResult{IsError: parts.IsError, StructuredContent: parts.Structured, Content: []mcp.Content{}}
	for i, c := range parts.Content {
		res.Content = append(res.Content, contentOf(fmt.Sprintf("result://%s/%d", callID, i), c))
	}
	if len(res.Content) == 0 && parts.Structured != nil {
		res.Content = append(res.Content, &mcp.TextContent{Text: tool.Readable(output)})
	}
	return res
}

func contentOf(uri string, c bdk.Content) mcp.Content {
	switch {
	case c.Data == nil:
		return &mcp.TextContent{Text: c.Text}
	case strings.HasPrefix(c.MIMEType, "image/"):
		return &mcp.ImageContent{Data: c.Data, MIMEType: c.MIMEType}
	case strings.HasPrefix(c.MIMEType, "audio/"):
		return &mcp.AudioContent{Data: c.Data, MIMEType: c.MIMEType}
	}
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: c.MIMEType, Blob: c.Data}}
}
