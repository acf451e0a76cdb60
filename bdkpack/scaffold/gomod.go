package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/bdk-lambda/bdk/bdkpack/templates"
)

const (
	bdkModule = "github.com/bdk-lambda/bdk"
	noVersion = "v0.0.0" // of a module that is replaced by a folder
)

// IsCheckout reports whether dir holds the go.mod of this repository.
func IsCheckout(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(data) == bdkModule
}

// checkout is the repository to build against.
type checkout struct {
	dir  string
	mod  *modfile.File
	sums []byte
}

func readCheckout(dir string) (*checkout, error) {
	if !IsCheckout(dir) {
		return nil, fmt.Errorf("%q is not a checkout of %s", dir, bdkModule)
	}
	c := &checkout{dir: dir}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err == nil {
		c.mod, err = modfile.Parse("go.mod", data, nil)
	}
	if err == nil {
		c.sums, err = os.ReadFile(filepath.Join(dir, "go.sum"))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the checkout: %w", err)
	}
	return c, nil
}

// addModule adds go.mod and go.sum: they build against the checkout with the dependencies that the checkout has.
func (c *checkout) addModule(files map[string]templates.File, path string) error {
	mod, err := goMod(c.mod, path, c.dir)
	if err != nil {
		return fmt.Errorf("making go.mod: %w", err)
	}
	files["go.mod"] = templates.File{Data: mod, Mode: 0o644}
	files["go.sum"] = templates.File{Data: c.sums, Mode: 0o644}
	return nil
}

// goMod returns a go.mod that requires this repository and all that it requires.
func goMod(theirs *modfile.File, path, checkout string) ([]byte, error) {
	m := new(modfile.File)
	err := errors.Join(
		m.AddModuleStmt(path),
		m.AddGoStmt(theirs.Go.Version),
		m.AddRequire(bdkModule, noVersion),
		m.AddReplace(bdkModule, "", filepath.ToSlash(checkout), ""),
	)
	if err != nil {
		return nil, err
	}
	if theirs.Toolchain != nil {
		err = m.AddToolchainStmt(theirs.Toolchain.Name)
	}
	indirect := []*modfile.Require{{Mod: m.Require[0].Mod}}
	for _, r := range theirs.Require {
		indirect = append(indirect, &modfile.Require{Mod: r.Mod, Indirect: true})
	}
	m.SetRequireSeparateIndirect(indirect)
	m.Cleanup()
	data, formatErr := m.Format()
	return data, errors.Join(err, formatErr)
}

// goWork returns a go.work file above dir that keeps the go command from using the go.mod in dir, "" if there is none.
func goWork(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		path := filepath.Join(at, "go.work")
		data, err := os.ReadFile(path)
		switch {
		case err == nil && uses(data, at, dir):
			return ""
		case err == nil:
			return path
		case !errors.Is(err, fs.ErrNotExist), at == filepath.Dir(at):
			return ""
		}
	}
}

// uses reports whether a go.work file in folder at uses the module in dir.
func uses(data []byte, at, dir string) bool {
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return false
	}
	for _, use := range work.Use {
		path := filepath.FromSlash(use.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(at, path)
		}
		if filepath.Clean(path) == dir {
			return true
		}
	}
	return false
}
