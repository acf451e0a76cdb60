package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/harness"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// bench is the tools and a workspace that they work on.
type bench struct {
	*workspace.Workspace
	tools map[string]bdk.Tool
}

// setup returns a workspace with the given files and all tools.
func setup(t testing.TB, o harness.Options, files map[string]string) bench {
	t.Helper()
	return setupOn(t, o, workspace.Options{}, files)
}

func setupOn(t testing.TB, o harness.Options, wo workspace.Options, files map[string]string) bench {
	t.Helper()
	wo.TempDir = t.TempDir()
	w, err := workspace.New(blob.New(memblob.New()), wo).Open(t.Context(), "", files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Allow = bdk.HarnessTools()
	list, err := harness.Tools(o)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{w, map[string]bdk.Tool{}}
	for _, n := range list {
		b.tools[n.Name] = n.Tool
	}
	return b
}

// call runs a tool as the runtime does.
func (b bench) call(ctx context.Context, name, input string) (any, error) {
	raw := json.RawMessage(input)
	if err := b.tools[name].CheckInput(raw); err != nil {
		return nil, fmt.Errorf("refused: %w", err)
	}
	return b.tools[name].Run(ctx, &bdk.Call{ID: "call_1", Session: bdk.SessionInfo{ID: "s1"}, Workspace: b}, raw)
}

// answer returns what a tool answers, which must be no error.
func (b bench) answer(t testing.TB, name, input string) string {
	t.Helper()
	out, err := b.call(t.Context(), name, input)
	if err != nil {
		t.Fatalf("%s %s: %v", name, input, err)
	}
	s, ok := out.(string)
	if !ok {
		t.Fatalf("%s %s: the answer is a %T", name, input, out)
	}
	return s
}

// fails checks that a tool answers with an error that has the text want.
func (b bench) fails(t testing.TB, name, input, want string) {
	t.Helper()
	out, err := b.call(t.Context(), name, input)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %s: %v, %v: want an error with %q", name, input, out, err, want)
	}
}

