package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// Subagent is a subagent and the name its folder gave it.
type Subagent struct {
	Name         string       `json:"name"`
	Config       Definition   `json:"config"`
	Models       []string     `json:"models,omitempty"`   // as of [Agent]
	Computed     bool         `json:"computed,omitempty"` // as of [Agent]
	Instructions Instructions `json:"instructions"`       // the agent's own if it has none
}

// sub is a folder of subagents/.
type sub struct {
	Subagent

	path   string   // absolute
	forms  []string // of instructions
	inline answer   // whether the configuration has instructions
}

// scanSubagents finds the folders of subagents/.
func (l *loader) scanSubagents(f *folder, dir string) {
	for _, e := range l.readDir(dir) {
		path := filepath.Join(dir, e.Name())
		info, ok := l.stat(path)
		switch {
		case !ok || hidden(e.Name()) || e.Name() == "testdata":
		case !info.IsDir():
			l.warn(codeUnknownEntry, diag.Pos{File: path}, "a subagent is a folder with agent.go", "%s is not a file that is discovered", e.Name())
		default:
			l.scanSubagent(f, path)
		}
	}
}

func (l *loader) scanSubagent(f *folder, dir string) {
	name := filepath.Base(dir)
	l.watch(Inputs{Dirs: []string{dir}, Files: []string{filepath.Join(dir, "agent.go"), filepath.Join(dir, "instructions.md")}})
	if !skillPattern().MatchString(name) || strings.Contains(name, "__") {
		l.fail(codeSkillName, diag.Pos{File: dir}, "rename the folder: at most 64 lower-case letters, digits, - and _, beginning with a letter or digit, and no __",
			"%q cannot name a subagent", name)
		return
	}
	if _, err := os.Lstat(filepath.Join(dir, "agent.go")); err != nil {
		l.fail(codeSubagent, diag.Pos{File: dir}, "write agent.go in it: var Agent = bdk.Agent{Description: \"Use for …\"}", "the subagent has no agent.go")
		return
	}
	s := &sub{Subagent: Subagent{Name: name}, path: dir, inline: maybe}
	f.subs = append(f.subs, s)
	for _, e := range l.readDir(dir) {
		path := filepath.Join(dir, e.Name())
		if info, ok := l.stat(path); ok && !hidden(e.Name()) && !strings.HasSuffix(path, "_test.go") {
			l.scanSubagentEntry(f, s, path, info.IsDir())
		}
	}
}

// scanSubagentEntry looks at a file or folder of a subagent.
func (l *loader) scanSubagentEntry(f *folder, s *sub, path string, folder bool) {
	switch name := filepath.Base(path); {
	case name == "agent.go":
		l.addSource(f, source{path: path, kind: "Agent", name: "the subagent " + s.Name, sub: s})
	case name == "instructions.go":
		s.forms = append(s.forms, path)
		l.addSource(f, source{path: path, kind: "Instructions", name: "the instructions of the subagent " + s.Name, sub: s})
	case name == "instructions.md":
		s.forms = append(s.forms, path)
		s.Instructions = l.readMarkdown(f, []string{path})
	case name == "instructions" && folder:
		s.forms = append(s.forms, path)
		s.Instructions = l.readMarkdown(f, l.markdownFiles(path))
	case name == "doc.go" || folder && (name == "lib" || name == "testdata"):
	case folder && (slotOf(name) != nil || slices.Contains(append(laterDirs(), "tools", "skills", "subagents", "sandbox", "reminders"), name)):
		l.warn(codeSubagent, diag.Pos{File: path}, "move it to "+f.agent.Root+"/"+name+"/: a subagent has what its agent has",
			"%s/ of a subagent is ignored", name)
	default:
		l.warn(codeUnknownEntry, diag.Pos{File: path}, "a subagent has agent.go and instructions, helpers belong in lib/", "%s is not discovered in a subagent", name)
	}
}

// checkSubagents completes the subagents whose configuration was found.
func (l *loader) checkSubagents(f *folder) {
	for _, s := range f.subs {
		forms := s.forms
		if s.inline == yes {
			forms = append(forms, filepath.Join(s.path, "agent.go"))
		}
		if len(forms) > 1 {
			l.fail(codeManyForms, diag.Pos{File: forms[1]}, "keep one of them", "the instructions of the subagent %s are given in several forms", s.Name)
		}
		if s.Config.Var != "" {
			f.agent.Subagents = append(f.agent.Subagents, s.Subagent)
		}
	}
}
