package scaffold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// goModule is the module that a new agent belongs to.
type goModule struct {
	dir    string // absolute
	path   string
	agent  string // import path of the agent's folder
	exists bool
}

// findModule returns the module around dir, unless there is none or another one is asked for.
func findModule(dir string, opts Options) (goModule, error) {
	if opts.Module != "" {
		return goModule{dir: dir, path: opts.Module, agent: opts.Module}, nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		switch path := modfile.ModulePath(data); {
		case err == nil && path == "":
			return goModule{}, fmt.Errorf("%s names no module: mend it, or ask for a module of its own with --module", filepath.Join(at, "go.mod"))
		case err == nil:
			rel, err := filepath.Rel(at, dir)
			if err != nil {
				return goModule{}, fmt.Errorf("finding the folder in its module: %w", err)
			}
			agent := path
			if rel != "." {
				agent += "/" + filepath.ToSlash(rel)
			}
			return goModule{dir: at, path: path, agent: agent, exists: true}, nil
		case !errors.Is(err, fs.ErrNotExist):
			return goModule{}, fmt.Errorf("looking for a Go module: %w", err)
		case at == filepath.Dir(at):
			path := "example.com/" + strings.ToLower(filepath.Base(dir))
			return goModule{dir: dir, path: path, agent: path}, nil
		}
	}
}

// join lets a module that is there build against the checkout: it adds what go.mod and go.sum lack and says what that was.
// What is there is only changed where the checkout needs a newer version. A module that knows this repository, in whatever
// way, is left alone.
func (c *checkout) join(m goModule) (added, missing string, err error) {
	name := filepath.Join(m.dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return "", "", fmt.Errorf("reading the module: %w", err)
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return "", "", fmt.Errorf("reading the module: %w", err)
	}
	if m.path == bdkModule || slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == bdkModule }) {
		return "", "", nil
	}
	if _, err := os.Stat(filepath.Join(m.dir, "vendor", "modules.txt")); err == nil {
		return "", fmt.Sprintf("go mod edit -require=%s@%s -replace=%s=%s && go mod tidy && go mod vendor", bdkModule, noVersion, bdkModule, c.dir), nil
	}
	said := []string{"require " + bdkModule + " " + noVersion}
	err = mod.AddRequire(bdkModule, noVersion)
	if !slices.ContainsFunc(mod.Replace, func(r *modfile.Replace) bool { return r.Old.Path == bdkModule }) {
		said = append(said, "replace "+bdkModule+" => "+c.dir)
		err = errors.Join(err, mod.AddReplace(bdkModule, "", filepath.ToSlash(c.dir), ""))
	}
	if mod.Go == nil || version.Compare("go"+mod.Go.Version, "go"+c.mod.Go.Version) < 0 {
		said = append(said, "go "+c.mod.Go.Version)
		err = errors.Join(err, mod.AddGoStmt(c.mod.Go.Version))
	}
	said = append(said, raise(mod, c.mod.Require)...)
	mod.Cleanup()
	data, formatErr := mod.Format()
	if err := errors.Join(err, formatErr); err != nil {
		return "", "", fmt.Errorf("adding to %s: %w", name, err)
	}
	sums := filepath.Join(m.dir, "go.sum")
	known, err := os.ReadFile(sums)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("reading the module: %w", err)
	}
	if err := cmp.Or(replaceFile(sums, mergeLines(known, c.sums)), replaceFile(name, data)); err != nil {
		return "", "", fmt.Errorf("adding to the module: %w", err)
	}
	return strings.Join(said, "\n"), "", nil
}

// raise requires at least the given versions and says which of the module's own it changed, and how many it added.
func raise(mod *modfile.File, least []*modfile.Require) (said []string) {
	all := slices.Clone(mod.Require)
	added := 0
	for _, want := range least {
		i := slices.IndexFunc(all, func(r *modfile.Require) bool { return r.Mod.Path == want.Mod.Path })
		switch {
		case i < 0:
			all = append(all, &modfile.Require{Mod: want.Mod, Indirect: true})
			added++
		case semver.Compare(all[i].Mod.Version, want.Mod.Version) < 0:
			said = append(said, fmt.Sprintf("require %s %s (was %s)", want.Mod.Path, want.Mod.Version, all[i].Mod.Version))
			all[i] = &modfile.Require{Mod: want.Mod, Indirect: all[i].Indirect}
		}
	}
	if added > 0 {
		said = append(said, fmt.Sprintf("%d indirect requirements of it", added))
	}
	mod.SetRequireSeparateIndirect(all)
	return said
}

// mergeLines returns the lines of a, and those of b that a does not have.
func mergeLines(a, b []byte) []byte {
	have := map[string]bool{}
	for line := range bytes.Lines(a) {
		have[strings.TrimSpace(string(line))] = true
	}
	out := bytes.Clone(a)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	for line := range bytes.Lines(b) {
		if !have[strings.TrimSpace(string(line))] {
			out = append(out, line...)
		}
	}
	return out
}

// replaceFile writes a file at once or not at all.
func replaceFile(path string, data []byte) error {
	next := path + ".new"
	if err := os.WriteFile(next, data, 0o644); err != nil { //nolint:gosec // as the go command does
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, path)
}