// input returns an input as JSON.
func input(t testing.TB, v map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func skills() []bdk.NamedSkill {
	return []bdk.NamedSkill{
		{Name: "research", Skill: bdk.Skill{Description: "Use when a topic\n is unfamiliar.", Markdown: "Gather evidence.\n", Files: map[string]string{"references/list.md": "- one\n"}}},
		{Name: "style", Skill: bdk.Skill{Description: "Use when writing: prose", Markdown: "Be brief."}},
	}
}

func subagents() []bdk.Subagent {
	return []bdk.Subagent{{Name: "critic", Agent: bdk.Agent{Description: "Finds\nfaults."}}, {Name: "writer", Agent: bdk.Agent{Description: "Writes."}}}
}

func TestToolsOffersWhatTheAgentAllows(t *testing.T) {
	t.Parallel()
	both := harness.Options{Skills: skills(), Subagents: subagents()}
	for _, c := range []struct {
		name  string
		opts  harness.Options
		allow []string
		want  []string
	}{
		{"nothing is given", harness.Options{}, nil, nil},
		{"nil with kinds of artifacts", harness.Options{Kinds: bdk.ArtifactKinds{Tool: true}}, nil, []string{"tag_artifact"}},
		{"nil with skills and subagents", both, nil, []string{"skill", "task"}},
		{"nil with skills alone", harness.Options{Skills: skills()}, nil, []string{"skill"}},
		{"empty", both, []string{}, nil},
		{"only those named", both, []string{"write", "read", "read"}, []string{"read", "write"}},
		{"named, but there are no skills or subagents", harness.Options{}, []string{"skill", "task", "ls"}, []string{"ls"}},
		{"all", both, bdk.HarnessTools(), []string{"edit", "glob", "grep", "ls", "read", "shell", "skill", "tag_artifact", "task", "write"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.opts.Allow = c.allow
			tools, err := harness.Tools(c.opts)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range tools {
				names = append(names, n.Name)
				if err := n.Tool.Err(); err != nil || n.Source == "" {
					t.Errorf("%s: %v, source %q", n.Name, err, n.Source)
				}
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownToolsAreNamedWithThoseThatThereAre(t *testing.T) {
	t.Parallel()
	err := harness.Check([]string{"read", "raed", "inspect_pr"})
	if bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
		t.Fatalf("Check: %v", err)
	}
	for _, want := range append(bdk.HarnessTools(), `"raed"`, `"inspect_pr"`) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", err, want)
		}
	}
	if _, err := harness.Tools(harness.Options{Allow: []string{"raed"}}); err == nil {
		t.Error("Tools takes an unknown name")
	}
	if err := harness.Check(bdk.HarnessTools()); err != nil {
		t.Error(err)
	}
}

// A dry-run session works on its files and delegates; what may reach beyond the files is not run.
func TestWhatReachesBeyondTheFilesIsAWrite(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{Skills: skills(), Subagents: subagents()}, nil)
	var writes []string
	for name, tool := range b.tools {
		if tool.EffectOf(json.RawMessage(`{}`)) == bdk.Write {
			writes = append(writes, name)
		}
	}
	slices.Sort(writes)
	if diff := cmp.Diff([]string{"shell", "tag_artifact"}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	answer, err := b.tools["shell"].DryRunAnswer(json.RawMessage(`{"command":"ls"}`))
	if s, ok := answer.(string); err != nil || !ok || !strings.Contains(s, "not run") {
		t.Errorf("shell in a dry run: %v, %v", answer, err)
	}
}

func TestTagArtifactKnowsTheKinds(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{Kinds: bdk.ArtifactKinds{Tool: true, Kinds: map[string]bdk.ArtifactKind{
		"link": {Description: "Where\nit is."}, "score": {Description: "Points.", Data: bdk.RawResult(json.RawMessage(`{"type":"object"}`))},
	}}}, nil)
	description := b.tools["tag_artifact"].Spec().Description
	if want := "The kinds are:\n- link: Where it is.\n- score: Points. Its data matches {\"type\":\"object\"}"; !strings.HasSuffix(description, want) {
		t.Errorf("got %s", description)
	}
	if _, err := b.tools["tag_artifact"].Run(t.Context(), &bdk.Call{}, json.RawMessage(`{"kind":"link","key":"k"}`)); err == nil {
		t.Error("an artifact was recorded nowhere")
	}
}

func TestTaskKnowsTheSubagents(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{Subagents: subagents()}, nil)
	description := b.tools["task"].Spec().Description
	for _, want := range []string{"- critic: Finds faults.", "- writer: Writes."} {
		if !strings.Contains(description, want) {
			t.Errorf("the description does not say %q:\n%s", want, description)
		}
	}
	b.fails(t, "task", `{"name":"editor","prompt":"x"}`, "refused")
	b.fails(t, "task", `{"name":"critic"}`, "refused")
	b.fails(t, "task", `{"name":"critic","prompt":"x"}`, "only a turn can delegate")
}

func TestInstructionsAdvertiseSkillsByDescription(t *testing.T) {
	t.Parallel()
	list := "- research: Use when a topic is unfamiliar.\n- style: Use when writing: prose\n"
	for _, c := range []struct {
		name string
		opts harness.Options
		want []string
	}{
		{"with the tool skill", harness.Options{Skills: skills()}, []string{"the tool skill", list}},
		{"with the tool read", harness.Options{Skills: skills(), Allow: []string{"read"}}, []string{"read .agents/skills/<name>/SKILL.md", list}},
		{"with neither", harness.Options{Skills: skills(), Allow: []string{"ls"}}, nil},
		{"without skills", harness.Options{}, nil},
	} {
		got := harness.Instructions(c.opts)
		if (got == "") != (c.want == nil) {
			t.Errorf("%s: %q", c.name, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in:\n%s", c.name, want, got)
			}
		}
	}
}

func TestToolsWithoutAWorkspaceSaySo(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{Skills: skills(), Scripts: &runner{}}, nil)
	for name, in := range map[string]string{
		"read": `{"path":"a"}`, "write": `{"path":"a","content":""}`, "edit": `{"path":"a","old":"x","new":"y"}`, "ls": `{}`,
		"glob": `{"pattern":"*"}`, "grep": `{"pattern":"x"}`, "shell": `{"command":"ls"}`, "skill": `{"name":"research"}`,
	} {
		_, err := b.tools[name].Run(t.Context(), nil, json.RawMessage(in))
		if err == nil || !strings.Contains(err.Error(), "no workspace") {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, err := b.tools["skill"].Run(t.Context(), nil, json.RawMessage(`{"name":"style"}`))
	if out != "Be brief." || err != nil {
		t.Errorf("a skill without files: %v, %v", out, err)
	}
}
