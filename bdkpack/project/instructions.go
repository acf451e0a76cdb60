package project

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// checkForms complains if there are no instructions, or several forms of them.
func (l *loader) checkForms(f *folder) {
	forms := f.forms
	if f.inline == yes {
		forms = append(forms, filepath.Join(f.root, "agent.go"))
	}
	switch {
	case len(forms) > 1:
		var names []string
		for _, form := range forms {
			names = append(names, f.rel(form))
		}
		l.fail(codeManyForms, diag.Pos{File: forms[1]}, "keep one of them", "the instructions are given in several forms: %s", strings.Join(names, ", "))
	case len(forms) == 0 && f.inline == no:
		help := "write " + f.agent.Root + "/instructions.md: who the agent is, when to use which tool and what to answer"
		if _, err := os.Stat(filepath.Join(f.agent.Dir, "instructions.md")); err == nil {
			help = "move instructions.md into " + f.agent.Root + "/"
		}
		l.fail(codeNoInstructions, diag.Pos{File: f.root}, help, "the agent has no instructions")
	}
}

// markdownFiles returns the files of instructions/ in name order.
func (l *loader) markdownFiles(dir string) []string {
	l.watch(Inputs{Trees: []string{dir}})
	before := len(l.diags)
	var files []string
	for _, e := range l.readDir(dir) {
		path := filepath.Join(dir, e.Name())
		info, ok := l.stat(path)
		switch {
		case !ok || hidden(e.Name()):
		case info.IsDir() || filepath.Ext(path) != ".md":
			l.warn(codeNotMarkdown, diag.Pos{File: path}, "only Markdown files directly in instructions/ are joined, in name order",
				"%s is left out of the instructions", e.Name())
		default:
			files = append(files, path)
		}
	}
	if len(files) == 0 && len(l.diags) == before {
		l.fail(codeEmpty, diag.Pos{File: dir}, "write a Markdown file in it", "the folder has no instructions")
	}
	return files
}

// maxMarkdown bounds a file of instructions, in bytes: no model reads as much.
const maxMarkdown = 1 << 20

// readMarkdown returns the files' text as instructions.
func (l *loader) readMarkdown(f *folder, files []string) Instructions {
	var parts [][]byte
	var in Instructions
	for _, path := range files {
		info, ok := l.stat(path)
		if !ok {
			continue
		}
		l.ws.Inputs.Files = append(l.ws.Inputs.Files, path)
		if info.IsDir() {
			l.fail(codeUnreadable, diag.Pos{File: path}, "name the folder instructions/", "instructions.md is a folder")
			continue
		}
		if !info.Mode().IsRegular() || info.Size() > maxMarkdown {
			l.fail(codeUnreadable, diag.Pos{File: path}, "write instructions in a file of at most 1 MiB", "it is no file of text, or too large")
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			l.unreadable(path, err)
			continue
		}
		if l.checkMarkdown(path, text) {
			parts = append(parts, text)
			in.Files = append(in.Files, f.rel(path))
		}
	}
	in.Text = joinMarkdown(parts)
	return in
}

// checkMarkdown complains about text no model should get.
func (l *loader) checkMarkdown(path string, text []byte) bool {
	switch line := firstInvalid(text); {
	case line > 0:
		l.fail(codeNotUTF8, diag.Pos{File: path, Line: line}, "save the file as UTF-8", "the instructions are not valid UTF-8")
		return false
	case joinMarkdown([][]byte{text}) == "":
		l.fail(codeEmpty, diag.Pos{File: path}, "say who the agent is, when to use which tool and what to answer, or remove the file",
			"the instructions are empty")
		return false
	}
	return true
}

// firstInvalid returns the first line that is not UTF-8 or has a NUL, from 1; 0 if there is none.
func firstInvalid(text []byte) int {
	if utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 {
		return 0
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return n
		}
	}
	return n
}

// joinMarkdown joins the texts of Markdown files, with a blank line between them. Byte order marks, carriage returns
// before line ends and blank lines at the ends of a text are dropped.
func joinMarkdown(parts [][]byte) string {
	var texts []string
	for _, part := range parts {
		text := strings.ReplaceAll(strings.TrimPrefix(string(part), "\uFEFF"), "\r\n", "\n")
		text = strings.TrimRight(text, " \t\r\n")
		for { // blank lines at the beginning; white space before the first word may be an indented block
			line, rest, more := strings.Cut(text, "\n")
			if !more || strings.TrimSpace(line) != "" {
				break
			}
			text = rest
		}
		if strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// rel returns a path relative to the agent's folder, with slashes.
func (f *folder) rel(path string) string {
	rel, err := filepath.Rel(f.agent.Dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
