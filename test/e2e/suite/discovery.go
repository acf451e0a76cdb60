package suite

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// discovery: the agent says what it is.
func discovery(t *testing.T, target Target) {
	ann := target.Ann(t)
	a := ann.Do("GET", "/v1/info", "")
	var info struct {
		Slug, Name, Description string
		Tools                   []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(a.Raw), &info); err != nil || a.Status != 200 {
		t.Fatalf("got %d %s", a.Status, a.Raw)
	}
	var tools []string
	for _, tool := range info.Tools {
		tools = append(tools, tool.Name)
	}
	if diff := cmp.Diff([]string{"add", "big", "burst", "deaf", "fail", "hand_in", "hasty", "inspect", "jot", "note", "notes", "promote", "relay", "release", "remind", "shout", "slow", "stamp", "stash", "tally", "trail"}, tools); diff != "" || info.Slug != "workshop" || info.Name != "Workshop" {
		t.Errorf("%+v, want -, got +:\n%s", info, diff)
	}
	a = target.client(t, "").Do("GET", "/v1/health", "")
	if a.Status != 200 || a.Text("agent") != "workshop" {
		t.Errorf("health: got %d %s", a.Status, a.Raw)
	}
	if head := ann.Do("HEAD", "/v1/info", ""); head.Status != 200 || head.Raw != "" {
		t.Errorf("HEAD: got %d %q", head.Status, head.Raw)
	}
}

// logs: the log is read on from where it was read to.
func logs(t *testing.T, target Target) {
	ann := target.Ann(t)
	ann.Start("fail").Completed()
	a := ann.pageOfLogs("the pipe burst")
	for deadline := time.Now().Add(30 * time.Second); target.LateLogs && !strings.Contains(a.Raw, "the pipe burst") && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		a = ann.pageOfLogs("the pipe burst")
	}
	next, ok := a.Field("next").(float64)
	if a.Status != 200 || !ok || !strings.Contains(a.Raw, "the pipe burst") {
		t.Errorf("got %d %.500s", a.Status, a.Raw)
	}
	b := ann.Do("GET", "/v1/logs?after="+encode(int64(next)), "")
	if more, _ := b.Field("next").(float64); b.Status != 200 || more < next {
		t.Errorf("got %d %.500s", b.Status, b.Raw)
	}
}

// pageOfLogs returns the first page of the log that has a text, or else the last one.
func (c *Client) pageOfLogs(text string) Answer {
	c.t.Helper()
	after := 0.0
	for {
		a := c.Do("GET", "/v1/logs?after="+encode(int64(after)), "")
		next, ok := a.Field("next").(float64)
		if !ok || next <= after || strings.Contains(a.Raw, text) {
			return a
		}
		after = next
	}
}

// hostRoutes: the host lists its agents to everybody.
func hostRoutes(t *testing.T, target Target) {
	if target.HostURL == "" {
		t.Skip("skipped: the target has no routes of a host")
	}
	host := target.client(t, "")
	host.base = target.HostURL
	if a := host.Do("GET", "/v1/health", ""); a.Status != 200 || a.Field("ok") != true {
		t.Errorf("health: got %d %s", a.Status, a.Raw)
	}
	if a := host.Do("GET", "/v1/agents", ""); a.Status != 200 || !strings.Contains(a.Raw, `"slug":"workshop"`) {
		t.Errorf("agents: got %d %s", a.Status, a.Raw)
	}
	if a := host.Do("GET", "/", ""); a.Status != 200 || !strings.Contains(a.Raw, "Workshop") || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		t.Errorf("index: got %d %s", a.Status, a.Raw)
	}
	host.Do("GET", "/nobody/v1/health", "").Refused("an unknown agent", 404, "not_found")
}

// wrongPathsAndMethods: what is no route is told as an error of the one kind.
func wrongPathsAndMethods(t *testing.T, target Target) {
	ann := target.Ann(t)
	ann.http = &http.Client{Transport: target.HTTP.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{
		"/v1/nothing", "/v1", "/v2/session", "/v1/session/", "/v1//session", "/v1/./session", "/v1/session/../sessions", "/v1/session/ses_x/..%2fcost", "/v1/%2e%2e/v1/info",
	} {
		ann.Do("GET", path, "").Refused(path, 404, "not_found")
	}
	for _, id := range []string{
		"ses_unknown", "x", "ses_", "ses_%00", "ses_..%2f..%2fetc%2fpasswd", "..%2f..", "ses_%ff", "ses_a%20b", "ses_'%20or%201=1", "ses_" + strings.Repeat("a", 5000), "%F0%9F%8C%8D",
	} {
		for _, route := range []string{"/events", "/stream", "/cost"} {
			ann.Do("GET", "/v1/session/"+id+route, "").Refused(id+route, 404, "not_found")
		}
		ann.Do("POST", "/v1/session/"+id, `{"message":"x","continuationToken":"y"}`).Refused(id, 404, "not_found")
	}
	for _, tc := range []struct{ method, path, allow string }{
		{"GET", "/v1/session", "POST"},
		{"DELETE", "/v1/session/ses_x", "POST"},
		{"PUT", "/v1/session/ses_x/stop", "POST"},
		{"POST", "/v1/sessions", "GET, HEAD"},
		{"PATCH", "/v1/info", "GET, HEAD"},
		{"POST", "/v1/session/ses_x/stream", "GET, HEAD"},
	} {
		a := ann.Do(tc.method, tc.path, "")
		a.Refused(tc.method+" "+tc.path, 405, "method_not_allowed")
		if a.Header.Get("Allow") != tc.allow {
			t.Errorf("%s %s: allowed are %q; want %q", tc.method, tc.path, a.Header.Get("Allow"), tc.allow)
		}
	}
}
