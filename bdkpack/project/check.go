package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// checkGo type-checks the agents' packages, fills in their definitions and completes the inputs.
func (l *loader) checkGo(ctx context.Context, folders []*folder) error {
	if err := l.findWorkspace(ctx); err != nil {
		return err
	}
	l.ws.Inputs.addModule(l.ws.Module)
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
	var gerr *GoError
	if errors.As(err, &gerr) {
		l.moduleError(gerr.Stderr)
		return nil
	}
	if err != nil {
		return err
	}
	l.ws.Inputs.addPackages(g)
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

func (l *loader) findWorkspace(ctx context.Context) error {
	out, err := RunGo(ctx, l.ws.Module.Dir, l.opts.Env, nil, "env", "GOWORK")
	var gerr *GoError
	if err != nil && !errors.As(err, &gerr) {
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
	done := 0
	_, err := RunGo(ctx, l.ws.Module.Dir, l.opts.Env, func(pkg string) {
		if g[pkg] != nil {
			done++
			l.opts.Compiling(pkg, done, len(g))
		}
	}, "build", "-v", HostPackage)
	if gerr := (*GoError)(nil); errors.As(err, &gerr) {
		return nil // what is wrong with it is found out when the program is built
	}
	return err
}

// requiresBDK says whether the module can import package bdk.
func (l *loader) requiresBDK(g graph) bool {
	p := g[bdkPackage]
	if p != nil && p.Error == nil {
		return true
	}
	what := "the module does not require " + bdkModule
	help := "run `go get " + bdkPackage + "` in the folder of this go.mod"
	if p != nil && !strings.Contains(p.Error.Err, "no required module provides") && !strings.Contains(p.Error.Err, "is not in std") {
		what, help = "the module's "+bdkModule+" cannot be used: "+firstLine(p.Error.Err), "run `go mod tidy` in the folder of this go.mod"
	}
	l.fail(codeNoBDK, diag.Pos{File: filepath.Join(l.ws.Module.Dir, "go.mod")}, help, "%s", what)
	return false
}

// moduleError records what the go command says about the module as a whole.
func (l *loader) moduleError(stderr string) {
	found := false
	for line := range strings.Lines(stderr) {
		if pos, text, ok := l.splitPos(strings.TrimSpace(line)); ok {
			l.fail(codeModule, pos, "", "%s", text)
			found = true
		}
	}
	if !found {
		text := strings.TrimSpace(stderr)
		l.fail(codeModule, diag.Pos{File: filepath.Join(l.ws.Module.Dir, "go.mod")}, "", "the go command cannot read the module: %s", strings.TrimPrefix(text, "go: "))
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
		return !p.local() || path == bdkPackage || strings.HasPrefix(path, bdkModule+"/shared/")
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

// compileErrors records what the go command and the type-checker say about a package.
func (l *loader) compileErrors(g graph, p *listed, checked *packages.Package) {
	before := len(l.diags)
	if checked != nil {
		for _, e := range checked.Errors {
			if !g.known(e) {
				l.compileError(e.Pos, e.Msg)
			}
		}
	}
	if p.Error != nil && len(l.diags) == before {
		l.compileError(p.Error.Pos, p.Error.Err)
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

// compileError records one error of the compiler.
func (l *loader) compileError(at, text string) {
	pos, _, ok := l.splitPos(at + ":")
	if !ok { // the go command has put it into the text
		var rest string
		if pos, rest, ok = l.splitPos(firstLine(text)); ok {
			text = rest
		}
	}
	what, help := explain(text)
	l.fail(codeCompile, pos, help, "%s", what)
}

// explain returns an error of the compiler as one line, and what to do about it where that is known.
func explain(text string) (what, help string) {
	what = firstLine(text)
	m := regexp.MustCompile(`no required module provides package ([^;\s]+)`).FindStringSubmatch(text)
	switch {
	case m != nil:
		return "no module provides the package " + m[1], "run `go get " + m[1] + "`, or mend the import path"
	case strings.Contains(text, "missing go.sum entry"):
		return what, "run `go mod tidy`"
	case strings.Contains(what, "is not in std"):
		return what, "mend the import path: one without a dot in its first element is the standard library's, or this module's"
	case strings.Contains(what, "imported and not used"):
		return what, "remove the import"
	case strings.Contains(what, "import cycle"):
		return what, "move what both packages need into a third one in lib/"
	}
	return what, "mend the Go code"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSuffix(strings.TrimSpace(line), "; to add it:")
}
