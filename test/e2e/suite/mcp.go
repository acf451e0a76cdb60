package suite

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dial connects a client of the Model Context Protocol.
func (c *Client) dial(path string) *mcp.ClientSession {
	c.t.Helper()
	sign := *c.http
	sign.Transport = signed{c, c.http.Transport}
	client := mcp.NewClient(&mcp.Implementation{Name: "suite", Version: "1"}, nil)
	s, err := client.Connect(c.t.Context(), &mcp.StreamableClientTransport{Endpoint: c.base + path, HTTPClient: &sign}, nil)
	if err != nil {
		c.t.Fatalf("connecting to %s: %v", path, err)
	}
	c.t.Cleanup(func() { _ = s.Close() })
	return s
}

type signed struct {
	client *Client
	next   http.RoundTripper
}

func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if s.client.sign != nil {
		s.client.sign(r)
	}
	next := s.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(r)
}

// spoken is what ask and check return.
type spoken struct {
	Status    string  `json:"status"`
	SessionID string  `json:"sessionId"`
	Reply     *string `json:"reply"`
	Error     string  `json:"error"`
	Approvals []struct {
		CallID   string         `json:"callId"`
		ToolName string         `json:"toolName"`
		Input    map[string]any `json:"input"`
	} `json:"approvals"`
}

// use calls a tool of a server.
func use(t *testing.T, s *mcp.ClientSession, name string, args object) *mcp.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

