package maingen_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/shared/launch"
)

const (
	complete = "module my-agent\n\ngo 1.26.0\n\nrequire github.com/bdk-lambda/bdk v0.0.0\n\nrequire example.com/dep v0.0.0 // indirect\n" + replaced
	tidy     = "module my-agent\n\ngo 1.26.0\n\nrequire github.com/bdk-lambda/bdk v0.0.0\n" + replaced
	replaced = "\nreplace github.com/bdk-lambda/bdk => ../bdk\n\nreplace example.com/dep => ../dep\n"
	saysOne  = "- agent scripted:demo.yaml [Be \"brief\".]\n  greet bot/tools/greet.go: Greet.\n"
)

// world writes the files of testdata/world.txtar and more of them.
func world(t *testing.T, more map[string]string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: builds programs, which takes seconds")
	}
	archive, err := txtar.ParseFile("testdata/world.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		write(t, filepath.Join(root, f.Name), string(f.Data))
	}
	for name, text := range more {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, dir string, opts *maingen.Options) *maingen.Program {
	t.Helper()
	p, _, diags, err := maingen.Load(t.Context(), dir, opts)
	if err != nil || p == nil {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	return p
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("running %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

func TestProgramHasAllPartsOfAnAgent(t *testing.T) {
	t.Parallel()
	const imports = "import \"github.com/bdk-lambda/bdk/bdkpack/bdk\"\n\n"
	root := world(t, map[string]string{
		"agent/go.mod":                              complete,
		"agent/bot/skills/deploy/SKILL.md":          "---\ndescription: Use `this` when \"something\" goes out.\n---\n1. Look.\n2. Leap.\n",
		"agent/bot/skills/deploy/scripts/check.py":  "print(1)\n",
		"agent/bot/skills/plain.md":                 "# Be plain",
		"agent/bot/skills/made.go":                  "package skills\n\n" + imports + "var Made = bdk.Skill{Description: \"Made.\", Markdown: \"By code.\"}\n",
		"agent/bot/subagents/one/agent.go":          "package one\n\n" + imports + "var Agent = bdk.Agent{Description: \"One.\"}\n",
		"agent/bot/subagents/one/instructions.md":   "Be one.",
		"agent/bot/subagents/two-b/agent.go":        "package two\n\n" + imports + "var Agent = bdk.Agent{Description: \"Two.\"}\n",
		"agent/bot/subagents/two-b/instructions.go": "package two\n\nvar Instructions = \"Be two.\"\n",
		"agent/bot/sandbox/workspace/a.txt":         "a",
	})
	want := saysOne + "  deploy bot/skills/deploy/SKILL.md in [bot/skills/deploy]: Use `this` when \"something\" goes out. 1. Look.\n2. Leap.\n" +
		"  made bot/skills/made.go in []: Made. By code.\n" +
		"  plain bot/skills/plain.md in []: Be plain # Be plain\n" +
		"  one bot/subagents/one/agent.go: One. [Be one.]\n" +
		"  two-b bot/subagents/two-b/agent.go: Two. [Be two.]\n" +
		"  files of bot/sandbox/workspace\n"
	p := load(t, filepath.Join(root, "agent"), nil)
	if diff := cmp.Diff(want, run(t, root, p.Path)); diff != "" {
		t.Errorf("the program says (-want +got):\n%s", diff)
	}
}

func TestProgramIsBuiltInEveryKindOfModule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  map[string]string
		before []string // a go command to run in the agent's folder
		dir    string
		want   string
	}{
		"go.mod knows all":             {files: map[string]string{"agent/go.mod": complete}, dir: "agent", want: saysOne},
		"go.mod as go mod tidy leaves": {files: map[string]string{"agent/go.mod": tidy}, dir: "agent", want: saysOne},
		"workspace": {
			files: map[string]string{"agent/go.mod": "module my-agent\n\ngo 1.26.0\n", "go.work": "go 1.26.0\n\nuse (\n\t./agent\n\t./bdk\n\t./dep\n)\n"},
			dir:   "agent", want: saysOne,
		},
		"vendored with the command as a tool": {
			files:  map[string]string{"agent/go.mod": complete + "\ntool github.com/bdk-lambda/bdk/bdkpack/cmd/bdk\n"},
			before: []string{"go", "mod", "vendor"}, dir: "agent", want: saysOne,
		},
		"vendored without what the host needs": {
			files: map[string]string{"agent/go.mod": complete}, before: []string{"go", "mod", "vendor"}, dir: "agent", want: saysOne,
		},
		"internal folder of a larger module": {
			files: map[string]string{
				"big/go.mod": complete, "big/internal/quiet/bot/instructions.go": "package bot\n\nvar Instructions = \"Hush.\"\n",
			},
			dir: "big/internal/quiet", want: "- quiet  [Hush.]\n",
		},
		"several agents": {
			files: map[string]string{"go.mod": strings.ReplaceAll(complete, "../", "./"), "other/agent/instructions.md": "Other."},
			dir:   ".", want: saysOne + "- other  [Other.]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := world(t, c.files)
			dir := filepath.Join(root, c.dir)
			if c.before != nil {
				run(t, dir, c.before...)
			}
			p := load(t, dir, nil)
			if diff := cmp.Diff(c.want, run(t, root, p.Path)); diff != "" {
				t.Errorf("the program says (-want +got):\n%s", diff)
			}
			for name, want := range c.files {
				if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
					t.Errorf("%s was changed: %v\n%s", name, err, got)
				}
			}
		})
	}
}

