package suite

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// FarKey is what the server far has to be told.
const FarKey = "far-secret"

// Far starts the server that the connection far of the workshop leads to, until the test ends, and returns its URL: the value of the
// variable FAR_MCP. The variable FAR_KEY is FarKey.
func Far(t *testing.T) string {
	t.Helper()
	var painted atomic.Int64
	s := mcp.NewServer(&mcp.Implementation{Name: "far"}, nil)
	type in struct {
		What string `json:"what"`
	}
	paint := func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		text := fmt.Sprintf("painted the %s, which is number %d", in.What, painted.Add(1))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	look := func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is red"}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "paint", Description: "Paints."}, paint)
	mcp.AddTool(s, &mcp.Tool{Name: "scratch", Description: "Does harm."}, paint)
	mcp.AddTool(s, &mcp.Tool{Name: "look", Description: "Looks."}, look)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+FarKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// connections: the tools of a server elsewhere are the agent's too.
func connections(t *testing.T, target Target) {
	ann := target.Ann(t)
	all := ann.Do("GET", "/v1/tools", "")
	if !strings.Contains(all.Raw, `"far__paint"`) || !strings.Contains(all.Raw, `"far__look"`) || strings.Contains(all.Raw, "scratch") || !strings.Contains(all.Raw, `"connectionErrors":[]`) {
		t.Fatalf("listed: %s", all.Raw)
	}
	if a := ann.Do("GET", "/v1/tools/far__paint", ""); a.Status != 200 || a.Text("effect") != "write" || !strings.Contains(a.Text("description"), "Paints.") {
		t.Errorf("shown: %d %s", a.Status, a.Raw)
	}
	if a := ann.Do("GET", "/v1/info", ""); !strings.Contains(a.Raw, `"name":"far","transport":"http","advertised":true`) || strings.Contains(a.Raw, FarKey) {
		t.Errorf("info: %s", a.Raw)
	}
	s := ann.Start("paint the door")
	if log := encode(s.Completed()); !strings.Contains(log, "painted the door, which is number ") || !strings.Contains(log, "it is red") {
		t.Errorf("the log: %s", log)
	}
	dry := ann.Start("paint the door", object{"dryRun": true})
	if log := encode(dry.Completed()); strings.Contains(log, "painted the door") || !strings.Contains(log, "it is red") {
		t.Errorf("the log of a dry run: %s", log)
	}
	if a := ann.call("far__look", object{"what": "door"}, "sessionId", s.ID); !strings.Contains(fmt.Sprint(a.called("far__look")), "it is red") {
		t.Errorf("called: %s", a.Raw)
	}
	if a := ann.call("far__scratch", object{"what": "door"}); a.Field("isError") != true {
		t.Errorf("a tool that is denied: %s", a.Raw)
	}
	if list, err := ann.dial("/v1/mcp/tools").ListTools(t.Context(), nil); err != nil || strings.Contains(encode(list), "far__") {
		t.Errorf("the agent's own tools: %v, %v", list, err)
	}
}
