package project_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestAgentsOfAFolderShareAModule(t *testing.T) {
	t.Parallel()
	ws, diags, err := project.Load(t.Context(), filepath.Join(repository(t), "test", "agents"), nil)
	if err != nil || len(diags) > 0 {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	if ws.Single || len(ws.Agents) < 2 || ws.Module.Dir != repository(t) {
		t.Fatalf("got %+v", ws)
	}
	got := ws.Agents[0]
	if got.Slug != "generated" || got.Root != "agent" || got.Config != nil || got.Instructions.Definition == nil || len(got.Tools) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestInputsAreWhatTheProgramIsBuiltFrom(t *testing.T) {
	t.Parallel()
	repo := repository(t)
	ws, _, err := project.Load(t.Context(), filepath.Join(repo, "test", "agents", "joined"), nil)
	if err != nil {
		t.Fatal(err)
	}
	bot := filepath.Join(repo, "test", "agents", "joined", "bot")
	for _, dir := range []string{bot, filepath.Join(bot, "tools"), filepath.Join(bot, "lib", "greeting"), filepath.Join(bot, "instructions"), filepath.Join(repo, "bdkpack", "bdk")} {
		if !slices.Contains(ws.Inputs.Dirs, dir) {
			t.Errorf("%s is not watched", dir)
		}
	}
	for _, file := range []string{filepath.Join(repo, "go.mod"), filepath.Join(repo, "go.sum"), filepath.Join(bot, "instructions", "10-role.md")} {
		if !slices.Contains(ws.Inputs.Files, file) {
			t.Errorf("%s is not watched", file)
		}
	}
	if !slices.IsSorted(ws.Inputs.Dirs) || !slices.IsSorted(ws.Inputs.Files) {
		t.Error("the inputs are not sorted")
	}
}

func TestFingerprintChangesWithTheInputsOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"a.go": []byte("package a"), "data/x.txt": []byte("x"), "a_test.go": nil, "README.md": nil})
	in := project.Inputs{Dirs: []string{dir, filepath.Join(dir, "not-yet")}, Files: []string{filepath.Join(dir, "data", "x.txt"), filepath.Join(dir, "go.sum")}}
	last, err := in.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		file    string
		changes bool
	}{
		{"a.go", true},
		{"a_test.go", false},
		{"README.md", false},
		{".bdk/build/build.json", false},
		{"data/x.txt", true},
		{"data/y.txt", false},
		{"b.go", true},
		{"tool", true},
		{"go.sum", true},
		{"not-yet/c.go", true},
	} {
		write(t, dir, map[string][]byte{step.file: []byte("package b // " + step.file)})
		got, err := in.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		if changed := got != last; changed != step.changes {
			t.Errorf("after writing %s: changed is %t, want %t", step.file, changed, step.changes)
		}
		last = got
	}
}

func TestLinksAndUnreadableFilesAreToldClearly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string][]byte{"shared.md": []byte("Be brief.")})
	bot := filepath.Join(root, "agent-a", "bot")
	write(t, bot, map[string][]byte{"lib/x.txt": nil})
	link(t, filepath.Join(root, "shared.md"), filepath.Join(bot, "instructions.md"))
	link(t, "nowhere", filepath.Join(bot, "agent.go"))
	link(t, "hooks", filepath.Join(bot, "hooks"))
	_, diags, err := project.Load(t.Context(), filepath.Join(root, "agent-a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range diags {
		got = append(got, d.Code+" "+filepath.Base(d.File)+" "+d.Message)
	}
	want := []string{
		"BDK110 agent-a the agent has no go.mod, neither in its folder nor above",
		`BDK106 agent.go the symbolic link to "nowhere" leads nowhere`,
		`BDK106 hooks the symbolic link to "hooks" leads nowhere`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
}

func TestInstructionsHaveToBeText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"latin-1": {"Be brief.\nSois br\xe8f.\n", 2},
		"NUL":     {"Be\x00brief.", 1},
	} {
		write(t, dir, map[string][]byte{"bot/instructions.md": []byte(c.text), "go.mod": []byte("module x\nmore")})
		_, diags, err := project.Load(t.Context(), dir, nil)
		if err != nil || len(diags) != 2 || diags[0].Code != "BDK123" || diags[0].Line != c.line || diags[1].Code != "BDK113" {
			t.Errorf("%s: got error %v and diagnostics\n%s", name, err, diags)
		}
	}
}

func TestFolderThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), map[string][]byte{"file": nil})
	for _, dir := range []string{filepath.Join(t.TempDir(), "none"), file} {
		if ws, diags, err := project.Load(t.Context(), dir, nil); err == nil {
			t.Errorf("%s: got %v and %v", dir, ws, diags)
		}
	}
}

func TestGoCommandThatIsMissingIsAnError(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, _, err := project.Load(t.Context(), filepath.Join(repository(t), "test", "agents", "joined"), nil)
	if err == nil || !strings.Contains(err.Error(), "go command, which has to be installed") {
		t.Errorf("got error %v", err)
	}
}

func link(t *testing.T, to, from string) {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
}
