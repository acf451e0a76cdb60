package project_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
		Models: []string{"scripted:model.yaml"},
		Instructions: project.Instructions{
			Text:  "# Greeter\n\nCall `greet` before you answer.",
			Files: []string{"bot/instructions/10-role.md", "bot/instructions/20-tools.md"},
		},
		Tools: []project.Named{{Name: "greet", Definition: project.Definition{Package: pkg + "/tools", Var: "Greet", File: "bot/tools/greet.go", Line: 16}}},
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

func TestModelsAreKnownAsFarAsTheyAreConstants(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code     string
		models   []string
		computed bool
	}{
		"none":               {"var Agent bdk.Agent", nil, false},
		"empty":              {`var Agent = bdk.Agent{Model: ""}`, nil, false},
		"texts":              {`var Agent = bdk.Agent{Model: "openai:a", Fallbacks: []string{"bedrock:b"}}`, []string{"openai:a", "bedrock:b"}, false},
		"a constant":         {"const id = \"openai:\" + \"a\"\n\nvar Agent = bdk.Agent{Model: id}", []string{"openai:a"}, false},
		"a variable":         {"var id = \"openai:a\"\n\nvar Agent = bdk.Agent{Model: id, Fallbacks: []string{\"openai:b\"}}", []string{"openai:b"}, true},
		"computed fallbacks": {"var ids []string\n\nvar Agent = bdk.Agent{Model: \"openai:a\", Fallbacks: ids}", []string{"openai:a"}, true},
		"a function":         {"func choose() bdk.Agent { return bdk.Agent{} }\n\nvar Agent = choose()", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "my-agent")
			files := module(t)
			files["bot/agent.go"] = []byte("package bot\n\nimport \"github.com/bdk-lambda/bdk/bdkpack/bdk\"\n\n" + c.code + "\n")
			files["bot/instructions.md"] = []byte("Help.")
			write(t, root, files)
			ws, diags, err := project.Load(t.Context(), root, nil)
			if err != nil || diags.HasErrors() {
				t.Fatalf("got error %v and diagnostics\n%s", err, diags)
			}
			if a := ws.Agents[0]; !slices.Equal(a.Models, c.models) || a.Computed != c.computed {
				t.Errorf("got %q and %t, want %q and %t", a.Models, a.Computed, c.models, c.computed)
			}
		})
	}
}

