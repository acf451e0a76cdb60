package project_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/project"
)

func TestSlipIsRecognisedAndAnotherWordIsNot(t *testing.T) {
	t.Parallel()
	known := []string{"tools", "skills", "hooks", "mcp-connections", "instructions.md"}
	for name, want := range map[string]string{
		"tool": "tools", "Tools": "tools", "skill": "skills", "mcp_connections": "mcp-connections", "mcp-conections": "mcp-connections",
		"instruction.md": "instructions.md", "INSTRUCTIONS.md": "instructions.md", "instructions.txt": "",
		"data": "", "docs": "", "tests": "", "": "", "tools": "", "toolkit": "",
	} {
		if got := project.Nearest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestSuggestedToolNameSeparatesWords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"inspectPR": "inspect_pr", "inspect-pr": "inspect_pr", "HTTPGet": "http_get", "Read.File": "read_file", "done": "done", "a - b": "a_b",
	} {
		if got := project.Snake(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func FuzzNamesAreComparedWithinBounds(f *testing.F) {
	f.Add("toolz")
	f.Add("inspectPR")
	f.Add("\xff_Ǆ-")
	f.Fuzz(func(t *testing.T, name string) {
		known := []string{"tools", "hooks"}
		if got := project.Nearest(name, known); got != "" && (!slices.Contains(known, got) || got == name) {
			t.Errorf("%q is said to be meant as %q", name, got)
		}
		if project.IsToolName(name) && project.Snake(name) != name {
			t.Errorf("%q is a name already, but %q is suggested", name, project.Snake(name))
		}
	})
}

func FuzzJoinedMarkdownIsTrimmedText(f *testing.F) {
	f.Add([]byte("# A\r\n"), []byte("\n\n    code\n\n"))
	f.Add([]byte("\uFEFF"), []byte("b"))
	f.Add([]byte(" \t"), []byte(nil))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !utf8.Valid(a) || !utf8.Valid(b) {
			return // is refused before
		}
		got := project.JoinMarkdown([][]byte{a, b})
		if got != strings.TrimRight(got, " \t\r\n") || strings.HasPrefix(got, "\n") {
			t.Errorf("blank lines at an end: %q", got)
		}
		one, two := project.JoinMarkdown([][]byte{a}), project.JoinMarkdown([][]byte{b})
		want := strings.Trim(one+"\n\n"+two, "\n")
		if one != "" && two != "" && got != want || got != project.JoinMarkdown([][]byte{a, nil, b}) {
			t.Errorf("got %q of %q and %q", got, one, two)
		}
	})
}

func FuzzWordsOfTheGoCommandBecomeAMessage(f *testing.F) {
	f.Add("go: errors parsing go.mod:\n/module/go.mod:5: unknown directive: requir\n")
	f.Add("go: updates to go.mod needed; to update it:\n\tgo mod tidy\n")
	f.Add("# pkg\n./a.go:99999999999999999999:1: x\nno required module provides package \n")
	f.Add("")
	f.Fuzz(func(t *testing.T, stderr string) {
		if got := project.ModuleError(stderr); len(got) == 0 {
			t.Error("an error without a diagnostic")
		}
		if what, _ := project.Explain(stderr); strings.Contains(what, "\n") {
			t.Errorf("more than a line: %q", what)
		}
	})
}
