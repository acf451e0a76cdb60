package project_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/project"
)

func repository(tb testing.TB) string {
	tb.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		tb.Fatal(err)
	}
	return root
}

func TestAgentIsDiscoveredByItsPaths(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(repository(t), "test", "agents", "joined")
	ws, diags, err := project.Load(t.Context(), dir, nil)
	if err != nil || len(diags) > 0 {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	const pkg = "github.com/bdk-lambda/bdk/test/agents/joined/bot"
	want := []project.Agent{{
		Slug: "joined", Dir: dir, Root: "bot",
		Config: &project.Definition{Package: pkg, Var: "Agent", File: "bot/agent.go", Line: 7},
		Instructions: project.Instructions{
			Text:  "# Greeter\n\nCall `greet` before you answer.",
			Files: []string{"bot/instructions/10-role.md", "bot/instructions/20-tools.md"},
		},
		Tools: []project.Tool{{Name: "greet", Definition: project.Definition{Package: pkg + "/tools", Var: "Greet", File: "bot/tools/greet.go", Line: 16}}},
	}}
	if diff := cmp.Diff(want, ws.Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if !ws.Single || ws.Dir != dir || ws.Module.Dir != repository(t) {
		t.Errorf("got %t %q %+v", ws.Single, ws.Dir, ws.Module)
	}

	data, err := json.Marshal(ws)
	if err != nil {
		t.Fatal(err)
	}
	var back project.Workspace
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*ws, back); diff != "" {
		t.Errorf("after JSON (-want +got):\n%s", diff)
	}
}
