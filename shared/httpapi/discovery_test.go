package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

func TestIndexes(t *testing.T) {
	t.Parallel()
	one, two := newAgent("one"), newAgent("two")
	two.project.Agent = bdk.Agent{Name: `<script>alert("x")</script>`, Description: "a & b"}
	c := newClient(t, httpapi.Options{Playground: true}, one, two)
	page := c.do("GET", "/", "")
	if page.header.Get("Content-Type") != "text/html; charset=utf-8" || strings.Contains(page.raw, "<script>") || page.header.Get("Content-Security-Policy") == "" {
		t.Errorf("got %q %s", page.header.Get("Content-Type"), page.raw)
	}
	for _, want := range []string{"/one/v1/info", "/two/v1/info", "&lt;script&gt;", "a &amp; b"} {
		if !strings.Contains(page.raw, want) {
			t.Errorf("the page lacks %s: %s", want, page.raw)
		}
	}
	want := `{"ok":true,"agents":[{"slug":"one","name":"one","url":"http://example.com/one/v1"},` +
		`{"slug":"two","name":"<script>alert(\"x\")</script>","description":"a & b","url":"http://example.com/two/v1"}]}` + "\n"
	if diff := cmp.Diff(want, c.do("GET", "/v1/agents", "").raw); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c = newClient(t, httpapi.Options{Playground: true, Single: true}, one)
	if a := c.do("GET", "/v1/agents", "", "X-Forwarded-Proto", "https"); !strings.Contains(a.raw, `"url":"https://example.com/v1"`) {
		t.Errorf("single mode behind TLS: got %s", a.raw)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{}, newAgent("one"), newAgent("two"))
	if a := c.do("GET", "/v1/health", "", "X-Caller", ""); a.raw != `{"ok":true,"agents":2}`+"\n" {
		t.Errorf("host: got %s", a.raw)
	}
	if a := c.do("GET", "/two/v1/health?cachebuster=1", "", "X-Caller", ""); a.raw != `{"ok":true,"agent":"two"}`+"\n" {
		t.Errorf("agent: got %s", a.raw)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	type input struct {
		URL string `json:"url"`
	}
	run := func(context.Context, *bdk.Call, input) (string, error) { return "", nil }
	agent := newAgent("demo")
	agent.project = bdk.Project{
		Slug: "demo", Instructions: "be nice",
		Agent: bdk.Agent{Name: "Demo", Description: "shows", Model: "scripted:a.yaml", Fallbacks: []string{"openai:b"}},
		Tools: []bdk.NamedTool{
			{Name: "look", Source: "bot/tools/look.go", Tool: bdk.DefineTool(bdk.ToolSpec{
				Description: "Look.", Title: "Looks", Effect: bdk.Read, OutputSchema: json.RawMessage(`{"type":"string"}`),
			}, run)},
			{Name: "maybe", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Maybe.", Effect: bdk.EffectOf(func(input) bdk.EffectKind { return bdk.Read })}, run)},
			{Name: "put", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Put."}, run)},
		},
		Skills: []bdk.NamedSkill{{Name: "research", Source: "bot/skills/research.md", Skill: bdk.Skill{Description: "Use when unsure.", Markdown: "Look."}}},
		Subagents: []bdk.Subagent{
			{Name: "checker", Source: "bot/subagents/checker", Agent: bdk.Agent{Description: "Checks."}},
			{Name: "writer", Source: "w", Agent: bdk.Agent{Description: "Writes.", Model: "openai:c"}},
		},
		Seed: "bot/sandbox/workspace",
	}
	a := newClient(t, httpapi.Options{Diagnostics: map[string]json.RawMessage{"demo": json.RawMessage(`[{"code":"x"}]`)}}, agent).do("GET", "/demo/v1/info", "")
	if a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
	want := []string{
		"artifactKinds", "channels", "connectionErrors", "connections", "description", "diagnostics", "fallbacks", "harness", "hooks", "instructions", "model", "name", "ok", "schedules", "seed", "skills", "slug", "subagents", "tools",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(a.body))); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	for _, list := range []string{"channels", "connectionErrors", "connections", "hooks", "schedules"} {
		if l, ok := a.body[list].([]any); !ok || len(l) != 0 {
			t.Errorf("%s is %v; want an empty list", list, a.body[list])
		}
	}
	var effects []string
	for _, tool := range a.body["tools"].([]any) {
		m := tool.(map[string]any)
		effects = append(effects, fmt.Sprint(m["name"], " ", m["effect"]))
		if schema, ok := m["inputSchema"].(map[string]any); !ok || schema["type"] != "object" {
			t.Errorf("%v has input schema %v", m["name"], m["inputSchema"])
		}
	}
	if diff := cmp.Diff([]string{"look read", "maybe conditional", "put write"}, effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		`"model":"scripted:a.yaml"`, `"fallbacks":["openai:b"]`, `"instructions":{"source":"project","bytes":7}`, `"diagnostics":[{"code":"x"}]`, `"title":"Looks"`,
		`"outputSchema":{"type":"string"}`, `"source":"bot/tools/look.go"`,
	} {
		if !strings.Contains(a.raw, want) {
			t.Errorf("the answer lacks %s: %s", want, a.raw)
		}
	}
	if strings.Contains(a.raw, "be nice") {
		t.Error("the answer shows the instructions")
	}
	for _, want := range []string{
		`"skills":[{"name":"research","description":"Use when unsure.","source":"bot/skills/research.md"}]`, `"seed":"bot/sandbox/workspace"`,
		`"subagents":[{"name":"checker","description":"Checks.","source":"bot/subagents/checker"},{"name":"writer","description":"Writes.","model":"openai:c","source":"w"}]`,
		`"execution":"server","approval":"never","effect":"read","timeArgs":[]`,
	} {
		if !strings.Contains(a.raw, want) {
			t.Errorf("the answer lacks %s: %s", want, a.raw)
		}
	}
	if a := newClient(t, httpapi.Options{}, newAgent("bare")).do("GET", "/bare/v1/info", ""); !strings.Contains(a.raw, `"tools":[]`) || !strings.Contains(a.raw, `"diagnostics":[]`) {
		t.Errorf("an agent without anything: got %s", a.raw)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	ring := telemetry.NewRing(16, nil)
	log := slog.New(ring)
	c := newClient(t, httpapi.Options{Logs: ring}, newAgent("one"), newAgent("two"))
	log.Info("host")
	log.Info("mine", slog.String("slug", "one"), slog.Int("n", 7))
	log.Warn("theirs", slog.String("slug", "two"))
	show := func(a answer) (got []string) {
		for _, r := range a.body["logs"].([]any) {
			m := r.(map[string]any)
			got = append(got, fmt.Sprint(m["n"], " ", m["level"], " ", m["message"]))
		}
		return append(got, fmt.Sprint("next ", a.body["next"]))
	}
	if diff := cmp.Diff([]string{"1 INFO host", "2 INFO mine", "next 3"}, show(c.do("GET", "/one/v1/logs", ""))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"3 WARN theirs", "next 3"}, show(c.do("GET", "/two/v1/logs?after=1", ""))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"next 3"}, show(c.do("GET", "/one/v1/logs?after=3", ""))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	log.Info("ann's", slog.String("owner", "ann"), slog.String("session_id", "ses_1"))
	log.Info("bob's", slog.String("owner", "bob"), slog.String("session_id", "ses_2"))
	log.Info("bob asks", slog.String("principal", "bob"))
	log.Info("nobody's", slog.String("session_id", "ses_3"))
	if diff := cmp.Diff([]string{"4 INFO ann's", "next 7"}, show(c.do("GET", "/one/v1/logs?after=3", ""))); diff != "" {
		t.Errorf("a caller sees the records of others (-want +got):\n%s", diff)
	}
	for _, query := range []string{"after=-1", "after=x", "after=", "after=99999999999999999999", "after=1&after=2", "since=1"} {
		refused(t, c.do("GET", "/one/v1/logs?"+query, ""), 400, "invalid_request")
	}
	if a := newClient(t, httpapi.Options{}, newAgent("one")).do("GET", "/one/v1/logs", ""); a.raw != `{"ok":true,"logs":[],"next":0}`+"\n" {
		t.Errorf("a host without a ring: got %s", a.raw)
	}
}

// A model that takes the place of the agent's own takes that of its subagents too.
func TestDescribeWithAnotherModel(t *testing.T) {
	t.Parallel()
	p := bdk.Project{Slug: "demo", Agent: bdk.Agent{Model: "openai:a"}, Subagents: []bdk.Subagent{{Name: "writer", Agent: bdk.Agent{Model: "openai:c"}}}}
	for model, want := range map[string]string{"openai:a": "openai:c", "openai:b": ""} {
		if got := httpapi.Describe(p, []string{model}, nil, time.Now()).Subagents[0].Model; got != want {
			t.Errorf("with %s the subagent has %q, want %q", model, got, want)
		}
	}
}

// A schema that is no JSON is left out, and the tool's error says why.
func TestDescribeToolThatIsWrong(t *testing.T) {
	t.Parallel()
	broken := bdk.DefineTool(bdk.ToolSpec{Description: "Broken.", InputSchema: json.RawMessage(`{"type":`), OutputSchema: json.RawMessage(`{`)},
		func(context.Context, *bdk.Call, json.RawMessage) (string, error) { return "", nil })
	info := httpapi.Describe(bdk.Project{Slug: "demo", Tools: []bdk.NamedTool{{Name: "broken", Tool: broken}}}, nil, nil, time.Now())
	text, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"error":"`) || strings.Contains(string(text), "inputSchema") {
		t.Errorf("info = %s", text)
	}
}

// TestInfoOfConnections: what is secret in them is not shown, nor those that are for code only.
func TestInfoOfConnections(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	agent.faults = []engine.ConnectionFault{{Name: "far", Message: "it is down"}}
	agent.project = bdk.Project{
		Slug: "demo",
		Connections: []bdk.NamedConnection{
			{Name: "far", Source: "bot/mcp-connections/far.go", Connection: bdk.Connection{
				URL: "https://example.com/hidden", Headers: map[string]string{"X-Key": "hidden", "Y": "${TOKEN}"}, AdvertiseTools: true, NeedsApproval: bdk.Always,
			}},
			{Name: "near", Connection: bdk.Connection{Command: "hidden", Env: map[string]string{"A": "hidden"}}},
			{Name: "other", Connection: bdk.Connection{Agent: "second"}},
			{Name: "wrong", Connection: bdk.Connection{}},
		},
		HostConnections: []bdk.NamedConnection{{Name: "hidden", Connection: bdk.Connection{URL: "https://hidden"}}},
	}
	a := newClient(t, httpapi.Options{}, agent).do("GET", "/demo/v1/info", "")
	for _, want := range []string{
		`{"name":"far","transport":"http","advertised":true,"approval":"always","variables":["TOKEN"],"source":"bot/mcp-connections/far.go"}`,
		`{"name":"near","transport":"stdio","advertised":false,`, `{"name":"other","transport":"agent","agent":"second","advertised":true,`,
		`"error":"the connection leads nowhere: set URL, Command or Agent"`, `"connectionErrors":[{"name":"far","message":"it is down"}]`,
	} {
		if !strings.Contains(a.raw, want) {
			t.Errorf("%s is missing in\n%s", want, a.raw)
		}
	}
	if strings.Contains(a.raw, "hidden") {
		t.Errorf("a secret, or what is for code only, is shown: %s", a.raw)
	}
}