// textOf returns the texts of a result, a line each.
func textOf(res *mcp.CallToolResult) string {
	var lines []string
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			lines = append(lines, text.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// say calls ask or check, which has to work.
func say(t *testing.T, s *mcp.ClientSession, name string, args object) (st spoken) {
	t.Helper()
	res := use(t, s, name, args)
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil || json.Unmarshal(raw, &st) != nil || st.Status == "" {
		t.Fatalf("%s %v: %s", name, args, textOf(res))
	}
	if ended := st.Status == "failed" || st.Status == "cancelled"; res.IsError != ended {
		t.Errorf("%s %v: isError is %v, the status %s", name, args, res.IsError, st.Status)
	}
	return st
}

// refusedWith checks that a call was refused, for a reason.
func refusedWith(t *testing.T, res *mcp.CallToolResult, code string) {
	t.Helper()
	if !res.IsError || !strings.HasPrefix(textOf(res), code+": ") {
		t.Errorf("got %v %.300s; want a refusal with %s", res.IsError, textOf(res), code)
	}
}

// mcpChat: a client talks to the agent.
func mcpChat(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.dial("/v1/mcp")
	first := say(t, s, "ask", object{"message": "hello"})
	if first.Status != "completed" || first.Reply == nil || *first.Reply == "" || !strings.HasPrefix(first.SessionID, "ses_") {
		t.Fatalf("the first answer: %+v", first)
	}
	next := say(t, s, "ask", object{"message": "tool please", "sessionId": first.SessionID, "timeoutSeconds": 20})
	if next.Status != "completed" || next.SessionID != first.SessionID {
		t.Errorf("the next answer: %+v", next)
	}
	if again := say(t, s, "check", object{"sessionId": first.SessionID}); again.Reply == nil || *again.Reply != *next.Reply {
		t.Errorf("checked: %+v; want %s", again, *next.Reply)
	}
	if a := ann.Do("GET", "/v1/session/"+first.SessionID+"/events?format=json", ""); !strings.Contains(a.Raw, `"channelId":"mcp"`) {
		t.Errorf("the session is not the caller's, or not of the channel mcp: %d %.300s", a.Status, a.Raw)
	}
	nap := say(t, s, "ask", object{"message": "nap", "timeoutSeconds": 0})
	if nap.Status != "running" {
		t.Errorf("a turn that takes its time: %+v", nap)
	}
	refusedWith(t, use(t, s, "ask", object{"message": "hello", "sessionId": nap.SessionID, "timeoutSeconds": 0}), "session_busy")
	if woke := say(t, s, "check", object{"sessionId": nap.SessionID, "timeoutSeconds": 20}); woke.Status != "completed" {
		t.Errorf("afterwards: %+v", woke)
	}
	refusedWith(t, use(t, s, "check", object{"sessionId": "ses_nobody"}), "session_not_found")
	refusedWith(t, use(t, s, "check", object{"sessionId": "../x"}), "session_not_found")
	refusedWith(t, use(t, s, "ask", object{"message": " "}), "invalid_request")
	refusedWith(t, use(t, s, "ask", object{"massage": "hello"}), "invalid_request")
	refusedWith(t, use(t, s, "ask", object{"message": "hello", "timeoutSeconds": -1}), "invalid_request")
	if target.Sign != nil {
		bob := target.client(t, "bob").dial("/v1/mcp")
		refusedWith(t, use(t, bob, "check", object{"sessionId": first.SessionID}), "forbidden")
		refusedWith(t, use(t, bob, "ask", object{"message": "mine", "sessionId": first.SessionID}), "forbidden")
		refusedWith(t, use(t, bob, "call_tool", object{"name": "inspect", "input": object{"path": "x"}, "sessionId": first.SessionID}), "forbidden")
	}
}

// mcpApprovals: a client is told what people have to decide about.
func mcpApprovals(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.dial("/v1/mcp")
	st := say(t, s, "ask", object{"message": "promote it", "timeoutSeconds": 20})
	if st.Status != "awaiting_approval" || len(st.Approvals) != 1 || st.Approvals[0].ToolName != "promote" || st.Approvals[0].Input["build"] != "7f3" {
		t.Fatalf("asked: %+v", st)
	}
	if again := say(t, s, "check", object{"sessionId": st.SessionID, "timeoutSeconds": 20}); again.Status != "awaiting_approval" {
		t.Errorf("checked: %+v", again)
	}
	if a := ann.post("/v1/session/"+st.SessionID+"/approvals/"+st.Approvals[0].CallID, object{"decision": "approve"}); a.Status != 200 {
		t.Fatalf("approving: %d %s", a.Status, a.Raw)
	}
	if end := say(t, s, "check", object{"sessionId": st.SessionID, "timeoutSeconds": 20}); end.Status != "completed" {
		t.Errorf("in the end: %+v", end)
	}
}

// mcpTools: a client calls the agent's tools, without the agent.
func mcpTools(t *testing.T, target Target) {
	s := target.Ann(t).dial("/v1/mcp/tools")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	hints := map[string]bool{}
	for _, tool := range list.Tools {
		hints[tool.Name] = tool.Annotations.ReadOnlyHint
	}
	if read, ok := hints["add"]; !ok || !read {
		t.Errorf("add is listed: %v, as a read: %v", ok, read)
	}
	if read, ok := hints["note"]; !ok || read {
		t.Errorf("note is listed: %v, as a read: %v", ok, read)
	}
	for _, name := range []string{"shout", "read", "ask"} {
		if _, ok := hints[name]; ok {
			t.Errorf("%s is listed", name)
		}
	}
	if res := use(t, s, "add", object{"a": 2, "b": 3}); res.IsError || textOf(res) != "5" {
		t.Errorf("2 + 3 = %s", textOf(res))
	}
	got := use(t, s, "inspect", object{"path": "docs/house-rules.md"})
	if fields, ok := got.StructuredContent.(object); !ok || fields["text"] != "Wipe your feet." {
		t.Errorf("an object: %v", got.StructuredContent)
	}
	if res := use(t, s, "fail", object{}); !res.IsError || !strings.Contains(textOf(res), "out of paint") {
		t.Errorf("a tool that fails: %v %s", res.IsError, textOf(res))
	}
	refusedWith(t, use(t, s, "add", object{"a": "2", "b": 3}), "invalid_tool_input")
	if target.Sign != nil {
		refusedWith(t, use(t, s, "release", object{"build": "z"}), "forbidden")
	}
	var fault *jsonrpc.Error
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "shout"}); !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a tool that is not there: %v", err)
	}
	chat := target.Ann(t).dial("/v1/mcp")
	if res := use(t, chat, "call_tool", object{"name": "add", "input": object{"a": 1, "b": 1}}); res.IsError || textOf(res) != "2" {
		t.Errorf("through call_tool, 1 + 1 = %s", textOf(res))
	}
	refusedWith(t, use(t, chat, "call_tool", object{"name": "shout"}), "tool_not_callable")
	if res := use(t, chat, "call_tool", object{"name": "ad"}); !strings.Contains(textOf(res), "add") {
		t.Errorf("an unknown tool: %s", textOf(res))
	}
}

