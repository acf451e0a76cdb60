package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// service is the connections as the code of a session has them.
type service struct {
	set  *Set
	info bdk.SessionInfo
}

var _ bdk.MCP = (*service)(nil)

// Tools implements [bdk.MCP].
func (s *service) Tools(ctx context.Context, connection string) ([]bdk.MCPTool, error) {
	tools, _, err := s.list(ctx, connection)
	return tools, err
}

func (s *service) list(ctx context.Context, connection string) ([]bdk.MCPTool, *link, error) {
	v := s.set.all[connection]
	if v == nil {
		return nil, nil, fmt.Errorf("connection %.80q: %w", connection, bdk.ErrNotFound)
	}
	l, err := v.link(ctx, s.info)
	if err != nil {
		return nil, nil, err
	}
	all, err := l.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	tools := make([]bdk.MCPTool, len(all))
	for i, m := range all {
		tools[i] = m.MCPTool
	}
	return tools, l, nil
}

// Call implements [bdk.MCP].
func (s *service) Call(ctx context.Context, connection, tool string, args any) (bdk.Output, error) {
	raw := json.RawMessage(`{}`)
	if args != nil {
		var err error
		if raw, err = json.Marshal(args); err != nil {
			return bdk.Output{}, fmt.Errorf("encoding the arguments: %w", err)
		}
		if len(raw) == 0 || raw[0] != '{' {
			return bdk.Output{}, errors.New("the arguments of a tool are a struct or a map")
		}
	}
	tools, l, err := s.list(ctx, connection)
	if err != nil {
		return bdk.Output{}, fmt.Errorf("the call was not made: %w", err)
	}
	i := slices.IndexFunc(tools, func(t bdk.MCPTool) bool { return t.Name == tool })
	switch {
	case i < 0:
		return bdk.Output{}, fmt.Errorf("tool %.80q of the connection %s: %w", tool, connection, bdk.ErrNotFound)
	case s.info.DryRun && !tools[i].Reads:
		return bdk.Output{}, bdk.ErrDryRun
	}
	return l.call(ctx, tool, raw, tools[i].Reads)
}

// outputOf returns the result of a call as that of a tool of ours.
func outputOf(res *mcp.CallToolResult) bdk.Output {
	out := bdk.Output{IsError: res.IsError, Structured: res.StructuredContent}
	for _, c := range res.Content {
		out.Content = append(out.Content, contentOf(c))
	}
	return out
}

func contentOf(c mcp.Content) bdk.Content {
	switch c := c.(type) {
	case *mcp.TextContent:
		return bdk.Content{Text: c.Text}
	case *mcp.ImageContent:
		return data(c.Data, c.MIMEType)
	case *mcp.AudioContent:
		return data(c.Data, c.MIMEType)
	case *mcp.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return bdk.Content{}
		case len(c.Resource.Blob) > 0:
			return data(c.Resource.Blob, c.Resource.MIMEType)
		}
		return bdk.Content{Text: c.Resource.Text}
	case *mcp.ResourceLink:
		return bdk.Content{Text: fmt.Sprintf("[a resource of the server: %s %s]", c.Name, c.URI)}
	}
	return bdk.Content{Text: fmt.Sprintf("[a part of another kind: %T]", c)}
}

func data(b []byte, mimeType string) bdk.Content {
	if mimeType == "" {
		mimeType = "application/octet-stream"
	}
	return bdk.Content{Data: append([]byte{}, b...), MIMEType: mimeType}
}
