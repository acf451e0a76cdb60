package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
)

type lookInput struct {
	PRURL string `json:"prUrl"`
}

// workshop returns an agent with a tool of each kind.
func workshop() *fakeAgent {
	agent := newAgent("demo")
	echo := func(_ context.Context, _ *bdk.Call, in json.RawMessage) (json.RawMessage, error) { return in, nil }
	agent.project.Tools = []bdk.NamedTool{
		{Name: "echo", Tool: bdk.DefineTool(bdk.ToolSpec{
			Description: "Echo.", Effect: bdk.EffectOf(func(struct{}) bdk.EffectKind { return bdk.Read }),
			NeedsApproval: bdk.ApproveWhen(func(struct{}) bool { return true }), Approvers: []string{bdk.SessionOwner, "bearer:ops"},
		}, echo)},
		{Name: "look", Source: "bot/tools/look.go", Tool: bdk.DefineTool(bdk.ToolSpec{
			Description: "Look.", Title: "Looks", Effect: bdk.Read, TimeArgs: []string{"prUrl"}, OutputSchema: json.RawMessage(`{"type":"object"}`),
		}, func(_ context.Context, _ *bdk.Call, in lookInput) (string, error) {
			if in.PRURL == "gone" {
				return "", errors.New("there is no such pull request")
			}
			return "seen " + in.PRURL, nil
		})},
		{Name: "put", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Put.", NeedsApproval: bdk.Always}, echo)},
		{Name: "sh", Source: "bot/tools/sh.go", Tool: bdk.DefineScript[lookInput](bdk.ToolSpec{Description: "Run."}, "#!/bin/sh\n")},
	}
	return agent
}

func TestToolsAreListed(t *testing.T) {
	t.Parallel()
	agent := workshop()
	acc, _ := agent.begin(t, "ann", session.Chat)
	c := newClient(t, httpapi.Options{}, agent)
	want := `{"ok":true,"tools":[{"name":"echo"},{"name":"look","title":"Looks","source":"bot/tools/look.go"},{"name":"put"}],"connectionErrors":[]}` + "\n"
	for _, query := range []string{"", "?session=" + acc.SessionID, "?continuationToken=review:pr-42", "?continuationToken=" + acc.Token} {
		if diff := cmp.Diff(want, c.do("GET", "/demo/v1/tools"+query, "").raw); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for query, code := range map[string]string{
		"session=" + acc.SessionID + "&continuationToken=a:b": "invalid_continuation_token", "continuationToken=": "invalid_continuation_token",
		"continuationToken=abc": "invalid_continuation_token", "continuationToken=:b": "invalid_continuation_token", "continuationToken=a:": "invalid_continuation_token",
		"sessionId=x": "invalid_request", "session=" + acc.SessionID + "&session=x": "invalid_request",
	} {
		refused(t, c.do("GET", "/demo/v1/tools?"+query, ""), 400, code)
	}
	refused(t, c.do("GET", "/demo/v1/tools?session=ses_unknown", ""), 404, "session_not_found")
	refused(t, c.do("GET", "/demo/v1/tools?session=", ""), 404, "session_not_found")
	refused(t, c.do("GET", "/demo/v1/tools?session="+acc.SessionID, "", "X-Caller", "bob"), 403, "forbidden")
	if a := newClient(t, httpapi.Options{}, newAgent("demo")).do("GET", "/demo/v1/tools", ""); a.raw != `{"ok":true,"tools":[],"connectionErrors":[]}`+"\n" {
		t.Errorf("without tools: got %s", a.raw)
	}
}

func TestOneToolIsDescribed(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{}, workshop())
	for name, want := range map[string]string{
		"look": `{"ok":true,"name":"look","title":"Looks","description":"Look.","execution":"server","approval":"never","effect":"read","timeArgs":["prUrl"],"source":"bot/tools/look.go",` +
			`"inputSchema":INPUT,"outputSchema":{"type":"object"}}`,
		"echo": `{"ok":true,"name":"echo","description":"Echo.","execution":"server","approval":"conditional","approvers":["owner","bearer:ops"],"effect":"conditional","timeArgs":[],` +
			`"inputSchema":{"type":"object"}}`,
		"put": `{"ok":true,"name":"put","description":"Put.","execution":"server","approval":"always","approvers":["owner"],"effect":"write","timeArgs":[],"inputSchema":{"type":"object"}}`,
		"sh":  `{"ok":true,"name":"sh","description":"Run.","execution":"agent","approval":"never","effect":"write","timeArgs":[],"source":"bot/tools/sh.go","inputSchema":INPUT}`,
	} {
		a := c.do("GET", "/demo/v1/tools/"+name, "")
		input, err := json.Marshal(a.body["inputSchema"])
		if schema, _ := a.body["inputSchema"].(map[string]any); err != nil || schema["type"] != "object" {
			t.Errorf("%s has the input schema %s", name, input)
		}
		var got, wanted any
		if err := errors.Join(json.Unmarshal([]byte(a.raw), &got), json.Unmarshal([]byte(strings.Replace(want, "INPUT", string(input), 1)), &wanted)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"lok", "Look", "look%20", "%00", "look%2Fx"} {
		a := c.do("GET", "/demo/v1/tools/"+name, "")
		refused(t, a, 404, "unknown_tool")
		if diff := cmp.Diff([]any{"echo", "look", "put", "sh"}, a.body["available"]); diff != "" {
			t.Errorf("%s: available (-want +got):\n%s", name, diff)
		}
	}
	a := newClient(t, httpapi.Options{}, newAgent("demo")).do("GET", "/demo/v1/tools/x", "")
	if refused(t, a, 404, "unknown_tool"); !strings.Contains(a.raw, `"available":[]`) {
		t.Errorf("without tools: got %s", a.raw)
	}
	if a := c.do("GET", "/demo/v1/session/ses_x/events", ""); strings.Contains(a.raw, "available") {
		t.Errorf("another error: got %s", a.raw)
	}
}

// bindings are sessions to bind calls to: one that waits, one that is busy, one for dry runs, one of bob.
func bindings(t *testing.T, agent *fakeAgent) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for name, in := range map[string]session.Start{"idle": {Owner: "ann"}, "busy": {Owner: "ann"}, "dry": {Owner: "ann", DryRun: true}, "bob's": {Owner: "bob"}} {
		in.Agent, in.Message = "demo", name
		acc, err := agent.store.Start(t.Context(), in)
		if err == nil && name != "busy" {
			_, err = agent.store.Stop(t.Context(), acc.SessionID, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = acc.SessionID
	}
	return ids
}

// TestRulesOfBinding: every row of the table of rules, as far as HTTP shows it.
func TestRulesOfBinding(t *testing.T) {
	t.Parallel()
	const input = `"input":{"prUrl":"u"}`
	for name, tc := range map[string]struct {
		tool, body, want string // SES stands for the session
		session          string
		noFiles          bool
	}{
		"unbound":                      {tool: "look", body: `{INPUT}`, want: `"result":"seen u","durationMs":12`},
		"a session":                    {tool: "put", body: `{INPUT,"sessionId":"SES"}`, session: "idle", want: `"result":{"prUrl":"u"},"durationMs":12,"sessionId":"SES"`},
		"a token with a session":       {tool: "look", body: `{INPUT,"continuationToken":"` + boundToken + `"}`, want: `"result":"seen u","durationMs":12,"sessionId":"SES"`},
		"a token without a session":    {tool: "look", body: `{INPUT,"continuationToken":"review:none"}`, want: `"result":"seen u","durationMs":12,"scratchWorkspace":true`},
		"a read of a busy session":     {tool: "look", body: `{INPUT,"sessionId":"SES"}`, session: "busy", want: `"result":"seen u","durationMs":12,"sessionId":"SES"`},
		"a read without files":         {tool: "look", body: `{INPUT,"sessionId":"SES"}`, session: "idle", noFiles: true, want: `"result":"seen u","durationMs":12,"sessionId":"SES","scratchWorkspace":true`},
		"a write in a dry-run session": {tool: "put", body: `{INPUT,"sessionId":"SES"}`, session: "dry", want: `"result":"Operation acknowledged.","durationMs":12,"stubbed":true,"sessionId":"SES"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := workshop()
			ids := map[string]string{}
			if tc.session == "" {
				acc, _ := agent.begin(t, "ann", session.Chat)
				ids[""] = acc.SessionID
			} else {
				ids = bindings(t, agent)
			}
			agent.noFiles = tc.noFiles
			fill := strings.NewReplacer("INPUT", input, "SES", ids[tc.session]).Replace
			a := newClient(t, httpapi.Options{}, agent).do("POST", "/demo/v1/tools/"+tc.tool, fill(tc.body))
			want := fmt.Sprintf(`{"ok":true,"toolName":%q,"callId":"tool_%s_1","isError":false,%s}`, tc.tool, tc.tool, fill(tc.want)) + "\n"
			if diff := cmp.Diff(want, a.raw); a.status != 200 || diff != "" {
				t.Errorf("got %d (-want +got):\n%s", a.status, diff)
			}
		})
	}
}

// TestErrorsOfCalls: every row of the table of errors.
func TestErrorsOfCalls(t *testing.T) {
	t.Parallel()
	agent := workshop()
	ids := bindings(t, agent)
	c := newClient(t, httpapi.Options{}, agent)
	for name, tc := range map[string]struct {
		tool, body string
		status     int
		code       string
		noFiles    bool
	}{
		"an unknown tool":             {tool: "lok", status: 404, code: "unknown_tool"},
		"an unknown tool, bad input":  {tool: "lok", body: `{"input":[]}`, status: 404, code: "unknown_tool"},
		"a script":                    {tool: "sh", body: `{"input":{"prUrl":"u"}}`, status: 400, code: "tool_not_callable"},
		"input that does not match":   {tool: "look", body: `{"input":{"prUrl":7}}`, status: 400, code: "invalid_tool_input"},
		"no input where it is needed": {tool: "look", status: 400, code: "invalid_tool_input"},
		"input that is no object":     {tool: "look", body: `{"input":["u"]}`, status: 400, code: "invalid_tool_input"},
		"input of null":               {tool: "echo", body: `{"input":null}`, status: 400, code: "invalid_tool_input"},
		"a malformed token":           {tool: "echo", body: `{"continuationToken":"abc"}`, status: 400, code: "invalid_continuation_token"},
		"an empty token":              {tool: "echo", body: `{"continuationToken":""}`, status: 400, code: "invalid_continuation_token"},
		"a token and a session":       {tool: "echo", body: `{"continuationToken":"a:b","sessionId":"IDLE"}`, status: 400, code: "invalid_continuation_token"},
		"an unknown session":          {tool: "echo", body: `{"sessionId":"ses_unknown"}`, status: 404, code: "session_not_found"},
		"a session of somebody else":  {tool: "echo", body: `{"sessionId":"BOBS"}`, status: 403, code: "forbidden"},
		"a write of a busy session":   {tool: "put", body: `{"sessionId":"BUSY"}`, status: 409, code: "session_busy"},
		"an unknown field":            {tool: "echo", body: `{"args":{}}`, status: 400, code: "invalid_request"},
		"a blank session":             {tool: "echo", body: `{"sessionId":""}`, status: 400, code: "invalid_request"},
		"a session of null":           {tool: "echo", body: `{"sessionId":null}`, status: 400, code: "invalid_request"},
		"a duplicate in the input":    {tool: "echo", body: `{"input":{"a":1,"a":2}}`, status: 400, code: "invalid_request"},
		"an array":                    {tool: "echo", body: `[]`, status: 400, code: "invalid_request"},
	} {
		fill := strings.NewReplacer("IDLE", ids["idle"], "BUSY", ids["busy"], "BOBS", ids["bob's"]).Replace
		a := c.do("POST", "/demo/v1/tools/"+tc.tool, fill(tc.body))
		if a.status != tc.status || a.text("error") != tc.code || a.text("message") == "" {
			t.Errorf("%s: got %d %s; want %d %s", name, a.status, a.raw, tc.status, tc.code)
		}
		var want any
		if tc.code == "unknown_tool" {
			want = []any{"echo", "look", "put"}
		}
		if diff := cmp.Diff(want, a.body["available"]); diff != "" {
			t.Errorf("%s: available (-want +got):\n%s", name, diff)
		}
	}
	refused(t, c.do("POST", "/demo/v1/tools/echo?x=1", "{}"), 400, "invalid_request")
	a := c.do("POST", "/demo/v1/tools/look", `{"input":{"prUrl":"gone"}}`)
	if want := `{"ok":true,"toolName":"look","callId":"tool_look_1","isError":true,"result":"there is no such pull request","durationMs":12}` + "\n"; a.status != 200 || a.raw != want {
		t.Errorf("a tool that fails: got %d %s", a.status, a.raw)
	}
	agent.noFiles = true
	refused(t, c.do("POST", "/demo/v1/tools/put", `{"sessionId":"`+ids["idle"]+`"}`), 500, "workspace_unavailable")
}

// TestInputAndResultAreKeptAsTheyAre: numbers keep their digits, texts their characters.
func TestInputAndResultAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{}, workshop())
	for in, want := range map[string]string{
		`{"input":{"n":12345678901234567890,"x":1.10,"t":"<a>&\u2028"}}`: `"result":{"n":12345678901234567890,"x":1.10,"t":"<a>&\u2028"}`,
		`{"input":{}}`: `"result":{}`, `{}`: `"result":{}`, ``: `"result":{}`,
	} {
		if a := c.do("POST", "/demo/v1/tools/echo", in); a.status != 200 || !strings.Contains(a.raw, want) {
			t.Errorf("%s: got %d %s; want %s", in, a.status, a.raw, want)
		}
	}
}

// slow is an agent whose tool says how it ended.
type slow struct {
	*fakeAgent

	began chan struct{}
	ended chan time.Duration
}

func (s slow) CallTool(ctx context.Context, _ engine.ToolCall) (engine.ToolOutcome, error) {
	start := time.Now()
	close(s.began)
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Minute):
	}
	s.ended <- time.Since(start)
	return engine.ToolOutcome{Result: json.RawMessage("1")}, nil
}

// TestACallOutlivesItsClient: it goes on without who asked for it, and for a while when the host shuts down.
func TestACallOutlivesItsClient(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		close bool
		want  time.Duration
	}{"the client goes away": {want: 10 * time.Minute}, "the host shuts down": {close: true, want: 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				agent := slow{workshop(), make(chan struct{}), make(chan time.Duration, 1)}
				closing := make(chan struct{})
				h := httpapi.New([]httpapi.Agent{agent}, httpapi.Options{Auth: byName, Closing: closing})
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-agent.began
					cancel()
					if tc.close {
						close(closing)
					}
				}()
				a := client{t, h}.doIn(ctx, "POST", "/demo/v1/tools/look", "{}")
				if got := <-agent.ended; got != tc.want || a.status != 200 {
					t.Errorf("it ran for %s and was answered %d %s; want %s", got, a.status, a.raw, tc.want)
				}
			})
		})
	}
}

func TestListToolsOfConnections(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	agent.faults = []engine.ConnectionFault{{Name: "near", Message: "it is down"}}
	agent.connected = []bdk.NamedTool{{Name: "far__paint", Source: "bot/mcp-connections/far.go", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Paints."},
		func(context.Context, *bdk.Call, struct{}) (string, error) { return "", nil })}}
	c := newClient(t, httpapi.Options{}, agent)
	want := `{"ok":true,"tools":[{"name":"far__paint","source":"bot/mcp-connections/far.go"}],"connectionErrors":[{"name":"near","message":"it is down"}]}` + "\n"
	if a := c.do("GET", "/demo/v1/tools", ""); a.raw != want {
		t.Errorf("got  %swant %s", a.raw, want)
	}
	if a := c.do("GET", "/demo/v1/tools/far__paint", ""); a.status != 200 || a.body["description"] != "Paints." {
		t.Errorf("shown: %d %s", a.status, a.raw)
	}
}
