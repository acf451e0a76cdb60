package project

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// slot is a folder of bot/ in which each Go file defines one thing, which its path names.
type slot struct {
	dir    string
	kind   string                // the definition's type in package bdk
	what   string                // as people call it
	nested bool                  // files in folders of it count too: their names have slashes
	define string                // how to write one
	later  bool                  // it has no effect yet
	into   func(*Agent) *[]Named // nil for schedules, which Markdown defines too
}

func slots() []slot {
	return []slot{
		{"hooks", "Hook", "hook", true, "bdk.DefineHook(…)", false, func(a *Agent) *[]Named { return &a.Hooks }},
		{"channels", "Channel", "channel", false, "bdk.DefineChannel(…)", true, func(a *Agent) *[]Named { return &a.Channels }},
		{"schedules", "Schedule", "schedule", false, "bdk.DefineSchedule(…)", false, nil},
		{"mcp-connections", "Connection", "connection", false, "bdk.Connection{…}", false, func(a *Agent) *[]Named { return &a.Connections }},
		{"host-connections", "Connection", "host connection", false, "bdk.Connection{…}", false, func(a *Agent) *[]Named { return &a.HostConnections }},
	}
}

// slotOf returns the slot with the given folder, nil if there is none.
func slotOf(dir string) *slot {
	all := slots()
	i := slices.IndexFunc(all, func(s slot) bool { return s.dir == dir })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// scanSlot finds the files of a slot's folder, or of a folder in it, whose names begin with prefix.
func (l *loader) scanSlot(f *folder, s slot, dir, prefix string) {
	l.watch(Inputs{Dirs: []string{dir}, Trees: []string{dir}})
	if s.later && prefix == "" {
		l.unsupported(dir)
	}
	for _, e := range l.readDir(dir) {
		path := filepath.Join(dir, e.Name())
		info, ok := l.stat(path)
		switch {
		case !ok || hidden(e.Name()) || e.Name() == "testdata" || strings.HasSuffix(path, "_test.go"):
		case info.IsDir() && s.nested:
			l.scanSlot(f, s, path, prefix+e.Name()+"/")
		case info.IsDir():
			l.scanNestedSlot(s, path)
		case s.into == nil && filepath.Ext(path) == ".md":
			name := strings.TrimSuffix(e.Name(), ".md")
			if l.checkSlotName(s, path, name) {
				l.addSchedule(f, path, name)
			}
		case filepath.Ext(path) != ".go":
			l.warn(codeUnknownEntry, diag.Pos{File: path}, "write the "+s.what+" in Go, or move the file into lib/", "%s is not a file that is discovered", e.Name())
		case e.Name() == "doc.go" && l.onlyComment(path):
		default:
			name := prefix + strings.TrimSuffix(e.Name(), ".go")
			if l.checkSlotName(s, path, name) {
				l.addSource(f, source{path: path, kind: s.kind, name: name, slot: &s})
			}
		}
	}
}

// scanNestedSlot complains about Go files in a folder of a slot that has none.
func (l *loader) scanNestedSlot(s slot, dir string) {
	for _, e := range l.readDir(dir) {
		if filepath.Ext(e.Name()) == ".go" && !hidden(e.Name()) {
			l.fail(codeNested, diag.Pos{File: filepath.Join(dir, e.Name())}, "move the file directly into "+s.dir+"/, or helpers into lib/",
				"files in a folder of %s/ are not discovered", s.dir)
			return
		}
	}
}

// checkSlotName complains about a name that nothing in the slot can have.
func (l *loader) checkSlotName(s slot, path, name string) bool {
	pos := diag.Pos{File: path}
	if strings.Contains(name, "__") {
		l.fail(codeReservedName, pos, "rename it with single underscores", "the name %q of the %s contains __, which is reserved", name, s.what)
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if skillPattern().MatchString(part) {
			continue
		}
		help := "rename it: at most 64 lower-case letters, digits, - and _, beginning with a letter or digit"
		if better := snake(part); skillPattern().MatchString(better) && better != part {
			help += ", such as " + better
		}
		l.fail(codeSlotName, pos, help, "%q cannot name a %s", part, s.what)
		return false
	}
	return true
}
