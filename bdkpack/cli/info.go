package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
)

type infoOptions struct {
	dir  string
	json bool
}

func newInfoCmd(io *IO) *cobra.Command {
	var opts infoOptions
	cmd := &cobra.Command{
		Use:   "info [dir]",
		Short: "show what was discovered of an agent",
		Long: "info builds the agents in a folder and shows what each consists of: model, instructions, tools and their input,\n" +
			"skills, subagents, schedules and the first files of sessions.",
		Args: oneFolder(&opts.dir),
		RunE: func(cmd *cobra.Command, _ []string) error { return infoRun(cmd.Context(), io, opts) },
	}
	dirFlag(cmd, &opts.dir)
	cmd.Flags().BoolVar(&opts.json, "json", false, "print it as JSON, with the whole schemas")
	return cmd
}

func infoRun(ctx context.Context, io *IO, opts infoOptions) error {
	program, _, err := build(ctx, io, opts.dir)
	if err != nil {
		return err
	}
	return infoShow(ctx, io, opts, program)
}

// infoShow shows what a program says about its agents. The error is that of the program, which fails if a tool's definition
// is wrong.
func infoShow(ctx context.Context, io *IO, opts infoOptions, program *maingen.Program) error {
	c, err := launchConfig("info", program)
	if err != nil {
		return err
	}
	env, err := programEnv(io, c)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	failed := runProgram(ctx, io, program.Path, env, &out)
	if failed != nil && !json.Valid(out.Bytes()) {
		return failed
	}
	if opts.json {
		return cmp.Or(writeJSON(io.Out, json.RawMessage(out.Bytes())), failed)
	}
	var d description
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		return fmt.Errorf("reading what the agent program says: %w", err)
	}
	_, err = fmt.Fprint(io.Out, d.text(program))
	return cmp.Or(err, failed)
}

// description is what an agent program says about its agents, as far as it is shown to people.
type description struct {
	Agents []struct {
		Slug        string                  `json:"slug"`
		Name        string                  `json:"name"`
		Description string                  `json:"description"`
		Model       string                  `json:"model"`
		Fallbacks   []string                `json:"fallbacks"`
		Tools       []toolDescription       `json:"tools"`
		Harness     []string                `json:"harness"`
		Result      json.RawMessage         `json:"result"`
		Seed        string                  `json:"seed"`
		Skills      []partDescription       `json:"skills"`
		Subagents   []partDescription       `json:"subagents"`
		Hooks       []hookDescription       `json:"hooks"`
		Kinds       []partDescription       `json:"artifactKinds"`
		Schedules   []scheduleDescription   `json:"schedules"`
		Connections []connectionDescription `json:"connections"`
		Diagnostics diag.List               `json:"diagnostics"`
	} `json:"agents"`
}

type scheduleDescription struct {
	Name   string      `json:"name"`
	Source string      `json:"source"`
	Cron   string      `json:"cron"`
	Next   []time.Time `json:"next"`
	Error  string      `json:"error"`
}

type toolDescription struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Effect      string `json:"effect"`
	Source      string `json:"source"`
	Execution   string `json:"execution"`
	Approval    string `json:"approval"`
	Error       string `json:"error"`
	InputSchema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	} `json:"inputSchema"`
}

// partDescription is a skill or a subagent.
type partDescription struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model"` // "" if it is the agent's
	Source      string `json:"source"`
}

// String returns the part in a few lines.
func (p partDescription) String() string {
	head := p.Name + "  "
	if p.Model != "" {
		head += p.Model + "  "
	}
	return head + p.Source + strings.ReplaceAll("\n"+p.Description, "\n", "\n"+strings.Repeat(" ", 16))
}

// hookDescription is a hook.
type hookDescription struct {
	Name   string   `json:"name"`
	Events []string `json:"events"`
	Source string   `json:"source"`
	Error  string   `json:"error"`
}

// String returns the hook in a few lines.
func (h hookDescription) String() string {
	text := h.Name + "  " + h.Source + "\n" + strings.Repeat(" ", 16) + cmp.Or(strings.Join(h.Events, ", "), "no events")
	if h.Error != "" {
		text += "\n" + strings.Repeat(" ", 16) + "mistake: " + h.Error
	}
	return text
}