// mcpMessages: what is no message, or comes the wrong way, is answered as JSON-RPC has it.
func mcpMessages(t *testing.T, target Target) {
	ann := target.Ann(t)
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	code := func(a Answer) float64 {
		t.Helper()
		fault, _ := a.Field("error").(object)
		number, _ := fault["code"].(float64)
		if message, _ := fault["message"].(string); message == "" || a.Field("jsonrpc") != "2.0" {
			t.Errorf("no fault of JSON-RPC: %d %s", a.Status, a.Raw)
		}
		return number
	}
	for _, path := range []string{"/v1/mcp", "/v1/mcp/tools"} {
		if a := ann.Do("POST", path, ping); a.Status != 200 || a.Field("id") != 7.0 || a.Field("result") == nil {
			t.Errorf("%s: a ping: %d %s", path, a.Status, a.Raw)
		}
		for _, method := range []string{"GET", "DELETE", "PUT"} {
			if a := ann.Do(method, path, ""); a.Status != 405 || a.Header.Get("Allow") != "POST" || code(a) == 0 {
				t.Errorf("%s %s: %d, Allow %q", method, path, a.Status, a.Header.Get("Allow"))
			}
		}
		for what, body := range map[string]string{"no JSON": `{"jsonrpc":`, "no message": `{"a":1}`, "no object": `7`} {
			if a := ann.Do("POST", path, body); a.Status != 400 || code(a) != map[bool]float64{true: -32700, false: -32600}[what == "no JSON"] {
				t.Errorf("%s: %s: %d %s", path, what, a.Status, a.Raw)
			}
		}
		if a := ann.Do("POST", path, ping, "Content-Type", "text/plain"); a.Status != 400 || code(a) == 0 {
			t.Errorf("%s: a text: %d %s", path, a.Status, a.Raw)
		}
		if a := ann.Do("POST", path, ping, "MCP-Protocol-Version", "2001-01-01"); a.Status != 400 || code(a) == 0 {
			t.Errorf("%s: an unknown version: %d %s", path, a.Status, a.Raw)
		}
		if a := ann.Do("POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.Status != 202 || a.Raw != "" {
			t.Errorf("%s: a notification: %d %q", path, a.Status, a.Raw)
		}
		if a := ann.Do("POST", path, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`); code(a) != -32601 {
			t.Errorf("%s: an unknown method: %d %s", path, a.Status, a.Raw)
		}
		if a := ann.Do("POST", path, ping, "Origin", "https://evil.example"); a.Status != 403 && a.Status != 401 || code(a) == 0 {
			t.Errorf("%s: a foreign page: %d %s", path, a.Status, a.Raw)
		}
		versions := []string{"2025-03-26", "2025-06-18", "2025-11-25"}
		for _, v := range append(slices.Clone(versions), "1999-01-01") {
			a := ann.post(path, object{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": object{
				"protocolVersion": v, "capabilities": object{}, "clientInfo": object{"name": "suite", "version": "1"},
			}})
			result, _ := a.Field("result").(object)
			if got, _ := result["protocolVersion"].(string); got != v && slices.Contains(versions, v) || got == "" || got == "1999-01-01" {
				t.Errorf("%s: asked for version %s, got %q: %s", path, v, got, a.Raw)
			}
		}
	}
	if target.Sign != nil {
		if a := target.client(t, "").Do("POST", "/v1/mcp", ping); a.Status != 401 || code(a) == 0 {
			t.Errorf("nobody: %d %s", a.Status, a.Raw)
		}
	}
}
