package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/test/emulator"
)

// connected returns an agent with one connection.
func connected(name string, c bdk.Connection) bdk.Project {
	c.AdvertiseTools = true
	return bdk.Project{Slug: "sample", Instructions: "Do it.", Connections: []bdk.NamedConnection{
		{Name: name, Source: "bot/mcp-connections/" + name + ".go", Connection: c},
	}}
}

// program returns a connection to a server of npm that is started by the agent.
func program(t *testing.T, server string, env map[string]string, args ...string) bdk.Connection {
	t.Helper()
	return bdk.Connection{Command: emulator.Find(t, emulator.Node), Args: append([]string{emulator.Find(t, server)}, args...), Env: env}
}

// get and post call the agent.
func get(t *testing.T, url string) map[string]any {
	t.Helper()
	return request(t, http.MethodGet, url, nil)
}

func post(t *testing.T, url string, body any) map[string]any {
	t.Helper()
	return request(t, http.MethodPost, url, body)
}

func request(t *testing.T, method, url string, body any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	var fields map[string]any
	if err != nil || json.Unmarshal(answer, &fields) != nil {
		t.Fatalf("%s %s: %d %s %v", method, url, res.StatusCode, answer, err)
	}
	return fields
}

// converse has the agent answer a message and returns the log of the session.
func converse(t *testing.T, url, message string) string {
	t.Helper()
	state := post(t, url+"/v1/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "ask", "arguments": map[string]any{"message": message},
	}})
	result, _ := state["result"].(map[string]any)
	structured, _ := result["structuredContent"].(map[string]any)
	if structured["status"] != "completed" {
		t.Fatalf("asked: %v", state)
	}
	log := get(t, fmt.Sprintf("%s/v1/session/%v/events?format=json", url, structured["sessionId"]))
	raw, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// call calls a tool without the model and returns its result as text.
func call(t *testing.T, url, tool string, input any) (string, bool) {
	t.Helper()
	answer := post(t, url+"/v1/tools/"+tool, map[string]any{"input": input})
	if answer["ok"] != true {
		t.Fatalf("%s: %v", tool, answer)
	}
	raw, err := json.Marshal(answer["result"])
	if err != nil {
		t.Fatal(err)
	}
	isError, _ := answer["isError"].(bool)
	return string(raw), isError
}

// listed returns the names of the agent's tools, and fails if a connection is at fault.
func listed(t *testing.T, url string) string {
	t.Helper()
	answer := get(t, url+"/v1/tools")
	if faults, _ := answer["connectionErrors"].([]any); len(faults) > 0 {
		t.Errorf("connection errors: %v", faults)
	}
	raw, err := json.Marshal(answer["tools"])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const echoes = `rules:
  - when: {message: echo}
    calls: [{tool: every__echo, args: {message: "over there"}}]
  - text: done
`

// TestEverything: the reference server, over both transports: tools are offered, called by the model and without it.
func TestEverything(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := program(t, emulator.Everything, nil, "stdio")
			if transport == "http" {
				c = bdk.Connection{URL: startEverything(t) + "/mcp"}
			}
			url := serve(t, connected("every", c), echoes)
			for _, tool := range []string{"every__echo", "every__get-sum"} {
				if all := listed(t, url); !strings.Contains(all, `"`+tool+`"`) {
					t.Errorf("%s is not listed: %s", tool, all)
				}
			}
			if log := converse(t, url, "echo it"); !strings.Contains(log, "Echo: over there") {
				t.Errorf("the model's call: %s", log)
			}
			if got, isError := call(t, url, "every__get-sum", map[string]any{"a": 2, "b": 3}); isError || !strings.Contains(got, "5") {
				t.Errorf("2 + 3 = %s", got)
			}
			if got, isError := call(t, url, "every__get-sum", map[string]any{"a": "two"}); !isError {
				t.Errorf("a sum of nothing: %s", got)
			}
			if got, _ := call(t, url, "every__get-tiny-image", map[string]any{}); !strings.Contains(got, `"mimeType":"image/png"`) {
				t.Errorf("an image: %.300s", got)
			}
			if shown := get(t, url+"/v1/tools/every__echo"); shown["effect"] != "write" {
				t.Errorf("shown: %v", shown)
			}
			if info := get(t, url+"/v1/info"); !strings.Contains(fmt.Sprint(info["connections"]), "advertised:true") {
				t.Errorf("info: %v", info["connections"])
			}
		})
	}
}

// startEverything starts the reference server over HTTP, until the test ends, and returns its address.
func startEverything(t *testing.T) string {
	t.Helper()
	path := emulator.Find(t, emulator.Everything)
	return "http://" + emulator.Start(t, emulator.Node, func(port string) []string {
		return []string{"--input-type=module", "-e", fmt.Sprintf("process.env.PORT = %q; process.argv = ['node', 'everything', 'streamableHttp']; await import(%q)", port, path)}
	})
}

// TestFilesystem: a server with files, which refuses what is not below its folder.
func TestFilesystem(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := program(t, emulator.Filesystem, nil, dir)
	c.Deny, c.TrustHints = []string{"move_file"}, true
	url := serve(t, connected("files", c), hello)
	if all := listed(t, url); strings.Contains(all, "move_file") || !strings.Contains(all, "files__write_file") {
		t.Errorf("listed: %s", all)
	}
	if got, isError := call(t, url, "files__write_file", map[string]any{"path": filepath.Join(dir, "a.txt"), "content": "hello"}); isError {
		t.Errorf("writing: %s", got)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(data) != "hello" {
		t.Errorf("written: %q, %v", data, err)
	}
	if got, isError := call(t, url, "files__read_text_file", map[string]any{"path": filepath.Join(dir, "a.txt")}); isError || !strings.Contains(got, "hello") {
		t.Errorf("reading: %s", got)
	}
	if got, isError := call(t, url, "files__read_text_file", map[string]any{"path": filepath.Dir(dir)}); !isError {
		t.Errorf("reading what is outside: %s", got)
	}
	if shown := get(t, url+"/v1/tools/files__read_text_file"); shown["effect"] != "read" {
		t.Errorf("a read that the server tells: %v", shown["effect"])
	}
	if answer := post(t, url+"/v1/tools/files__move_file", map[string]any{"input": map[string]any{}}); answer["isError"] != true {
		t.Errorf("a denied tool: %v", answer)
	}
}

// TestMemory: a server that remembers.
func TestMemory(t *testing.T) {
	t.Parallel()
	url := serve(t, connected("memory", program(t, emulator.Memory, map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")})), hello)
	entity := map[string]any{"name": "door", "entityType": "thing", "observations": []string{"it is red"}}
	if got, isError := call(t, url, "memory__create_entities", map[string]any{"entities": []any{entity}}); isError {
		t.Errorf("creating: %s", got)
	}
	if got, isError := call(t, url, "memory__search_nodes", map[string]any{"query": "red"}); isError || !strings.Contains(got, "door") {
		t.Errorf("searching: %s", got)
	}
}

// TestProgramsEnd: a program of a connection ends with the host.
func TestProgramsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	script := filepath.Join(dir, "server.sh")
	if err := os.WriteFile(script, []byte("echo $$ >"+pid+"; exec "+emulator.Find(t, emulator.Node)+" "+emulator.Find(t, emulator.Memory)), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop := start(t, connected("memory", bdk.Connection{Command: "/bin/sh", Args: []string{script}}), hello)
	listed(t, url)
	stop()
	number, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(number))); err == nil {
		t.Errorf("the program %s goes on", number)
	}
}
