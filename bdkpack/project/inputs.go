package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Inputs are the files that a workspace's program is built from. Paths are absolute and sorted.
type Inputs struct {
	// Dirs are directories whose entries and Go sources matter, without what is below them: the agents' folders and
	// every package of the main module, or of a module replaced by a local folder, that the program imports.
	Dirs []string `json:"dirs"`

	// Files matter as a whole: instructions, go.mod, go.sum, go.work, embedded files. Some may not exist.
	Files []string `json:"files"`
}

// sorted returns the inputs in order, each once.
func (in Inputs) sorted() Inputs {
	slices.Sort(in.Dirs)
	slices.Sort(in.Files)
	return Inputs{Dirs: slices.Compact(in.Dirs), Files: slices.Compact(in.Files)}
}

// moduleFiles returns the files that decide which modules are used.
func moduleFiles(m Module) []string {
	work := filepath.Join(m.Dir, "go.work")
	if m.GoWork != "" {
		work = m.GoWork
	}
	return []string{filepath.Join(m.Dir, "go.mod"), filepath.Join(m.Dir, "go.sum"), filepath.Join(m.Dir, "vendor", "modules.txt"), work, work + ".sum"}
}

// sources returns the packages whose sources may change, and which of their files matter beside sources.
func (g graph) sources() (dirs, files []string) {
	for _, p := range g {
		if !p.local() || p.Dir == "" {
			continue
		}
		dirs, files = append(dirs, p.Dir), append(files, p.Module.GoMod)
		for _, name := range p.EmbedFiles {
			files = append(files, filepath.Join(p.Dir, name))
		}
	}
	return dirs, files
}

// Fingerprint returns a hash of the contents of the inputs. Whatever changes the program or its diagnostics changes it,
// the go command and its settings left aside.
func (in Inputs) Fingerprint() (string, error) {
	h := sha256.New()
	for _, dir := range in.Dirs {
		if err := hashDir(h, dir); err != nil {
			return "", fmt.Errorf("reading what the program is built from: %w", err)
		}
	}
	for _, file := range in.Files {
		if err := hashFile(h, file); err != nil {
			return "", fmt.Errorf("reading what the program is built from: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashDir hashes a directory's entries and its sources.
func hashDir(h hash.Hash, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fmt.Fprintf(h, "dir %q %t\n", dir, err == nil)
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		fmt.Fprintf(h, "entry %q %v\n", name, e.Type())
		if isSource(name) {
			if err := hashFile(h, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isSource says whether the go command compiles a file.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".s", ".c", ".h", ".cc", ".cpp", ".hh", ".hpp", ".syso":
		return true
	}
	return false
}

// hashFile hashes a file's contents. A file that does not exist, or a directory, has none.
func hashFile(h hash.Hash, path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(h, "no file %q\n", path)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	fmt.Fprintf(h, "file %q %d\n", path, info.Size())
	_, err = io.Copy(h, f)
	return err
}
