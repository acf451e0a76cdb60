package harness_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/harness"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// folders writes an agent's folder with the given files.
func folders(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasPrefix(content, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(p, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func project() bdk.Project {
	script := bdk.DefineScript[struct {
		Text string `json:"text"`
	}](bdk.ToolSpec{Description: "Echoes a text."}, "#!/bin/sh\ncat\n")
	server := bdk.DefineTool(bdk.ToolSpec{Description: "Not in the workspace."}, func(context.Context, *bdk.Call, struct{}) (string, error) { return "", nil })
	return bdk.Project{
		Instructions: "You are terse.\n",
		Tools:        []bdk.NamedTool{{Name: "echo", Tool: script}, {Name: "server", Tool: server}},
		Skills:       append(skills(), bdk.NamedSkill{Name: "packed", Dir: "bot/skills/packed", Skill: bdk.Skill{Description: "Use when packing.", Markdown: "Pack."}}),
	}
}

func packed() map[string]string {
	return map[string]string{
		"bot/skills/packed/SKILL.md": "---\nname: packed\nlicense: none\n---\nPack.\n", "bot/skills/packed/scripts/run.sh": "#!/bin/sh\n",
		"bot/skills/packed/references/a.md": "A\n",
	}
}

func TestBaseHasTheAgentsFiles(t *testing.T) {
	t.Parallel()
	base, err := harness.Base(project(), folders(t, packed()))
	if err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, harness.Options{Skills: project().Skills}, workspace.Options{Base: base}, nil)
	files, err := b.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		data, err := b.ReadFile(t.Context(), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Path] = string(data)
		if isScript := strings.HasPrefix(string(data), "#!"); f.Exec != isScript {
			t.Errorf("%s: executable is %v", f.Path, f.Exec)
		}
	}
	want := map[string]string{
		"AGENTS.md":                                  harness.Catalog(project()),
		".agents/skills/research/SKILL.md":           "---\nname: \"research\"\ndescription: \"Use when a topic\\n is unfamiliar.\"\n---\n\nGather evidence.\n",
		".agents/skills/research/references/list.md": "- one\n",
		".agents/skills/style/SKILL.md":              "---\nname: \"style\"\ndescription: \"Use when writing: prose\"\n---\n\nBe brief.\n",
		".agents/skills/packed/SKILL.md":             "---\nname: packed\nlicense: none\n---\nPack.\n",
		".agents/skills/packed/scripts/run.sh":       "#!/bin/sh\n",
		".agents/skills/packed/references/a.md":      "A\n",
		".agents/tools/echo":                         "#!/bin/sh\ncat\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestCatalogNamesScriptsAndSkills(t *testing.T) {
	t.Parallel()
	got := harness.Catalog(project())
	for _, want := range []string{
		"You are terse.\n\n## Tools\n", "### echo\n\nEchoes a text.\n\n- Run: `.agents/tools/echo`\n- Input: `{", `"text"`,
		"- research (`.agents/skills/research/SKILL.md`): Use when a topic is unfamiliar.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "server") {
		t.Errorf("a server tool is in the catalog:\n%s", got)
	}
	if got := harness.Catalog(bdk.Project{}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if got := harness.Catalog(bdk.Project{Agent: bdk.Agent{Instructions: "Mine."}, Instructions: "Other."}); got != "Mine.\n" {
		t.Errorf("instructions of the agent: %q", got)
	}
}

func TestBaseRefusesWhatCannotBeInAWorkspace(t *testing.T) {
	t.Parallel()
	dir := folders(t, packed())
	outside := folders(t, packed())
	for name, target := range map[string]string{"bot/skills/linked": "packed", "bot/skills/out": filepath.Join(outside, "bot"), "bot/skills/packed2/x": "../packed/SKILL.md"} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, p); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]bdk.NamedSkill{
		"a folder that is a link":           {Name: "x", Dir: "bot/skills/linked"},
		"a folder behind a link that leads": {Name: "x", Dir: "bot/skills/out/skills/packed"},
		"a link in the folder":              {Name: "x", Dir: "bot/skills/packed2"},
		"a folder above":                    {Name: "x", Dir: "../" + filepath.Base(filepath.Dir(outside))},
		"a file":                            {Name: "x", Dir: "bot/skills/packed/SKILL.md"},
		"no folder":                         {Name: "x", Dir: "bot/skills/none"},
		"a path that leads out":             {Name: "x", Skill: bdk.Skill{Files: map[string]string{"../../../etc/passwd": ""}}},
		"a name that leads out":             {Name: "../../..", Skill: bdk.Skill{}},
		"a second SKILL.md":                 {Name: "x", Skill: bdk.Skill{Files: map[string]string{"SKILL.md": ""}}},
	} {
		if _, err := harness.Base(bdk.Project{Skills: []bdk.NamedSkill{s}}, dir); err == nil || !strings.Contains(err.Error(), "the skill "+s.Name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := harness.Base(bdk.Project{Skills: []bdk.NamedSkill{{Name: "x", Dir: "bot/skills/packed2"}}}, dir)
	if bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
		t.Errorf("a link: %v", err)
	}
}

func TestSkillLoadsTextAndFiles(t *testing.T) {
	t.Parallel()
	base, err := harness.Base(project(), folders(t, packed()))
	if err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, harness.Options{Skills: project().Skills}, workspace.Options{Base: base}, nil)
	for _, c := range []struct{ in, want string }{
		{`{"name":"style"}`, "Be brief."},
		{`{"name":"research"}`, "Gather evidence.\n\n---\nThe skill has these files in the workspace; paths in its text are relative to .agents/skills/research/:\n" +
			"- .agents/skills/research/references/list.md (6 bytes)"},
		{`{"name":"packed"}`, "Pack.\n\n---\nThe skill has these files in the workspace; paths in its text are relative to .agents/skills/packed/:\n" +
			"- .agents/skills/packed/references/a.md (2 bytes)\n- .agents/skills/packed/scripts/run.sh (10 bytes, executable)"},
		{`{"name":"packed","file":"references/a.md"}`, "1\tA"},
		{`{"name":"packed","file":"./references/a.md"}`, "1\tA"},
		{`{"name":"packed","file":".agents/skills/packed/references/a.md"}`, "1\tA"},
	} {
		if diff := cmp.Diff(c.want, b.answer(t, "skill", c.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
	b.fails(t, "skill", `{"name":"pack"}`, `there is no skill "pack": the skills are research, style, packed`)
	b.fails(t, "skill", `{"name":"packed","file":"../research/SKILL.md"}`, "cannot be used")
	b.fails(t, "skill", `{"name":"packed","file":"a.md"}`, "did you mean .agents/skills/packed/references/a.md")
}
