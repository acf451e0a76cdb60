package project

import (
	"errors"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
)

// checkScript complains if the file of a scripted model is not there, and about what is wrong in it. A model that the
// environment names takes its place.
func (v *view) checkScript(e ast.Expr, f *folder, name string) {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.agent.Dir, path)
	}
	v.l.watch(Inputs{Files: []string{path}})
	if ModelGiven(v.l.opts.Env) {
		return
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		v.fail(codeScript, e.Pos(), "write the file, see `go doc "+BDKModule+"/shared/model/scripted`, or name another model; the path is relative to the agent's folder",
			"the script of the model, %s, is not there", name)
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		v.l.unreadable(path, err)
		return
	}
	script, err := scripted.Parse(data)
	if mistakes, ok := errors.AsType[scripted.ParseErrors](err); ok {
		for _, m := range mistakes {
			v.l.fail(codeScriptFault, diag.Pos{File: path, Line: m.Line, Col: m.Column}, m.Remedy, "%s", m.What)
		}
		return
	}
	v.l.checkNames(script.Names(), path, f)
}

// checkNames warns of tools that a script names and the agent does not have.
func (l *loader) checkNames(names []scripted.Name, path string, f *folder) {
	var tools []string
	for _, s := range f.files {
		if s.kind == "Tool" {
			tools = append(tools, s.name)
		}
	}
	help := "the agent has no tools: remove this, or write the tool"
	if len(tools) > 0 {
		help = "the agent has " + strings.Join(tools, ", ")
	}
	for _, n := range names {
		if slices.Contains(tools, n.Tool) || slices.Contains(bdk.HarnessTools(), n.Tool) {
			continue
		}
		help, pos := help, diag.Pos{File: path, Line: n.Line, Col: n.Column}
		if meant := nearest(n.Tool, tools); meant != "" {
			help = "did you mean " + meant + "?"
		}
		what := "waits for a result of"
		if n.InCall {
			what = "calls"
		}
		l.warn(codeScriptTool, pos, help, "the rule %s the tool %s, which the agent does not have", what, n.Tool)
	}
}
