package project

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

const (
	// BDKModule is the module that an author's module requires.
	BDKModule = "github.com/bdk-lambda/bdk"

	// HostPackage is what a generated program that serves agents calls.
	HostPackage = BDKModule + "/shared/host/localhost"

	// FunctionsPackage is what a generated program calls whose parts are functions on AWS.
	FunctionsPackage = BDKModule + "/functions"

	// CommandPackage is the bdk command.
	CommandPackage = BDKModule + "/bdkpack/cmd/bdk"

	bdkPackage = BDKModule + "/bdkpack/bdk"

	// requireBDK lets a module build against a checkout, as long as no version can be downloaded.
	requireBDK = "`go mod edit -replace " + BDKModule + "=DIR && go get " + bdkPackage + "`, where DIR is your checkout of bdk"
)

// findModule finds the go.mod of the agents. It says whether there is one that all of them share.
func (l *loader) findModule() bool {
	ok := len(l.ws.Agents) > 0
	for _, a := range l.ws.Agents {
		dir := moduleDir(filepath.Join(a.Dir, a.Root))
		switch {
		case dir == "":
			l.fail(codeNoModule, diag.Pos{File: a.Dir}, "run in its folder: `go mod init example.com/"+strings.ToLower(a.Slug)+"`, then "+requireBDK+"; `bdk init` does all that",
				"the agent has no go.mod, neither in its folder nor above")
			ok = false
		case l.ws.Module.Dir == "":
			l.ws.Module.Dir = dir
		case l.ws.Module.Dir != dir:
			l.fail(codeManyModules, diag.Pos{File: filepath.Join(dir, "go.mod")},
				"give each agent's folder by itself; or let them share a module: `go mod init` in the folder above, where `bdk init` joins it, and in agents\n"+
					"that are there remove go.mod and go.sum and let the imports of their own packages begin with the path of that module",
				"the agents belong to different Go modules, another one is in %s", l.ws.Module.Dir)
			ok = false
		}
		if rel, err := filepath.Rel(dir, filepath.Dir(a.Dir)); dir != "" && err == nil && !importPattern().MatchString(filepath.ToSlash(rel)) {
			l.fail(codeFolder, diag.Pos{File: a.Dir}, "rename the folders between it and go.mod: letters, digits, - and _", "Go cannot import from this folder")
			ok = false
		}
	}
	return ok
}

// importPattern matches relative paths that the go command takes for part of an import path.
func importPattern() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.~+/-]+$`) }

// moduleDir returns the nearest directory at or above dir that has a go.mod, "" if there is none.
func moduleDir(dir string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && info.Mode().IsRegular() {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// listed is a package as `go list` describes it.
type listed struct {
	ImportPath     string   `json:"ImportPath"`
	Dir            string   `json:"Dir"`
	IgnoredGoFiles []string `json:"IgnoredGoFiles"`
	EmbedFiles     []string `json:"EmbedFiles"`
	EmbedPatterns  []string `json:"EmbedPatterns"`
	Imports        []string `json:"Imports"`
	Module         *struct {
		GoMod   string `json:"GoMod"`
		Main    bool   `json:"Main"`
		Replace *struct {
			Version string `json:"Version"`
		} `json:"Replace"`
	} `json:"Module"`
	Error *struct {
		ImportStack []string `json:"ImportStack"`
		Pos         string   `json:"Pos"`
		Err         string   `json:"Err"`
	} `json:"Error"`
}

// local says whether the package's source may change: it is part of the main module, of the workspace, or of a module
// that is replaced by a folder.
func (p *listed) local() bool {
	return p.Module != nil && (p.Module.Main || p.Module.Replace != nil && p.Module.Replace.Version == "")
}

// graph is packages by import path.
type graph map[string]*listed

// list returns the packages of the given directories and everything they import, and what a generated program imports.
func (l *loader) list(ctx context.Context, dirs []string) (graph, error) {
	args := []string{"list", "-e", "-deps", "-json=ImportPath,Dir,IgnoredGoFiles,EmbedFiles,EmbedPatterns,Imports,Module,Error", bdkPackage, HostPackage}
	out, err := RunGo(ctx, l.ws.Module.Dir, l.opts.Env, func(line string) {
		if module, ok := Downloading(line); ok && l.opts.Downloading != nil {
			l.opts.Downloading(module)
		}
	}, append(args, dirs...)...)
	if err != nil {
		return nil, err
	}
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return g, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		g[p.ImportPath] = &p
	}
}

// reach returns the import paths that can be reached from the packages in the given directories, sorted.
func (g graph) reach(dirs []string) []string {
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		p := g[path]
		if p == nil || seen[path] {
			return
		}
		seen[path] = true
		for _, next := range p.Imports {
			visit(next)
		}
	}
	for path, p := range g {
		if slices.Contains(dirs, p.Dir) {
			visit(path)
		}
	}
	paths := make([]string, 0, len(seen))
	for path := range seen {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// at returns the package in a directory, nil if the go command does not know it.
func (g graph) at(dir string) *listed {
	for _, p := range g {
		if p.Dir == dir {
			return p
		}
	}
	return nil
}