func TestUnchangedProgramIsReusedAndAChangedOneIsAnother(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/go.mod": complete})
	dir := filepath.Join(root, "agent")
	first := load(t, dir, nil)
	if first.Reused {
		t.Error("the first build was reused")
	}
	noGo := &maingen.Options{Progress: func(p maingen.Progress) { t.Errorf("an unchanged program is being built: %v", p) }}
	if again := load(t, dir, noGo); !again.Reused || again.Path != first.Path {
		t.Errorf("got reused %t and %s, want %s", again.Reused, again.Path, first.Path)
	}
	if other := load(t, dir, &maingen.Options{Env: append(os.Environ(), "GOFLAGS=-trimpath")}); other.Reused {
		t.Error("a program built with other settings was reused")
	}

	paths := []string{first.Path}
	write(t, filepath.Join(root, "agent/bot/instructions.md"), "Be shy.")
	load(t, dir, nil)
	write(t, filepath.Join(root, "agent/bot/instructions.md"), "Be \"brief\".\n")
	if undone := load(t, dir, nil); undone.Path != first.Path {
		t.Errorf("after a change was undone: got %s, want %s", undone.Path, first.Path)
	}
	for _, change := range []struct{ file, text string }{
		{"agent/bot/instructions.md", "Be long."},
		{"dep/dep.go", "package dep\n\nconst Mark = \"* \"\n"},
		{"agent/go.mod", complete + "\n"},
	} {
		write(t, filepath.Join(root, change.file), change.text)
		p := load(t, dir, nil)
		if p.Reused || slices.Contains(paths, p.Path) {
			t.Errorf("after a change of %s: reused %t, path %s", change.file, p.Reused, p.Path)
		}
		paths = append(paths, p.Path)
	}
	if got, want := run(t, root, paths[len(paths)-1]), "* agent scripted:demo.yaml [Be long.]\n  greet bot/tools/greet.go: Greet.\n"; got != want {
		t.Errorf("the program says %q, want %q", got, want)
	}
	kept, err := filepath.Glob(filepath.Join(dir, ".bdk", "build", "*", "agent"))
	if err != nil || len(kept) != 2 {
		t.Errorf("got %d programs and error %v, want the newest two", len(kept), err)
	}
	if _, err := os.Stat(paths[len(paths)-2]); err != nil {
		t.Errorf("the program before the last one is gone, though it may still serve: %v", err)
	}
}

// An agent without a model is fine as long as the environment names one; the program is the same.
func TestModelInTheEnvironmentIsRememberedOfABuild(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/go.mod": complete, "agent/bot/agent.go": "package bot\n\nimport \"github.com/bdk-lambda/bdk/bdkpack/bdk\"\n\nvar Agent bdk.Agent\n"})
	dir := filepath.Join(root, "agent")
	missing := append(os.Environ(), "BDK_MODEL=")
	given := append(os.Environ(), "BDK_MODEL=openai:any")
	first := load(t, dir, &maingen.Options{Env: missing})
	for i, step := range []struct {
		env      []string
		warnings int
		reused   bool
	}{{missing, 1, true}, {given, 0, false}, {given, 0, true}, {missing, 1, false}} {
		p := load(t, dir, &maingen.Options{Env: step.env})
		if p.Path != first.Path || len(p.Warnings) != step.warnings || p.Reused != step.reused {
			t.Errorf("step %d: got %d warnings, reused %t, path %s, want %d, %t and %s",
				i, len(p.Warnings), p.Reused, p.Path, step.warnings, step.reused, first.Path)
		}
	}
}

