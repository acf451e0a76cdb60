package project

import (
	"go/types"
	"slices"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// What the fuzz tests of the parsers call.
var (
	Nearest      = nearest
	Snake        = snake
	JoinMarkdown = joinMarkdown
)

// IsToolName says whether a file of tools/ may have a name.
func IsToolName(name string) bool { return toolPattern().MatchString(name) }

// ModuleError returns the messages that the go command's standard error becomes.
func ModuleError(stderr string) []string {
	l := &loader{ws: &Workspace{Module: Module{Dir: "/module"}}, sources: sources{}}
	l.moduleError(stderr)
	var messages []string
	for _, d := range l.diags {
		messages = append(messages, d.Message)
	}
	return messages
}

// Explain returns an error of the compiler as one line, and what to do about it.
func Explain(text string) (what, help string) { return (&loader{ws: &Workspace{}}).explain(text, nil) }

// Refused says whether a struct is found unfit to be a tool's input.
func Refused(t types.Type) bool {
	return (&shape{input: true}).ownForm(t) || slices.ContainsFunc(misfits(t, true), func(m misfit) bool { return m.severity == diag.Error })
}

// ParseSkill returns what a skill's file says, and the lines of its mistakes.
func ParseSkill(data []byte) (name, description, body string, lines []int) {
	s := parseSkill(data)
	for _, f := range s.faults {
		lines = append(lines, f.line)
	}
	return s.name, s.description, s.body, lines
}

// ParseSchedule returns what a schedule's file says, and what is wrong with it.
func ParseSchedule(data []byte) (cron, prompt string, faults []string) {
	s := parseSchedule(data)
	for _, f := range s.faults {
		faults = append(faults, f.what+f.help)
	}
	return s.cron, s.prompt, faults
}
