package mcphost_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/mcphost"
)

// agent answers each call of its tool with what it has.
type agent struct {
	mcphost.Agent

	out engine.ToolOutcome
	err error
	got engine.ToolCall
}

func (a *agent) Project() bdk.Project {
	return bdk.Project{Slug: "sample", Tools: []bdk.NamedTool{{Name: "act", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Act."},
		func(context.Context, *bdk.Call, struct{}) (string, error) { return "", nil })}}}
}

func (a *agent) CallTool(_ context.Context, c engine.ToolCall) (engine.ToolOutcome, error) {
	a.got = c
	return a.out, a.err
}

// call has a client call the tool and returns the result.
func call(t *testing.T, a *agent) string {
	t.Helper()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act","arguments":{"n":12345678901234567890}}}`
	r := httptest.NewRequest(http.MethodPost, "/v1/mcp/tools", http.NoBody)
	r.Header.Set("Content-Type", "application/json")
	r = r.WithContext(auth.NewContext(r.Context(), "bearer:ann"))
	answer := mcphost.New(a, mcphost.Options{}).Tools(mcphost.Request{HTTP: r, Body: []byte(body), ID: "req-7"})
	var fields struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(answer.Body, &fields); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("%d %s: %v", answer.Status, answer.Body, err)
	}
	return string(fields.Result)
}

func TestResults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		out  string
		want string
	}{
		"a text":    {`"it is done"`, `{"content":[{"type":"text","text":"it is done"}]}`},
		"a number":  {`7`, `{"content":[{"type":"text","text":"7"}]}`},
		"a list":    {`[1,2]`, `{"content":[{"type":"text","text":"[1,2]"}]}`},
		"an object": {`{"a":1}`, `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`},
		"parts": {
			`{"content":[{"type":"text","text":"a chart"},{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"audio","data":"AAEC","mimeType":"audio/wav"},{"type":"resource","data":"AAEC","mimeType":"text/plain"}],"structuredContent":{"n":1}}`,
			`{"content":[{"type":"text","text":"a chart"},{"type":"image","mimeType":"image/png","data":"AAEC"},{"type":"audio","mimeType":"audio/wav","data":"AAEC"},` +
				`{"type":"resource","resource":{"uri":"result://tool_1/3","mimeType":"text/plain","blob":"AAEC"}}],"structuredContent":{"n":1}}`,
		},
		"parts of a failure": {`{"content":[{"type":"text","text":"no"}],"isError":true}`, `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		"no parts":           {`{"content":[],"structuredContent":{"n":1}}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &agent{out: engine.ToolOutcome{CallID: "tool_1", Result: json.RawMessage(tc.out)}}
			if got := call(t, a); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if a.got.Caller != "bearer:ann" || string(a.got.Input) != `{"n":12345678901234567890}` {
				t.Errorf("called as %q with %s", a.got.Caller, a.got.Input)
			}
		})
	}
}

func TestFaultsOfTheHostAreNotShown(t *testing.T) {
	t.Parallel()
	got := call(t, &agent{err: errors.New("the password is 12345")})
	if strings.Contains(got, "12345") || !strings.Contains(got, "req-7") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("got %s", got)
	}
	if got = call(t, &agent{err: bdkerr.New(bdkerr.SessionBusy, "come back")}); !strings.Contains(got, "session_busy: come back") {
		t.Errorf("got %s", got)
	}
}