// each writes a row for each of some parts.
func each[T fmt.Stringer](row func(what, value string), what string, parts []T) {
	for _, p := range parts {
		row(what, p.String())
	}
}

// connectionDescription is a connection.
type connectionDescription struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Transport   string   `json:"transport"`
	Agent       string   `json:"agent"`
	Advertised  bool     `json:"advertised"`
	Approval    string   `json:"approval"`
	Variables   []string `json:"variables"`
	Source      string   `json:"source"`
	Error       string   `json:"error"`
}

// String returns the connection in a few lines.
func (c connectionDescription) String() string {
	about := []string{"over " + c.Transport}
	if c.Agent != "" {
		about = []string{"the agent " + c.Agent}
	}
	if c.Advertised {
		about = append(about, "offered to the model")
	} else {
		about = append(about, "for code only")
	}
	if c.Approval != "never" {
		about = append(about, "approval "+c.Approval)
	}
	if len(c.Variables) > 0 {
		about = append(about, "variables "+strings.Join(c.Variables, ", "))
	}
	lines := []string{c.Name + "  " + c.Source, strings.Join(about, "; ")}
	if c.Description != "" {
		lines = append(lines, c.Description)
	}
	if c.Error != "" {
		lines = append(lines, "mistake: "+c.Error)
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n"+strings.Repeat(" ", 16))
}

func (d description) text(program *maingen.Program) string {
	var b strings.Builder
	sources := map[string]string{}
	for _, a := range program.Workspace.Agents {
		switch in := a.Instructions; {
		case len(in.Files) > 0:
			sources[a.Slug] = strings.Join(in.Files, ", ")
		case in.Definition != nil:
			sources[a.Slug] = in.Definition.File
		default:
			sources[a.Slug] = "the agent's configuration"
		}
	}
	for i, a := range d.Agents {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", a.Slug)
		row := func(what, value string) {
			if value != "" {
				fmt.Fprintf(&b, "  %-14s%s\n", what, value)
			}
		}
		row("name", a.Name)
		row("description", a.Description)
		row("model", strings.Join(append([]string{a.Model}, a.Fallbacks...), ", then "))
		row("instructions", sources[a.Slug])
		for _, t := range a.Tools {
			row("tool", t.String())
			row("  error", strings.ReplaceAll(t.Error, "\n", "\n"+strings.Repeat(" ", 16)))
		}
		if len(a.Tools) == 0 {
			row("tools", "none")
		}
		row("harness", strings.Join(a.Harness, ", "))
		each(row, "skill", a.Skills)
		each(row, "subagent", a.Subagents)
		each(row, "hook", a.Hooks)
		for _, s := range a.Schedules {
			row("schedule", strings.TrimPrefix(dueLine(s.Name, s.Cron, s.Next), "schedule ")+"  "+s.Source)
			row("  error", strings.ReplaceAll(s.Error, "\n", "\n"+strings.Repeat(" ", 16)))
		}
		each(row, "connection", a.Connections)
		each(row, "artifacts", a.Kinds)
		row("first files", a.Seed)
		if len(a.Result) > 0 {
			row("result", "JSON of a schema, see --json")
		}
		if len(a.Diagnostics) == 0 {
			row("diagnostics", "none")
			continue
		}
		row("diagnostics", fmt.Sprintf("%s, %s", plural(a.Diagnostics.Errors(), "error"), plural(len(a.Diagnostics)-a.Diagnostics.Errors(), "warning")))
	}
	return b.String()
}

// String returns the tool in a few lines: name, input with optional fields in brackets, effect, source and description.
func (t toolDescription) String() string {
	var fields []string
	required := map[string]bool{}
	for _, name := range t.InputSchema.Required {
		required[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(t.InputSchema.Properties)) {
		if !required[name] {
			name = "[" + name + "]"
		}
		fields = append(fields, name)
	}
	effect := t.Effect
	if effect == "conditional" {
		effect = "effect depends on the input"
	}
	if t.Execution == "agent" {
		effect += ", a script"
	}
	switch t.Approval {
	case "always":
		effect += ", needs approval"
	case "conditional":
		effect += ", may need approval"
	}
	indented := strings.ReplaceAll("\n"+t.Description, "\n", "\n"+strings.Repeat(" ", 16))
	return fmt.Sprintf("%s(%s)  %s  %s%s", t.Name, strings.Join(fields, ", "), effect, t.Source, indented)
}
