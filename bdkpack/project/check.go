package project

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// checkGo type-checks the agents' packages, fills in their definitions and completes the inputs.
func (l *loader) checkGo(ctx context.Context, folders []*folder) error {
	if err := l.findWorkspace(ctx); err != nil {
		return err
	}
	l.watch(Inputs{Files: moduleFiles(l.ws.Module)})
	if !l.checkReplaces() {
		return nil
	}
	var dirs, patterns []string
	for _, f := range folders {
		for _, dir := range f.pkgs {
			rel, err := filepath.Rel(l.ws.Module.Dir, dir)
			if err != nil {
				return fmt.Errorf("listing packages: %w", err)
			}
			dirs, patterns = append(dirs, dir), append(patterns, "./"+filepath.ToSlash(rel))
		}
	}
	g, err := l.list(ctx, patterns)
	if gerr, ok := errors.AsType[*GoError](err); ok {
		l.moduleError(gerr.Stderr)
		return nil
	}
	if err != nil {
		return err
	}
	l.watch(g.inputs())
	if !l.requiresBDK(g) {
		return nil
	}
	if err := l.compile(ctx, g); err != nil {
		return err
	}
	checked, err := l.typeCheck(ctx, g, g.reach(dirs))
	if err != nil {
		return err
	}
	for _, f := range folders {
		l.define(f, g, checked)
	}
	return nil
}

// watch adds inputs.
func (l *loader) watch(more Inputs) {
	in := &l.ws.Inputs
	in.Dirs, in.Trees, in.Parents = append(in.Dirs, more.Dirs...), append(in.Trees, more.Trees...), append(in.Parents, more.Parents...)
	in.Embeds, in.Contents, in.Files = append(in.Embeds, more.Embeds...), append(in.Contents, more.Contents...), append(in.Files, more.Files...)
}

func (l *loader) findWorkspace(ctx context.Context) error {
	out, err := RunGo(ctx, l.ws.Module.Dir, l.opts.Env, nil, "env", "GOWORK")
	if _, ok := errors.AsType[*GoError](err); err != nil && !ok {
		return err
	}
	if work := strings.TrimSpace(string(out)); work != "off" {
		l.ws.Module.GoWork = work
	}
	return nil
}

// compile compiles what a program needs beside the author's packages, for somebody who wants to be told.
func (l *loader) compile(ctx context.Context, g graph) error {
	if l.opts.Compiling == nil {
		return nil
	}
	_, err := RunGo(ctx, l.ws.Module.Dir, l.opts.Env, func(pkg string) {
		if g[pkg] != nil {
			l.opts.Compiling()
		}
	}, "build", "-v", HostPackage)
	if _, ok := errors.AsType[*GoError](err); ok {
		return nil // what is wrong with it is found out when the program is built
	}
	return err
}