func TestMistakesLeaveTheLastProgramAlone(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/go.mod": complete})
	dir := filepath.Join(root, "agent")
	good := load(t, dir, nil)
	instructions := filepath.Join(dir, "bot", "instructions.md")
	write(t, instructions, " \n")
	p, ws, diags, err := maingen.Load(t.Context(), dir, nil)
	if p != nil || err != nil || len(diags) != 1 || diags[0].Code != "BDK122" {
		t.Errorf("got program %v, error %v and diagnostics\n%s", p, err, diags)
	}
	if ws == nil || !slices.Contains(ws.Inputs.Files, instructions) {
		t.Errorf("the file with the mistake is not watched: %+v", ws)
	}
	write(t, instructions, "Be \"brief\".\n")
	if back := load(t, dir, nil); !back.Reused || back.Path != good.Path {
		t.Errorf("after the mistake was mended: reused %t, path %s, want %s", back.Reused, back.Path, good.Path)
	}
}

func TestFolderThatCannotBeWrittenToIsBuiltInTheCache(t *testing.T) {
	t.Parallel()
	// A file in the place of the folder fails for everybody, also for those whom permissions do not stop.
	root := world(t, map[string]string{"agent/go.mod": complete, "agent/.bdk/build": ""})
	dir, cache := filepath.Join(root, "agent"), filepath.Join(root, "cache")
	if _, _, _, err := maingen.Load(t.Context(), dir, nil); err == nil {
		t.Error("got no error without a cache directory")
	}
	opts := &maingen.Options{CacheDir: cache}
	p := load(t, dir, opts)
	if !strings.HasPrefix(p.Path, cache) || run(t, root, p.Path) != saysOne {
		t.Errorf("got %s", p.Path)
	}
	if !load(t, dir, opts).Reused {
		t.Error("the program in the cache is not reused")
	}
}

func TestHostOfAnotherVersionIsToldAsSuch(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{
		"agent/go.mod":                           complete,
		"bdk/shared/host/localhost/localhost.go": "package localhost\n\nimport _ \"example.com/dep\"\n\nfunc Start() {}\n",
	})
	p, _, diags, err := maingen.Load(t.Context(), filepath.Join(root, "agent"), nil)
	want := diag.List{{
		Code: "BDK161", Severity: diag.Error, Pos: diag.Pos{File: filepath.Join(root, "agent", "go.mod")},
		Message: "the program cannot be built: undefined: localhost.Main",
		Help:    "check that go.mod requires the version of github.com/bdk-lambda/bdk that this command has; `bdk version` prints it",
	}}
	if diff := cmp.Diff(want, diags); diff != "" || p != nil || err != nil {
		t.Errorf("got program %v, error %v, diagnostics (-want +got):\n%s", p, err, diff)
	}
	left, err := filepath.Glob(filepath.Join(root, "agent", ".bdk", "build", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the failed build leaves %v, error %v", left, err)
	}
}

func TestColdBuildTellsWhatItCompiles(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/go.mod": complete})
	var phases []maingen.Phase
	compiled := 0
	load(t, filepath.Join(root, "agent"), &maingen.Options{Progress: func(p maingen.Progress) {
		if p.Phase == maingen.Compiling {
			compiled++
			if p.Done != compiled {
				t.Errorf("after %d packages: got %+v", compiled, p)
			}
		}
		if !slices.Contains(phases, p.Phase) {
			phases = append(phases, p.Phase)
		}
	}})
	want := []maingen.Phase{maingen.Checking, maingen.Compiling, maingen.Linking}
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

func TestCancelledLoadReturnsTheCause(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/go.mod": complete})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, _, _, err := maingen.Load(ctx, filepath.Join(root, "agent"), nil); p != nil || err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got program %v and error %v", p, err)
	}
}

// TestRealProgramKnowsItsAgents builds what authors get: the agents of the repository with the real host.
func TestRealProgramKnowsItsAgents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: compiles and links the host, which takes up to a minute")
	}
	p := load(t, "../../test/agents", nil)
	cmd := exec.CommandContext(t.Context(), p.Path)
	cmd.Env = append(os.Environ(), launch.Env+`={"command":"info"}`, "BDK_MODEL=scripted:none.yaml")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running the program: %v\n%s", err, out)
	}
	var got struct {
		Agents []struct {
			Slug         string
			Instructions struct{ Bytes int }
			Tools        []struct{ Name, Source string }
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("reading %s: %v", out, err)
	}
	tools := map[string]string{}
	for _, a := range got.Agents {
		for _, tool := range a.Tools {
			tools[a.Slug+" "+tool.Name] = tool.Source
		}
		if a.Instructions.Bytes == 0 {
			t.Errorf("%s has no instructions", a.Slug)
		}
	}
	want := map[string]string{"generated echo_raw": "agent/tools/echo_raw.go", "joined greet": "bot/tools/greet.go"}
	for tool, source := range want {
		if tools[tool] != source {
			t.Errorf("%s comes from %q, want %q", tool, tools[tool], source)
		}
	}
}
