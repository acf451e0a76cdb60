package project

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// Skill is a skill and the name its path gave it.
type Skill struct {
	Name        string      `json:"name"`
	File        string      `json:"file"`                  // relative to the agent's folder, with slashes
	Dir         string      `json:"dir,omitempty"`         // the folder whose files belong to it, likewise; "" for none
	Description string      `json:"description,omitempty"` // of the Markdown
	Markdown    string      `json:"markdown,omitempty"`
	Definition  *Definition `json:"definition,omitempty"` // nil: Description and Markdown are given
}

// skillPattern matches the names of skills and subagents.
func skillPattern() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`) }

// scanSkills finds the files and folders of skills/.
func (l *loader) scanSkills(f *folder, dir string) {
	l.watch(Inputs{Trees: []string{dir}})
	for _, e := range l.readDir(dir) {
		path := filepath.Join(dir, e.Name())
		info, ok := l.stat(path)
		name := strings.TrimSuffix(e.Name(), filepath.Ext(path))
		switch {
		case !ok || hidden(e.Name()) || strings.HasSuffix(path, "_test.go"):
		case info.IsDir() && e.Name() == "testdata":
		case info.IsDir():
			l.scanSkillFolder(f, path)
		case filepath.Ext(path) == ".md":
			if l.checkSkillName(path, name) {
				l.addSkill(f, Skill{Name: name, File: f.rel(path)}, path)
			}
		case filepath.Ext(path) == ".go":
			if e.Name() == "doc.go" && l.onlyComment(path) {
				continue
			}
			l.watch(Inputs{Dirs: []string{dir}})
			if l.checkSkillName(path, name) {
				l.addSource(f, source{path: path, kind: "Skill", name: name})
			}
		default:
			l.warn(codeUnknownEntry, diag.Pos{File: path}, "a skill is a Markdown file, a folder with SKILL.md, or a Go file", "%s is not a file that is discovered", e.Name())
		}
	}
}

// scanSkillFolder looks at a folder of skills/.
func (l *loader) scanSkillFolder(f *folder, dir string) {
	path := filepath.Join(dir, "SKILL.md")
	l.watch(Inputs{Files: []string{path}})
	if _, err := os.Lstat(path); err != nil {
		help := "write SKILL.md in it, with a description in its front matter, or move it into lib/"
		for _, e := range l.readDir(dir) {
			if strings.EqualFold(e.Name(), "SKILL.md") {
				help = "rename " + e.Name()
			}
		}
		l.fail(codeSkill, diag.Pos{File: dir}, help, "the folder has no SKILL.md, so it is no skill")
		return
	}
	if !l.checkSkillName(dir, filepath.Base(dir)) || !l.checkFiles(dir) {
		return
	}
	l.addSkill(f, Skill{Name: filepath.Base(dir), File: f.rel(path), Dir: f.rel(dir)}, path)
}

// checkSkillName complains about a name no skill can have.
func (l *loader) checkSkillName(path, name string) bool {
	if skillPattern().MatchString(name) && !strings.Contains(name, "__") {
		return true
	}
	help := "rename it: at most 64 lower-case letters, digits, - and _, beginning with a letter or digit, and no __"
	if better := strings.ReplaceAll(snake(name), "_", "-"); skillPattern().MatchString(better) && better != name {
		help += ", such as " + better
	}
	l.fail(codeSkillName, diag.Pos{File: path}, help, "%q cannot name a skill", name)
	return false
}

// addSkill reads the Markdown of a skill.
func (l *loader) addSkill(f *folder, s Skill, path string) {
	data, ok := l.readText(path)
	if !ok {
		return
	}
	text := parseSkill(data)
	failed := false
	for _, fault := range text.faults {
		l.add(fault.severity, codeSkill, diag.Pos{File: path, Line: fault.line}, fault.help, "%s", fault.what)
		failed = failed || fault.severity == diag.Error
	}
	s.Description, s.Markdown = text.description, text.body
	if s.Dir == "" && s.Description == "" {
		s.Description = text.fallback()
	}
	switch {
	case failed:
		return
	case s.Markdown == "":
		l.fail(codeEmpty, diag.Pos{File: path}, "write what to do, step by step", "the skill has no text")
		return
	case s.Description == "":
		l.fail(codeNoDescription, diag.Pos{File: path}, "begin the file with front matter: ---, description: Use when …, ---", "the skill has no description: the model decides by it whether to load the skill")
		return
	case text.name != "" && text.name != s.Name:
		l.warn(codeSkill, diag.Pos{File: path}, "give both the same name", "the front matter names the skill %q, but its path, which counts, names it %q", text.name, s.Name)
	}
	f.agent.Skills = append(f.agent.Skills, s)
}

// readText reads a file of text, of at most 1 MiB.
func (l *loader) readText(path string) ([]byte, bool) {
	l.watch(Inputs{Files: []string{path}})
	info, ok := l.stat(path)
	if !ok {
		return nil, false
	}
	if !info.Mode().IsRegular() || info.Size() > maxMarkdown {
		l.fail(codeUnreadable, diag.Pos{File: path}, "write the text in a file of at most 1 MiB", "it is no file of text, or too large")
		return nil, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.unreadable(path, err)
		return nil, false
	}
	if line := firstInvalid(data); line > 0 {
		l.fail(codeNotUTF8, diag.Pos{File: path, Line: line}, "save the file as UTF-8", "the text is not valid UTF-8")
		return nil, false
	}
	return data, true
}

// scanSandbox finds the first files of sessions.
func (l *loader) scanSandbox(f *folder, dir string) {
	l.watch(Inputs{Files: []string{filepath.Join(dir, "workspace")}})
	for _, e := range l.readDir(dir) {
		path := filepath.Join(dir, e.Name())
		switch {
		case hidden(e.Name()):
		case e.Name() != "workspace":
			l.warn(codeUnknownEntry, diag.Pos{File: path}, "the files that sessions begin with are in sandbox/workspace/", "%s is not discovered in sandbox/", e.Name())
		case l.checkFiles(path):
			f.agent.Seed = f.rel(path)
		}
	}
}