// checkReplaces complains about replace directives that lead to no module, which the go command says in a roundabout way.
func (l *loader) checkReplaces() bool {
	name := filepath.Join(l.ws.Module.Dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil || l.ws.Module.GoWork != "" { // a workspace may replace it once more
		return true
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return true // the go command says why
	}
	ok := true
	for _, r := range mod.Replace {
		dir := filepath.FromSlash(r.New.Path)
		required := slices.ContainsFunc(mod.Require, func(q *modfile.Require) bool { return q.Mod.Path == r.Old.Path })
		if r.New.Version != "" || !required {
			continue // by another module, or nothing depends on it
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(l.ws.Module.Dir, dir)
		}
		theirs := filepath.Join(dir, "go.mod")
		l.watch(Inputs{Files: []string{theirs}})
		if _, err := os.Stat(theirs); errors.Is(err, fs.ErrNotExist) {
			what := "the folder of that module, which has a go.mod"
			if r.Old.Path == BDKModule {
				what = "a checkout of bdk"
			}
			pos := diag.Pos{File: name}
			if r.Syntax != nil {
				pos.Line = r.Syntax.Start.Line
			}
			l.fail(codeReplace, pos, "run `go mod edit -replace "+r.Old.Path+"=DIR` with "+what, "%s is replaced by %s, where there is no module", r.Old.Path, r.New.Path)
			ok = false
		}
	}
	return ok
}

// requiresBDK says whether the module can import package bdk.
func (l *loader) requiresBDK(g graph) bool {
	p := g[bdkPackage]
	if p != nil && p.Error == nil {
		return true
	}
	what, help := "the module does not require "+BDKModule, "run in its folder: "+requireBDK
	if p != nil && !unprovided().MatchString(p.Error.Err) && !strings.Contains(p.Error.Err, "is not in std") {
		what = "the module's " + BDKModule + " cannot be used: " + firstLine(p.Error.Err)
	}
	l.fail(codeNoBDK, diag.Pos{File: filepath.Join(l.ws.Module.Dir, "go.mod")}, help, "%s", what)
	return false
}

// moduleError records what the go command says about the module as a whole.
func (l *loader) moduleError(stderr string) {
	found := false
	for line := range strings.Lines(stderr) {
		if pos, text, ok := l.splitPos(strings.TrimSpace(line)); ok {
			l.fail(codeModule, pos, "mend this line", "%s", text)
			found = true
		}
	}
	if !found {
		help := "mend go.mod, or the settings of the go command"
		if strings.Contains(stderr, "go mod tidy") {
			help = "run `go mod tidy`"
		}
		l.fail(codeModule, diag.Pos{File: filepath.Join(l.ws.Module.Dir, "go.mod")}, help,
			"the go command cannot use the module: %s", strings.TrimPrefix(firstLine(stderr), "go: "))
	}
}

// splitPos splits file:line:col: text, as the go command writes it. The column may be missing.
func (l *loader) splitPos(line string) (diag.Pos, string, bool) {
	m := regexp.MustCompile(`^(?:go: )?([^:\s][^:]*):(\d+)(?::(\d+))?:? ?(.*)$`).FindStringSubmatch(line)
	if m == nil {
		return diag.Pos{}, "", false
	}
	pos := diag.Pos{File: m[1]}
	pos.Line, _ = strconv.Atoi(m[2]) // digits; 0 if there are absurdly many
	pos.Col, _ = strconv.Atoi(m[3])
	if !filepath.IsAbs(pos.File) {
		pos.File = filepath.Join(l.ws.Module.Dir, pos.File)
	}
	return pos, m[4], true
}

// typeCheck checks the packages of the author that are in reach.
func (l *loader) typeCheck(ctx context.Context, g graph, reach []string) (map[string]*packages.Package, error) {
	own := slices.DeleteFunc(slices.Clone(reach), func(path string) bool {
		p := g[path]
		return !p.local() || path == bdkPackage || strings.HasPrefix(path, BDKModule+"/shared/")
	})
	checked := map[string]*packages.Package{}
	if len(own) > 0 {
		pkgs, err := packages.Load(&packages.Config{
			Context: ctx, Dir: l.ws.Module.Dir, Env: l.opts.Env,
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
				packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
		}, own...)
		if err != nil {
			return nil, fmt.Errorf("type-checking: %w", err)
		}
		for _, p := range pkgs {
			checked[p.PkgPath] = p
		}
	}
	for _, path := range reach {
		l.compileErrors(g, g[path], checked[path])
	}
	return checked, nil
}

// maxErrors bounds what the compiler says about a package: one mistake may have many consequences.
const maxErrors = 10

// compileErrors records what the go command and the type-checker say about a package.
func (l *loader) compileErrors(g graph, p *listed, checked *packages.Package) {
	var errs []packages.Error
	var scope *types.Scope
	if checked != nil {
		errs = slices.DeleteFunc(slices.Clone(checked.Errors), g.known)
		scope = bdkScope(checked.Types)
	}
	if p.Error != nil && len(errs) == 0 {
		errs = []packages.Error{{Pos: p.Error.Pos, Msg: p.Error.Err, Kind: packages.ListError}}
	}
	placed := slices.ContainsFunc(errs, func(e packages.Error) bool { _, _, ok := l.placed(e); return ok })
	errs = l.withoutConsequences(errs)
	count := 0
	for _, e := range errs {
		pos, text, ok := l.placed(e)
		switch {
		case strings.Contains(text, "import cycle not allowed"):
			l.importCycle(g)
			continue
		case strings.Contains(text, "other declaration of "):
			continue // it belongs to the error before
		case !ok && (placed || strings.Contains(text, "build constraints exclude all Go files")):
			continue // it only sums up what is said elsewhere
		case !ok:
			pos = diag.Pos{File: p.Dir}
		}
		if count++; count <= maxErrors {
			what, help := l.explain(text, scope)
			l.fail(codeCompile, pos, help, "%s", what)
		}
	}
}

// withoutConsequences returns the errors without those that follow from a mistake of syntax: all others of that file, and
// names that files beside it miss.
func (l *loader) withoutConsequences(errs []packages.Error) []packages.Error {
	broken := map[string]bool{} // files with a mistake of syntax; whether it was kept
	file := func(e packages.Error) string {
		pos, _, _ := l.placed(e)
		return pos.File
	}
	for _, e := range errs {
		if e.Kind == packages.ParseError {
			broken[file(e)] = false
		}
	}
	return slices.DeleteFunc(slices.Clone(errs), func(e packages.Error) bool {
		name := file(e)
		kept, isBroken := broken[name]
		switch {
		case e.Kind == packages.ParseError && !kept:
			broken[name] = true
			return false
		case isBroken:
			return true
		}
		return len(broken) > 0 && strings.HasPrefix(e.Msg, "undefined: ")
	})
}

// placed returns where an error is and its text. The go command may have put the place into the text.
func (l *loader) placed(e packages.Error) (diag.Pos, string, bool) {
	if pos, _, ok := l.splitPos(e.Pos + ":"); ok {
		return pos, e.Msg, true
	}
	text := e.Msg
	if strings.HasPrefix(text, "# ") { // what the compiler wrote about a package
		_, text, _ = strings.Cut(text, "\n")
	}
	if pos, rest, ok := l.splitPos(firstLine(text)); ok {
		return pos, rest, !strings.HasPrefix(e.Msg, "# ")
	}
	return diag.Pos{}, text, false
}

// importCycle records the circle in which packages import each other, once.
func (l *loader) importCycle(g graph) {
	for _, p := range g {
		if p.Error == nil || !strings.Contains(p.Error.Err, "import cycle not allowed") {
			continue
		}
		d := diag.Diagnostic{
			Code: codeCompile, Severity: diag.Error, Pos: diag.Pos{File: p.Dir},
			Message: "packages import each other: " + strings.Join(p.Error.ImportStack, " imports "),
			Help:    "move what they share into another package in lib/",
		}
		if pos, _, ok := l.splitPos(p.Error.Pos + ":"); ok {
			d.Pos, d.Excerpt = pos, l.sources.line(pos)
		}
		if !slices.Contains(l.diags, d) {
			l.diags = append(l.diags, d)
		}
	}
}

// known says whether an error only repeats that another package has errors.
func (g graph) known(e packages.Error) bool {
	path, ok := strings.CutPrefix(e.Msg, "could not import ")
	if !ok {
		return false
	}
	path, _, _ = strings.Cut(path, " ")
	return g[path] != nil
}

// unprovided matches what the go command says of a package that no module provides, in each of its modes.
func unprovided() *regexp.Regexp {
	return regexp.MustCompile(`(?:no required module provides|cannot find module providing) package ([^;:\s]+)`)
}

// explain returns an error of the compiler as one line, and what to do about it. The scope is that of package bdk, nil
// if it is not imported.
func (l *loader) explain(text string, scope *types.Scope) (what, help string) {
	what = firstLine(text)
	if m := regexp.MustCompile(`package ([^;\s]+)`).FindStringSubmatch(text); m != nil && strings.HasPrefix(m[1], l.modulePath()+"/") {
		folder := strings.TrimPrefix(m[1], l.modulePath()+"/")
		return "the module has no package " + m[1], "mend the import path, or write the package into " + folder + "/ beside go.mod"
	}
	if m := unprovided().FindStringSubmatch(text); m != nil {
		return "no module provides the package " + m[1], "run `go get " + m[1] + "`, or mend the import path"
	}
	if m := regexp.MustCompile(`^undefined: bdk\.(\w+)$`).FindStringSubmatch(what); m != nil && scope != nil {
		if meant := nearest(m[1], slices.DeleteFunc(scope.Names(), func(name string) bool { return !token.IsExported(name) })); meant != "" {
			return what, "did you mean bdk." + meant + "?"
		}
	}
	for _, known := range []struct{ part, help string }{
		{"missing go.sum entry", "run `go mod tidy`"},
		{"is not in std", "mend the import path: one without a dot in its first element is the standard library's, or this module's"},
		{"imported and not used", "remove the import"},
		{"declared and not used", "use it, or remove it"},
		{"bdk.DefineTool", "a tool's function is func(ctx context.Context, call *bdk.Call, input Struct) (Result, error)"},
		{"expected package", "give all files of a folder the same package name"},
		{"undefined: ", "declare it, import its package, or mend the name"},
		{"redeclared in this block", "rename one of them: the files of a folder are one package"},
		{"missing return", "end the function with a return statement"},
	} {
		if strings.Contains(what, known.part) {
			return what, known.help
		}
	}
	return what, "mend the Go code at this place"
}

// modulePath returns the path of the agents' module, "" if it has none.
func (l *loader) modulePath() string {
	data, _ := os.ReadFile(filepath.Join(l.ws.Module.Dir, "go.mod")) // the go command says if it cannot be read
	return modfile.ModulePath(data)
}

// bdkScope returns the names of package bdk if pkg imports it.
func bdkScope(pkg *types.Package) *types.Scope {
	if pkg == nil {
		return nil
	}
	for _, p := range pkg.Imports() {
		if p.Path() == bdkPackage {
			return p.Scope()
		}
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	for _, tail := range []string{"; to add it:", "; to add:", "; to update it:"} {
		line = strings.TrimSuffix(line, tail)
	}
	return line
}
