package project

import (
	"cmp"
	"fmt"
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/shared/cron"
)

// Schedule is a schedule and the name its path gave it.
type Schedule struct {
	Name       string      `json:"name"`
	File       string      `json:"file"`                 // relative to the agent's folder, with slashes
	Cron       string      `json:"cron"`                 // that it is due at, see package cron
	Prompt     string      `json:"prompt,omitempty"`     // of the Markdown
	Definition *Definition `json:"definition,omitempty"` // nil: Prompt is given
}

// scheduleText is what the Markdown file of a schedule says.
type scheduleText struct {
	cron, prompt string
	faults       []scheduleFault
}

// scheduleFault is a mistake in the file of a schedule.
type scheduleFault struct {
	code       string
	line       int // 0: the file as a whole
	what, help string
}

func (s *scheduleText) fault(code string, line int, help, format string, args ...any) {
	s.faults = append(s.faults, scheduleFault{code, line, fmt.Sprintf(format, args...), help})
}

// parseSchedule reads Markdown with front matter: YAML between a first line --- and the next one, whose only key is cron. What begins with * or @
// need not be in quotes, though YAML wants it.
func parseSchedule(data []byte) (s scheduleText) {
	const form = "begin the file with front matter, such as ---, cron: 0 9 * * 1-5, ---, each on a line of its own"
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\uFEFF"), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		s.fault(codeScheduleFile, 0, form, "the schedule does not say when it is due")
		return s
	}
	front, body, closed := cutFrontMatter(rest)
	if !closed {
		s.fault(codeScheduleFile, 1, "close it with a line --- before the text", "the front matter is not closed")
		return s
	}
	if s.prompt = joinMarkdown([][]byte{[]byte(body)}); s.prompt == "" {
		s.fault(codeEmpty, 0, "write what the agent is to do, below the front matter", "the schedule has no text")
	}
	front = regexp.MustCompile(`(?m)^cron:[ \t]+([*@][^"\n#]*)`).ReplaceAllStringFunc(front, func(line string) string {
		return `cron: "` + strings.TrimSpace(strings.TrimPrefix(line, "cron:")) + `" `
	})
	fields, err := decodeYAML(front)
	if err != nil {
		line, what := yamlPlace(err)
		s.fault(codeScheduleFile, line+1, form, "%s", what)
		return s
	}
	found := false
	for _, f := range fields {
		key := fmt.Sprint(f.Key)
		line := 1 + lineOf(front, key)
		switch text, ok := f.Value.(string); {
		case key == "cron" && ok:
			found = true
			if _, err := cron.Parse(text); err != nil {
				s.fault(codeCron, line, "cron is minute, hour, day, month and day of the week in UTC, such as 0 9 * * 1-5", "%v", err)
			}
			s.cron = text
		case key == "cron":
			found = true
			s.fault(codeCron, line, "write cron as text, such as cron: 0 9 * * 1-5", "cron is no text")
		case strings.EqualFold(key, "timezone") || strings.EqualFold(key, "tz"):
			s.fault(codeScheduleFile, line, "remove it, and give cron in UTC", "the key %s has no meaning: schedules are in UTC", key)
		default:
			s.fault(codeScheduleFile, line, "remove it; the only key is cron", "the key %.80s has no meaning", key)
		}
	}
	if !found {
		s.fault(codeScheduleFile, 1, form, "the schedule does not say when it is due")
	}
	return s
}

// addSchedule reads the Markdown of a schedule.
func (l *loader) addSchedule(f *folder, path, name string) {
	data, ok := l.readText(path)
	if !ok {
		return
	}
	text := parseSchedule(data)
	for _, fault := range text.faults {
		l.fail(fault.code, diag.Pos{File: path, Line: fault.line}, fault.help, "%s", fault.what)
	}
	if len(text.faults) == 0 {
		f.agent.Schedules = append(f.agent.Schedules, Schedule{Name: name, File: f.rel(path), Cron: text.cron, Prompt: text.prompt})
	}
}

// sortSchedules puts the schedules in order and complains about two of one name.
func (l *loader) sortSchedules(f *folder) {
	slices.SortStableFunc(f.agent.Schedules, func(a, b Schedule) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File)) })
	for i, s := range f.agent.Schedules {
		if i > 0 && f.agent.Schedules[i-1].Name == s.Name {
			l.fail(codeScheduleFile, diag.Pos{File: filepath.Join(f.agent.Dir, filepath.FromSlash(s.File))}, "rename one of them",
				"%s defines the schedule %s, too", f.agent.Schedules[i-1].File, s.Name)
		}
	}
}

// checkSchedule looks for mistakes in the value of a bdk.Schedule, and returns when it is due.
func (v *view) checkSchedule(one variable) string {
	const unknown = "write it as bdk.DefineSchedule(bdk.ScheduleSpec{Cron: …}) in this file, with a constant Cron"
	call, ok := ast.Unparen(one.value).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 || v.definer(call, "DefineSchedule") == "" {
		v.fail(codeScheduleSpec, one.obj.Pos(), unknown, "when %s is due is not known without running it", one.obj.Name())
		return ""
	}
	spec, ok := v.literal(call.Args[0])
	if !ok {
		v.fail(codeScheduleSpec, call.Args[0].Pos(), unknown, "when %s is due is not known without running it", one.obj.Name())
		return ""
	}
	v.checkLimits(spec, "Timeout")
	v.checkPurpose(spec)
	value := field(spec, "Cron")
	text, known := v.constant(value)
	switch _, err := cron.Parse(text); {
	case value != nil && !known:
		v.fail(codeScheduleSpec, value.Pos(), "write it as a constant", "when %s is due is not known without running it", one.obj.Name())
	case err != nil:
		v.fail(codeCron, orPos(value, spec), "Cron is minute, hour, day, month and day of the week in UTC, such as 0 9 * * 1-5", "%v", err)
	}
	return text
}

// checkPurpose complains about a schedule that does nothing, or two things.
func (v *view) checkPurpose(spec *ast.CompositeLit) {
	prompt, run := field(spec, "Prompt"), field(spec, "Run")
	text, known := v.constant(prompt)
	none := prompt == nil || known && strings.TrimSpace(text) == ""
	idle := run == nil || v.isNil(run)
	switch {
	case none && idle:
		v.fail(codeScheduleSpec, spec.Pos(), "set Prompt to what the agent is to do, or Run to a function", "the schedule has nothing to do")
	case !none && known && !idle:
		v.fail(codeScheduleSpec, run.Pos(), "keep one of them: the function can send a message", "the schedule has a Prompt and a function Run")
	}
}
