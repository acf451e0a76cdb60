// Package e2e_test runs the suite for deployed agents against the embedded host: the program that bdk serve builds, and the
// same host within the test, which the race detector watches.
package e2e_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/host/localhost"
	"github.com/bdk-lambda/bdk/shared/launch"
	"github.com/bdk-lambda/bdk/test/agents/workshop/bot"
	"github.com/bdk-lambda/bdk/test/agents/workshop/bot/hooks"
	"github.com/bdk-lambda/bdk/test/agents/workshop/bot/hooks/audit"
	connections "github.com/bdk-lambda/bdk/test/agents/workshop/bot/mcp-connections"
	"github.com/bdk-lambda/bdk/test/agents/workshop/bot/schedules"
	"github.com/bdk-lambda/bdk/test/agents/workshop/bot/subagents/researcher"
	"github.com/bdk-lambda/bdk/test/agents/workshop/bot/tools"
	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

const (
	workshop = "../agents/workshop"
	script   = workshop + "/model.yaml"
)

// TestInProcess runs the suite against a host within the test.
func TestInProcess(t *testing.T) {
	t.Parallel()
	suite.Run(t, tokens(inProcess(t, script, launch.Config{BearerTokens: []string{"ann:a-secret", "bob:b-secret"}})))
}

// TestShipped runs the suite against what users run.
func TestShipped(t *testing.T) {
	t.Parallel()
	s := serveWith(t, []string{"FAR_MCP=" + suite.Far(t), "FAR_KEY=" + suite.FarKey}, "--dir", workshop, "--state-root", t.TempDir(), "--bearer-token", "ann:a-secret", "--bearer-token", "bob:b-secret")
	suite.Run(t, tokens(s.target("workshop")))
}

// tokens has the target's principals send their tokens.
func tokens(target suite.Target) suite.Target {
	target.Sign = func(r *http.Request, principal string) {
		r.Header.Set("Authorization", "Bearer "+principal[:1]+"-secret")
	}
	return target
}

// inProcess starts a host within the test, which ends with it. Its model plays the given script.
func inProcess(t *testing.T, script string, config launch.Config) suite.Target {
	t.Helper()
	config.StateRoot, config.Banner, config.Roots = t.TempDir(), "{url}\n", map[string]string{"workshop": workshop}
	named := func(name string, tool bdk.Tool) bdk.NamedTool {
		return bdk.NamedTool{Name: name, Source: "bot/tools/" + name + ".go", Tool: tool}
	}
	env := map[string]string{"BDK_MODEL": "scripted:" + script, "FAR_MCP": suite.Far(t), "FAR_KEY": suite.FarKey}
	out, line := io.Pipe()
	program := localhost.Program{
		Projects: []bdk.Project{{
			Slug: "workshop", Agent: bot.Agent, Instructions: "Do what the first word of the message says.",
			Tools: []bdk.NamedTool{
				named("add", tools.Add), named("big", tools.Big), named("burst", tools.Burst), named("deaf", tools.Deaf), named("fail", tools.Fail),
				named("hand_in", tools.HandIn), named("hasty", tools.Hasty), named("inspect", tools.Inspect), named("jot", tools.Jot), named("note", tools.Note), named("notes", tools.Notes),
				named("promote", tools.Promote), named("relay", tools.Relay), named("release", tools.Release), named("remind", tools.Remind), named("shout", tools.Shout), named("slow", tools.Slow),
				named("stamp", tools.Stamp), named("stash", tools.Stash), named("tally", tools.Tally), named("trail", tools.Trail),
			},
			Connections: []bdk.NamedConnection{{Name: "far", Source: "bot/mcp-connections/far.go", Connection: connections.Far}},
			Skills: []bdk.NamedSkill{
				{Name: "deploy", Source: "bot/skills/deploy/SKILL.md", Dir: "bot/skills/deploy", Skill: bdk.Skill{Description: "Use when something goes to production.", Markdown: "Read references/checklist.md first.\n"}},
				{Name: "triage", Source: "bot/skills/triage.md", Skill: bdk.Skill{Description: "Use when a report has to be sorted.", Markdown: "Look for the first line that is wrong. Name it.\n"}},
			},
			Subagents: []bdk.Subagent{{Name: "researcher", Source: "bot/subagents/researcher/agent.go", Agent: researcher.Agent, Instructions: "Find out."}},
			Schedules: []bdk.NamedSchedule{
				{Name: "pulse", Source: "bot/schedules/pulse.go", Schedule: schedules.Pulse},
				{Name: "yearly", Source: "bot/schedules/yearly.md", Schedule: bdk.DefineSchedule(bdk.ScheduleSpec{Cron: "@yearly", Prompt: "once more"})},
			},
			ArtifactKinds: bot.Artifacts,
			Hooks: []bdk.NamedHook{
				{Name: "audit/trail", Source: "bot/hooks/audit/trail.go", Hook: audit.Trail}, {Name: "faulty", Source: "bot/hooks/faulty.go", Hook: hooks.Faulty},
			},
			Seed: "bot/sandbox/workspace",
		}},
		Config: config, Stdout: line, Stderr: io.Discard,
		Getenv: func(name string) string { return env[name] },
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		err := program.Run(ctx)
		_ = line.CloseWithError(io.EOF)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the host ended with: %v", err)
		}
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("the host did not start: %v", err)
	}
	return target(strings.TrimSpace(url), "workshop")
}

// target returns the target of an agent at a host.
func target(url, slug string) suite.Target {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return suite.Target{URL: url + "/" + slug, HostURL: url, HTTP: client, Expiry: 10 * time.Second}
}