func TestAgentsOfAFolderShareAModule(t *testing.T) {
	t.Parallel()
	ws, diags, err := project.Load(t.Context(), filepath.Join(repository(t), "test", "agents"), &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
	if err != nil || diags.HasErrors() {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	if ws.Single || len(ws.Agents) < 2 || ws.Module.Dir != repository(t) {
		t.Fatalf("got %+v", ws)
	}
	got := ws.Agents[slices.IndexFunc(ws.Agents, func(a project.Agent) bool { return a.Slug == "generated" })]
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
	for _, dir := range []string{bot, filepath.Join(bot, "tools"), filepath.Join(bot, "lib", "greeting"), filepath.Join(repo, "bdkpack", "bdk")} {
		if !slices.Contains(ws.Inputs.Dirs, dir) {
			t.Errorf("the sources in %s are not watched", dir)
		}
	}
	for _, dir := range []string{bot, filepath.Join(bot, "tools"), filepath.Join(bot, "lib", "greeting"), filepath.Join(bot, "instructions")} {
		if !slices.Contains(ws.Inputs.Trees, dir) {
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
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	write(t, root, map[string][]byte{
		"pkg/a.go": []byte("package a"), "pkg/data/x.txt": []byte("x"), "bot/tools/x.go": nil, "README.md": nil, "agents/none/x": nil,
	})
	in := project.Inputs{
		Dirs: []string{at("not-yet"), at("pkg")}, Trees: []string{at("bot"), at("bot/tools")}, Parents: []string{at("agents")},
		Embeds: []string{at("pkg/*.txt"), at("pkg/data")}, Files: []string{at("go.sum"), at("pkg/data/x.txt")},
	}
	last, err := in.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		file    string // is written, with what no file had before
		changes bool
	}{
		{"pkg/a.go", true},
		{"pkg/b.go", true},
		{"pkg/a_test.go", false},
		{"pkg/.a.go.swp", false},
		{"pkg/README.md", false},
		{"pkg/out.json", false},
		{"pkg/sub/c.go", false},
		{"pkg/data/x.txt", true},
		{"pkg/data/y.json", true},
		{"pkg/data/deep/z", true},
		{"pkg/new.txt", true},
		{"README.md", false},
		{"dev.log", false},
		{"tool.go", false},
		{"go.sum", true},
		{"not-yet/c.go", true},
		{"bot/tools/x.go", false}, // its text is part of a package
		{"bot/tools/y.go", true},
		{"bot/notes.md", true},
		{"bot/log.txt", false},
		{"bot/.hidden.md", false},
		{"bot/new/x.txt", true}, // for the folder
		{"agents/out/x.txt", false},
		{"agents/.bdk/state/x", false},
		{"agents/one/bot/x", true},
		{"agents/none/agent/x", false},
		{"agents/none/agent/agent.go", true},
	} {
		_, missing := os.Stat(filepath.Dir(at(step.file)))
		write(t, root, map[string][]byte{step.file: []byte("package b // " + step.file)})
		got, err := in.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		if changed := got != last; changed != step.changes {
			t.Errorf("after writing %s: changed is %t, want %t", step.file, changed, step.changes)
		}
		last = got
		path := at(step.file)
		if missing != nil { // the folder is what appears
			path = filepath.Dir(path)
		}
		if watched := slices.Contains(in.Folders(), filepath.Dir(path)); step.changes && (!watched || !in.Matters(path)) {
			t.Errorf("%s: watched is %t, matters is %t", path, watched, in.Matters(path))
		}
		if !step.changes && missing == nil && !strings.HasSuffix(step.file, "/x.go") && in.Matters(path) {
			t.Errorf("%s matters", path)
		}
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
		_, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
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

func TestPartsOfAnAgentAreFound(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(repository(t), "test", "agents", "workshop")
	ws, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any", "FAR_MCP=http://127.0.0.1:1/", "FAR_KEY=key")})
	if err != nil || len(diags) > 0 {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	a := ws.Agents[0]
	var found []string
	for _, s := range a.Skills {
		found = append(found, s.Name+" "+s.File+" "+s.Dir+" "+s.Description)
	}
	for _, s := range a.Subagents {
		found = append(found, s.Name+" "+s.Config.File+" "+s.Instructions.Text)
	}
	want := []string{
		"deploy bot/skills/deploy/SKILL.md bot/skills/deploy Use when something goes to production.",
		"triage bot/skills/triage.md  Use when a report has to be sorted.",
		"researcher bot/subagents/researcher/agent.go Find out, and say it in a sentence.",
		"bot/sandbox/workspace",
	}
	if diff := cmp.Diff(want, append(found, a.Seed)); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	for _, file := range []string{"skills/triage.md", "skills/deploy/SKILL.md", "skills/deploy/references/checklist.md", "subagents/researcher/instructions.md", "sandbox/workspace/docs/house-rules.md"} {
		if path := filepath.Join(dir, "bot", filepath.FromSlash(file)); !ws.Inputs.Matters(path) {
			t.Errorf("%s is not watched", file)
		}
	}
}

func TestFilesOfWorkspacesAreWatchedWhateverTheirName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my-agent")
	files := module(t)
	files["bot/instructions.md"] = []byte("Help.")
	files["bot/skills/run/SKILL.md"] = []byte("---\ndescription: d\n---\nt")
	files["bot/skills/run/scripts/run.sh"] = []byte("#!/bin/sh\n")
	files["bot/sandbox/workspace/.config/a.json"] = []byte("{}")
	files["bot/sandbox/workspace/large"] = make([]byte, 1<<20+1)
	write(t, dir, files)
	ws, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
	if err != nil || len(diags) > 0 {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	fingerprint := func() string {
		t.Helper()
		sum, err := ws.Inputs.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	last := fingerprint()
	for _, c := range []struct {
		file    string
		text    string
		changes bool
	}{
		{"bot/sandbox/workspace/.config/a.json", "[]", true},
		{"bot/sandbox/workspace/.config/b.json", "{}", true},
		{"bot/sandbox/workspace/x_test.go", "package x", true},
		{"bot/sandbox/workspace/large", strings.Repeat("x", 1<<20+2), true},
		{"bot/sandbox/workspace/.x.swp", "x", false},
		{"bot/skills/run/.env.example", "A=b", true},
		{"bot/skills/run/scripts/run.sh~", "x", false},
		{"bot/skills/run/scripts/#run.sh#", "x", false},
		{"bot/skills/.env.example", "A=b", false},
	} {
		write(t, dir, map[string][]byte{c.file: []byte(c.text)})
		path := filepath.Join(dir, filepath.FromSlash(c.file))
		now := fingerprint()
		if changed := now != last; changed != c.changes || ws.Inputs.Matters(path) != c.changes {
			t.Errorf("%s: changed %t, matters %t; want %t", c.file, changed, ws.Inputs.Matters(path), c.changes)
		}
		if !slices.Contains(ws.Inputs.Folders(), filepath.Dir(path)) {
			t.Errorf("the folder of %s is not watched", c.file)
		}
		last = now
	}
	if err := os.Chmod(filepath.Join(dir, "bot", "skills", "run", "scripts", "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if fingerprint() == last {
		t.Error("that a script may be run makes no difference")
	}
}

func TestWhatCannotBeInAWorkspaceIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string][]byte{"elsewhere/SKILL.md": []byte("---\ndescription: d\n---\nt")})
	dir := filepath.Join(root, "my-agent")
	files := module(t)
	files["bot/instructions.md"] = []byte("Help.")
	files["bot/skills/linked/SKILL.md"] = []byte("---\ndescription: d\n---\nt")
	files["bot/sandbox/x"] = nil
	write(t, dir, files)
	bot := filepath.Join(dir, "bot")
	link(t, "SKILL.md", filepath.Join(bot, "skills", "linked", "README.md"))
	link(t, "nowhere", filepath.Join(bot, "skills", "linked", ".broken"))
	link(t, filepath.Join(root, "elsewhere"), filepath.Join(bot, "skills", "outside"))
	link(t, filepath.Join(root, "elsewhere"), filepath.Join(bot, "sandbox", "workspace"))
	ws, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range diags.Relative(bot) {
		got = append(got, d.Code+" "+d.File+" "+d.Message)
	}
	want := []string{
		"BDK158 sandbox/workspace it is no folder but a symbolic link",
		"BDK107 sandbox/x x is not discovered in sandbox/",
		"BDK158 skills/linked/.broken it cannot be in a workspace: it is a symbolic link",
		"BDK158 skills/linked/README.md it cannot be in a workspace: it is a symbolic link",
		"BDK158 skills/outside it is no folder but a symbolic link",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
	if a := ws.Agents[0]; len(a.Skills) > 0 || a.Seed != "" {
		t.Errorf("got skills %v and the first files %q", a.Skills, a.Seed)
	}
}

func TestFirstFilesHaveTheLimitsOfWorkspaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sizes []int64
		want  string
	}{
		"a file":        {[]int64{64<<20 + 1}, "f0 it has 67108865 bytes: a file of a workspace has at most 67108864"},
		"all together":  {slices.Repeat([]int64{64 << 20}, 9), "workspace it has 9 files of 603979776 bytes together: a workspace has at most 10000 of 536870912"},
		"at the limits": {slices.Repeat([]int64{64 << 20}, 8), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "my-agent")
			files := module(t)
			files["bot/instructions.md"] = []byte("Help.")
			for i := range tc.sizes {
				files["bot/sandbox/workspace/f"+strconv.Itoa(i)] = nil
			}
			write(t, dir, files)
			for i, size := range tc.sizes { // of nothing, which takes no disk
				if err := os.Truncate(filepath.Join(dir, "bot", "sandbox", "workspace", "f"+strconv.Itoa(i)), size); err != nil {
					t.Fatal(err)
				}
			}
			_, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range diags {
				got += filepath.Base(d.File) + " " + d.Message
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSkillsHaveToBeText(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "my-agent")
	files := module(t)
	files["bot/instructions.md"] = []byte("Help.")
	files["bot/skills/huge.md"] = append([]byte("---\ndescription: d\n---\n"), strings.Repeat("x", 1<<20)...)
	files["bot/skills/latin/SKILL.md"] = []byte("---\ndescription: d\n---\nSois br\xe8f.\n")
	files["bot/skills/nul.md"] = []byte("a\x00b")
	files["bot/skills/folder.md/x"] = nil
	write(t, dir, files)
	write(t, root, map[string][]byte{"shared.md": []byte("# Shared\n\nText.")})
	link(t, filepath.Join(root, "shared.md"), filepath.Join(dir, "bot", "skills", "shared.md"))
	ws, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range diags.Relative(filepath.Join(dir, "bot", "skills")) {
		got = append(got, d.Code+" "+d.String())
	}
	want := []string{"BDK156 folder.md", "BDK105 huge.md", "BDK123 latin/SKILL.md:4", "BDK123 nul.md:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
	skills := []project.Skill{{Name: "shared", File: "bot/skills/shared.md", Description: "Shared", Markdown: "# Shared\n\nText."}}
	if diff := cmp.Diff(skills, ws.Agents[0].Skills); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
}

func TestFirstFilesThatDifferInCaseOnlyAreAMistake(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my-agent")
	files := module(t)
	files["bot/instructions.md"] = []byte("Help.")
	files["bot/sandbox/workspace/a.md"], files["bot/sandbox/workspace/A.md"] = nil, nil
	write(t, dir, files)
	if entries, err := os.ReadDir(filepath.Join(dir, "bot", "sandbox", "workspace")); err != nil || len(entries) < 2 {
		t.Skip("skipped: this disk holds one of them only")
	}
	_, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
	if err != nil || len(diags) != 1 || diags[0].Code != "BDK158" || !strings.Contains(diags[0].Message, "in case only") {
		t.Errorf("got error %v and diagnostics\n%s", err, diags)
	}
}
