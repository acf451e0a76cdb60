// Package harness has the tools that an agent gets without writing them: they read and change the files of the session, run
// commands beside them, load skills and delegate to subagents. They are ordinary tools, made with [bdk.DefineTool].
//
// The effect of all but shell and tag_artifact is [bdk.Read]. Those that write do so in the session's own files alone, which are kept together
// with the result of the call: what an interrupted call has written is not there when it is made again, unless another call
// ended in between. A dry-run session works on its files, and delegates, as any other does. A shell may reach beyond the files,
// so a dry-run session does not run its commands.
//
// The package also makes what every workspace of an agent has below the session's own files, see [Base].
package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
)

// source is where the tools say that they are defined.
const source = "the harness"

// Options are what the tools of the harness are made for.
type Options struct {
	Allow     []string         // Agent.Tools: nil: skill, task and tag_artifact, where there is use for them; otherwise exactly those named
	Skills    []bdk.NamedSkill // without any there is no skill tool
	Subagents []bdk.Subagent   // without any there is no task tool
	Kinds     bdk.ArtifactKinds
	Scripts   exec.Runner // runs the commands of shell; nil: it answers that this host runs none
}

// Tools returns the tools that are offered, in the order of their names. The task tool is a definition only: who runs the turn
// delegates, and running it is an error. The error is that of [Check].
func Tools(o Options) ([]bdk.NamedTool, error) {
	if err := Check(o.Allow); err != nil {
		return nil, err
	}
	changes := newLocks()
	all := map[string]func() bdk.Tool{
		bdk.ToolRead:  readTool,
		bdk.ToolWrite: func() bdk.Tool { return writeTool(changes) },
		bdk.ToolEdit:  func() bdk.Tool { return editTool(changes) },
		bdk.ToolList:  listTool,
		bdk.ToolGlob:  globTool,
		bdk.ToolGrep:  grepTool,
		bdk.ToolShell: func() bdk.Tool { return shellTool(o.Scripts) },
		bdk.ToolSkill: func() bdk.Tool { return skillTool(o.Skills) },
		bdk.ToolTask:  func() bdk.Tool { return taskTool(o.Subagents) },

		bdk.ToolTagArtifact: func() bdk.Tool { return artifactTool(o.Kinds) },
	}
	var tools []bdk.NamedTool
	for _, name := range slices.Sorted(slices.Values(bdk.HarnessTools())) {
		if o.offers(name) {
			tools = append(tools, bdk.NamedTool{Name: name, Source: source, Tool: all[name]()})
		}
	}
	return tools, nil
}

// Check returns a bdkerr.InvalidRequest error that names the entries of allow, an agent's Tools, that are no tools of the
// harness; nil if all are.
func Check(allow []string) error {
	var unknown []string
	for _, name := range allow {
		if !slices.Contains(bdk.HarnessTools(), name) {
			unknown = append(unknown, fmt.Sprintf("%.60q", name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return bdkerr.New(bdkerr.InvalidRequest, "the Tools of the agent name %s: those of the harness are %s, and the agent's own are offered without being named",
		strings.Join(unknown, ", "), strings.Join(bdk.HarnessTools(), ", "))
}

// offers reports whether a tool of the harness is offered.
func (o Options) offers(name string) bool {
	switch {
	case name == bdk.ToolSkill && len(o.Skills) == 0, name == bdk.ToolTask && len(o.Subagents) == 0:
		return false
	case o.Allow == nil:
		return name == bdk.ToolSkill || name == bdk.ToolTask || name == bdk.ToolTagArtifact && o.Kinds.Tool
	}
	return slices.Contains(o.Allow, name)
}

// Instructions returns what the system prompt says of the skills: their names and descriptions, and how to load one. It is ""
// if there are none, or no tool to load them with.
func Instructions(o Options) string {
	how := ""
	switch {
	case len(o.Skills) == 0:
	case o.offers(bdk.ToolSkill):
		how = "load it with the tool skill"
	case o.offers(bdk.ToolRead):
		how = "read " + skillFile("<name>") + " in the workspace"
	}
	if how == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Skills\n\nA skill is a procedure for a kind of task. When one fits, " + how + " before you begin, and follow it. The skills are:\n\n")
	for _, s := range o.Skills {
		fmt.Fprintf(&b, "- %s: %s\n", s.Name, oneLine(s.Skill.Description))
	}
	return b.String()
}

// oneLine returns a text without line ends.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
