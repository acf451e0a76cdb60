package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// remote is a server of ours that counts the calls of its tool.
type remote struct {
	*httptest.Server

	ran  atomic.Int64
	down atomic.Bool
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{}
	s := mcp.NewServer(&mcp.Implementation{Name: "remote"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "paint", Description: "Paints."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		r.ran.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "painted"}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

const paints = `rules:
  - when: {message: paint}
    calls: [{tool: far__paint}]
  - text: done
`

// TestTurnWithoutItsServer: the turn goes on, the model reads why, and it is shown.
func TestTurnWithoutItsServer(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.down.Store(true)
	url := serve(t, connected("far", bdk.Connection{URL: r.URL}), paints)
	if log := converse(t, url, "hello"); !strings.Contains(log, "done") {
		t.Errorf("a turn: %s", log)
	}
	for _, route := range []string{"/v1/tools", "/v1/info"} {
		if faults := fmt.Sprint(get(t, url+route)["connectionErrors"]); !strings.Contains(faults, "name:far") || !strings.Contains(faults, "Service Unavailable") {
			t.Errorf("%s: %s", route, faults)
		}
	}
	if log := converse(t, url, "paint it"); !strings.Contains(log, "the call was not made") || r.ran.Load() != 0 {
		t.Errorf("a call: %s", log)
	}
}

// TestDryRun: a session that is a dry run does not call what may change something.
func TestDryRun(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	url := serve(t, connected("far", bdk.Connection{URL: r.URL}), paints)
	started := post(t, url+"/v1/session", map[string]any{"message": "paint it", "dryRun": true})
	id, _ := started["sessionId"].(string)
	post(t, url+"/v1/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "check", "arguments": map[string]any{"sessionId": id, "timeoutSeconds": 20},
	}})
	log := fmt.Sprint(get(t, url+"/v1/session/"+id+"/events?format=json"))
	if !strings.Contains(log, "stubbed:true") || !strings.Contains(log, "turn.completed") || r.ran.Load() != 0 {
		t.Errorf("%d calls: %s", r.ran.Load(), log)
	}
}

// TestApproval: a call waits for a person, and is made once it is approved.
func TestApproval(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	url := serve(t, connected("far", bdk.Connection{URL: r.URL, NeedsApproval: bdk.Always}), paints)
	say := func(name string, args map[string]any) map[string]any {
		answer := post(t, url+"/v1/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
		result, _ := answer["result"].(map[string]any)
		state, _ := result["structuredContent"].(map[string]any)
		return state
	}
	state := say("ask", map[string]any{"message": "paint it"})
	waiting, _ := state["approvals"].([]any)
	if len(waiting) != 1 || r.ran.Load() != 0 {
		t.Fatalf("%d calls: %v", r.ran.Load(), state)
	}
	one, _ := waiting[0].(map[string]any)
	post(t, fmt.Sprintf("%s/v1/session/%v/approvals/%v", url, state["sessionId"], one["callId"]), map[string]any{"decision": "approve"})
	if end := say("check", map[string]any{"sessionId": state["sessionId"], "timeoutSeconds": 20}); end["status"] != "completed" || r.ran.Load() != 1 {
		t.Errorf("%d calls: %v", r.ran.Load(), end)
	}
}

// TestHostConnections: what is for code only is shown to nobody, and code has it.
func TestHostConnections(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	p := connected("far", bdk.Connection{URL: r.URL})
	p.HostConnections, p.Connections = p.Connections, nil
	p.Tools = []bdk.NamedTool{{Name: "brush", Source: "bot/tools/brush.go", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Paints."},
		func(ctx context.Context, call *bdk.Call, _ struct{}) (bdk.Output, error) {
			return call.MCP.Call(ctx, "far", "paint", nil)
		})}}
	url := serve(t, p, hello)
	if all := listed(t, url); strings.Contains(all, "paint") {
		t.Errorf("listed: %s", all)
	}
	if info := fmt.Sprint(get(t, url+"/v1/info")["connections"]); info != "[]" {
		t.Errorf("info: %s", info)
	}
	if got, isError := call(t, url, "brush", map[string]any{}); isError || !strings.Contains(got, "painted") || r.ran.Load() != 1 {
		t.Errorf("code: %s", got)
	}
}

// TestPeers: agents of a host talk with each other, as the owner of the session that they talk for.
func TestPeers(t *testing.T) {
	t.Parallel()
	script := `rules:
  - when: {message: "^have the other"}
    calls: [{tool: other__ask, args: {message: "paint the door"}}]
  - when: {message: "^paint"}
    text: the door is painted
  - text: done
`
	p := bdk.Project{Slug: "first", Instructions: "Delegate.", Connections: []bdk.NamedConnection{
		{Name: "other", Source: "bot/mcp-connections/other.go", Connection: bdk.Connection{Agent: "second", Description: "It paints."}},
	}}
	url := serve(t, p, script, bdk.Project{Slug: "second", Instructions: "Paint."})
	if all := listed(t, url); !strings.Contains(all, "other__ask") || !strings.Contains(all, "other__check") || strings.Contains(all, "call_tool") {
		t.Errorf("listed: %s", all)
	}
	if log := converse(t, url, "have the other one paint"); !strings.Contains(log, "the door is painted") {
		t.Errorf("the log: %s", log)
	}
	theirs := get(t, strings.TrimSuffix(url, "first")+"second/v1/sessions")
	sessions, _ := theirs["sessions"].([]any)
	if len(sessions) != 1 || !strings.Contains(fmt.Sprint(sessions), "owner:local") {
		t.Errorf("the other's sessions: %v", theirs)
	}
}
