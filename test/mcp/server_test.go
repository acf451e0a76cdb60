package mcp_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/test/emulator"
)

const hello = "rules: [{text: hello}]\n"

// node runs a program of npm, which has to end well, and returns what it printed.
func node(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	home := t.TempDir()
	cmd := exec.CommandContext(ctx, emulator.Find(t, emulator.Node), append([]string{emulator.Find(t, program)}, args...)...)
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "NO_COLOR=1"}
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s\n%s", filepath.Base(program), args, err, out, faults.String())
	}
	return string(out)
}

// TestConformance runs the official suite. Its baseline says what is expected to fail.
func TestConformance(t *testing.T) {
	t.Parallel()
	baseline, err := filepath.Abs("testdata/baseline.yml")
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, agent(), hello)
	out := node(t, emulator.Conformance, "server", "--url", url+"/v1/mcp/tools", "--expected-failures", baseline)
	for _, passed := range []string{
		"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
		"tools-call-mixed-content", "tools-call-error", "dns-rebinding-protection",
	} {
		if !strings.Contains(out, "✓ "+passed+": ") {
			t.Errorf("%s is not among what passed:\n%s", passed, out)
		}
	}
}

// TestConformanceOfTheChat: what is not about tools of its own passes at the other endpoint too.
func TestConformanceOfTheChat(t *testing.T) {
	t.Parallel()
	url := serve(t, agent(), hello)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"} {
		node(t, emulator.Conformance, "server", "--url", url+"/v1/mcp", "--scenario", scenario)
	}
}

// TestInspector: the official client lists and calls tools at both endpoints.
func TestInspector(t *testing.T) {
	t.Parallel()
	url := serve(t, agent(), hello)
	inspect := func(path, method string, args ...string) map[string]any {
		t.Helper()
		out := node(t, emulator.Inspector, append([]string{"--cli", url + path, "--transport", "http", "--method", method}, args...)...)
		var fields map[string]any
		if err := json.Unmarshal([]byte(out), &fields); err != nil {
			t.Fatalf("%s: %v:\n%s", method, err, out)
		}
		return fields
	}
	if list, _ := inspect("/v1/mcp/tools", "tools/list", "--strict")["tools"].([]any); len(list) != len(agent().Tools) {
		t.Errorf("%d tools are listed", len(list))
	}
	if got := inspect("/v1/mcp/tools", "tools/call", "--tool-name", "test_simple_text"); !strings.Contains(text(got), "simple text response") {
		t.Errorf("a call: %v", got)
	}
	if list, _ := inspect("/v1/mcp", "tools/list", "--strict")["tools"].([]any); len(list) != 3 {
		t.Errorf("%d tools are listed to talk with", len(list))
	}
	asked := inspect("/v1/mcp", "tools/call", "--tool-name", "ask", "--tool-arg", "message=hi")
	state, _ := asked["structuredContent"].(map[string]any)
	if state["status"] != "completed" || state["reply"] != "hello" {
		t.Fatalf("asked: %v", asked)
	}
	id, _ := state["sessionId"].(string)
	checked := inspect("/v1/mcp", "tools/call", "--tool-name", "check", "--tool-arg", "sessionId="+id)
	if again, _ := checked["structuredContent"].(map[string]any); again["reply"] != "hello" {
		t.Errorf("checked: %v", checked)
	}
}

// text returns the first text of a result.
func text(result map[string]any) string {
	content, _ := result["content"].([]any)
	if len(content) == 0 {
		return ""
	}
	first, _ := content[0].(map[string]any)
	s, _ := first["text"].(string)
	return s
}
