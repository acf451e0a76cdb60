package bdk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Mistakes in definitions are told with the files they are in.
func TestProjectsThatAreWrong(t *testing.T) {
	t.Parallel()
	if err := (bdk.Project{Slug: "a"}).Err(); err != nil {
		t.Errorf("an empty project: %v", err)
	}
	wrong := bdk.Project{
		Tools:         []bdk.NamedTool{{Name: "t", Source: "bot/tools/t.go"}},
		Skills:        []bdk.NamedSkill{{Name: "s", Source: "bot/skills/s.go", Skill: bdk.Skill{Markdown: " "}}},
		Subagents:     []bdk.Subagent{{Name: "r", Source: "bot/subagents/r/agent.go"}},
		Hooks:         []bdk.NamedHook{{Name: "h", Source: "bot/hooks/h.go", Hook: bdk.DefineHook(bdk.HookSpec{Timeout: time.Hour})}},
		ArtifactKinds: bdk.ArtifactKinds{Max: -1},
	}
	var got []string
	for line := range strings.Lines(wrong.Err().Error()) {
		head, _, _ := strings.Cut(line, ": ")
		got = append(got, head)
	}
	want := []string{"tool t (bot/tools/t.go)", "skill s (bot/skills/s.go)", "skill s (bot/skills/s.go)", "subagent r (bot/subagents/r/agent.go)", "hook h (bot/hooks/h.go)", "the kinds of artifacts"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}
