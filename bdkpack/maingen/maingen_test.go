package maingen_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata")

func TestGeneratedProgramHasTheGoldenText(t *testing.T) {
	t.Parallel()
	def := func(pkg, name, file string) project.Definition {
		return project.Definition{Package: pkg, Var: name, File: file}
	}
	config, text := def("example.com/a/bot", "Agent", "bot/agent.go"), def("example.com/b/agent", "Instructions", "agent/instructions.go")
	a := project.Agent{
		Slug: "a", Config: &config, Instructions: project.Instructions{Text: "A"},
		Tools: []project.Named{
			{Name: "greet", Definition: def("example.com/a/bot/tools", "Greet", "bot/tools/greet.go")},
			{Name: "wave", Definition: def("example.com/a/bot/tools", "WaveBack", "bot/tools/wave.go")},
		},
	}
	b := project.Agent{
		Slug: "b", Instructions: project.Instructions{Definition: &text},
		Tools: []project.Named{{Name: "greet", Definition: def("example.com/b/agent/tools", "Greet", "agent/tools/greet.go")}},
	}
	skill, sub, subText := def("example.com/c/bot/skills", "Research", "bot/skills/research.go"), def("example.com/c/bot/subagents/helper", "Agent", "bot/subagents/helper/agent.go"), def("example.com/c/bot/subagents/helper", "Instructions", "bot/subagents/helper/instructions.go")
	c := project.Agent{
		Slug: "c", Instructions: project.Instructions{Text: "C"}, Seed: "bot/sandbox/workspace",
		Skills: []project.Skill{
			{Name: "deploy", File: "bot/skills/deploy/SKILL.md", Dir: "bot/skills/deploy", Description: "Use when `it`\nis deployed.", Markdown: "Do it.\n"},
			{Name: "research", File: skill.File, Definition: &skill},
		},
		Subagents: []project.Subagent{
			{Name: "helper", Config: sub, Instructions: project.Instructions{Definition: &subText}},
			{Name: "other", Config: def("example.com/c/bot/subagents/other", "Agent", "bot/subagents/other/agent.go"), Instructions: project.Instructions{Text: "Be \"other\"."}},
			{Name: "plain", Config: def("example.com/c/bot/subagents/plain", "Agent", "bot/subagents/plain/agent.go")},
		},
	}
	kinds := def("example.com/d/bot", "Artifacts", "bot/artifacts.go")
	one := func(dir, name string) []project.Named {
		return []project.Named{{Name: name, Definition: def("example.com/d/bot/"+dir, "One", "bot/"+dir+"/"+name+".go")}}
	}
	pulse := def("example.com/d/bot/schedules", "Pulse", "bot/schedules/pulse.go")
	d := project.Agent{
		Slug: "d", Instructions: project.Instructions{Text: "D"}, ArtifactKinds: &kinds,
		Hooks: one("hooks", "audit/usage"), Channels: one("channels", "review"),
		Schedules: []project.Schedule{
			{Name: "daily", File: "bot/schedules/daily.md", Cron: "0 9 * * 1-5", Prompt: "Say \"hello\"."},
			{Name: "pulse", File: pulse.File, Cron: "@hourly", Definition: &pulse},
		},
		Connections: one("mcp-connections", "linear"), HostConnections: one("host-connections", "inventory"),
	}
	for name, c := range map[string]struct {
		generate func([]project.Agent) ([]byte, error)
		agents   []project.Agent
	}{
		"markdown_only": {maingen.Generate, []project.Agent{{Slug: "quiet", Instructions: project.Instructions{Text: "Say `nothing`.\n\n\"Ever\"."}}}},
		"two_agents":    {maingen.Generate, []project.Agent{a, b}},
		"all_parts":     {maingen.Generate, []project.Agent{c}},
		"slots":         {maingen.Generate, []project.Agent{d}},
		"functions":     {maingen.GenerateFunctions, []project.Agent{a}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.generate(c.agents)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "generated", name+".go.golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("generated text (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzGeneratedProgramIsGoWhateverTheInstructionsSay(f *testing.F) {
	for _, seed := range []string{"", "plain", "`\"\\\n", "\x00\xff\u2028", "}))}; func init() {"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src, err := maingen.Generate([]project.Agent{{Slug: "a", Instructions: project.Instructions{Text: text}}})
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), "\n"); n > 20 {
			t.Errorf("the text has spilled into the program: %d lines\n%s", n, src)
		}
	})
}
