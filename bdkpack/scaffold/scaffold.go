// Package scaffold writes a new agent: the files of a template, what deploys it to AWS and, unless it becomes part of a Go
// module that is there, a go.mod that builds against a checkout of this repository, so that nothing has to be downloaded that
// the checkout has not needed already.
package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/bdk-lambda/bdk/bdkpack/templates"
)

// Options say what to write. Template and Checkout are required.
type Options struct {
	Template string            // the name of a template
	Vars     map[string]string // its variables; those that are not given keep their defaults
	Module   string            // the path of a module of its own; default: the module around it, or example.com/<slug>
	Checkout string            // the folder of the checkout to build against
}

// Result says what was written.
type Result struct {
	Dir    string   // absolute
	Slug   string   // the name of Dir
	Module string   // the path of the module it belongs to
	GoMod  string   // the go.mod of that module, absolute
	Files  []string // relative to Dir, with slashes, sorted
	GoWork string   // a go.work file above the module that does not use it, so that the go command ignores its go.mod; "" if there is none

	// Added is what was added to a go.mod that was there so that the agent builds, for people, and Missing what has to be
	// added by hand. Both are "" if nothing is.
	Added, Missing string
}

// Write writes a new agent into dir, which must be new or empty; a .git folder and a go.mod may be there. The name of dir
// becomes the agent's slug. If it fails nothing is left behind but folders.
func Write(dir string, opts Options) (*Result, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder: %w", err)
	}
	slug := filepath.Base(dir)
	around, err := findModule(dir, opts)
	if err != nil {
		return nil, err
	}
	r := &Result{Dir: dir, Slug: slug, Module: around.path, GoMod: filepath.Join(around.dir, "go.mod")}
	if err := errors.Join(checkSlug(slug), checkModule(around.agent), checkEmpty(dir)); err != nil {
		return nil, err
	}
	template, err := find(opts.Template)
	if err != nil {
		return nil, err
	}
	files, err := template.Render(opts.Vars, around.agent, slug)
	if err != nil {
		return nil, err
	}
	theirs, err := readCheckout(opts.Checkout)
	if err != nil {
		return nil, err
	}
	if err := theirs.addInfra(files); err != nil {
		return nil, err
	}
	if !around.exists {
		if err := theirs.addModule(files, around.path); err != nil {
			return nil, err
		}
	}
	if err := writeAll(dir, files); err != nil {
		return nil, err
	}
	r.Files = slices.Sorted(maps.Keys(files))
	if around.exists {
		if r.Added, r.Missing, err = theirs.join(around); err != nil {
			return nil, errors.Join(err, removeAll(dir, r.Files))
		}
	}
	r.GoWork = goWork(around.dir)
	return r, nil
}

var slugPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

func checkSlug(slug string) error {
	if !slugPattern.MatchString(slug) || slices.Contains([]string{"v1", "playground", "docs"}, slug) {
		return fmt.Errorf("the name of the folder becomes the agent's name in URLs, and %q cannot be one: "+
			"use letters, digits, - and _, beginning with a letter or digit, and not v1, playground or docs", slug)
	}
	return nil
}

func checkModule(path string) error {
	// A path without a dot is fine for a module that nobody downloads.
	if err := module.CheckImportPath(path); err != nil {
		return fmt.Errorf("the agent's import path, which begins with the module path, cannot be used: %w", err)
	}
	return nil
}

// checkEmpty fails if there is something in dir, and names it.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into the folder: %w", err)
	}
	var there []string
	for _, e := range entries {
		if name := e.Name(); !slices.Contains([]string{".git", ".DS_Store", "go.mod", "go.sum"}, name) {
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return nil
	}
	const show = 5
	list := strings.Join(there[:min(show, len(there))], ", ")
	if len(there) > show {
		list += fmt.Sprintf(" and %d more", len(there)-show)
	}
	return fmt.Errorf("%s is not empty, it holds %s: name a new folder", dir, list)
}

func find(name string) (templates.Template, error) {
	var names []string
	for _, t := range templates.List() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return templates.Template{}, fmt.Errorf("there is no template %q; there are: %s", name, strings.Join(names, ", "))
}

// writeAll writes the files below dir, or none.
func writeAll(dir string, files map[string]templates.File) error {
	var written []string
	for name, file := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // source code, as the author's umask allows
		if err == nil {
			err = os.WriteFile(path, file.Data, file.Mode)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("writing the agent: %w", err), removeAll(dir, written))
		}
		written = append(written, name)
	}
	return nil
}

func removeAll(dir string, files []string) error {
	var errs []error
	for _, name := range files {
		errs = append(errs, os.Remove(filepath.Join(dir, filepath.FromSlash(name))))
	}
	return errors.Join(errs...)
}
