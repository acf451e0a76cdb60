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

// Inputs are the files that a workspace's program is built from. Paths are absolute and sorted. Tests and names that begin
// with a dot or an underscore never matter in a directory.
type Inputs struct {
	// Dirs are the directories of Go packages, without what is below them: every package of the main module, or of a
	// module replaced by a local folder, that the program imports. Their Go sources matter.
	Dirs []string `json:"dirs"`

	// Trees are bot/ or agent/ of each agent and the folders below. Which folders, Go files and Markdown files are in them
	// matters.
	Trees []string `json:"trees"`

	// Parents are folders of agents. Which of the folders in them are agents matters.
	Parents []string `json:"parents,omitempty"`

	// Embeds are patterns of embedded files. Which files match matters.
	Embeds []string `json:"embeds,omitempty"`

	// Contents are folders for workspaces. All that is in them matters, whatever its name.
	Contents []string `json:"contents,omitempty"`

	// Files matter as a whole: instructions, scripts of models, go.mod, go.sum, go.work, embedded files. Some may not
	// exist, of those that are directories matters only that they exist.
	Files []string `json:"files"`
}

// sorted returns the inputs in order, each once.
func (in Inputs) sorted() Inputs {
	for _, list := range []*[]string{&in.Dirs, &in.Trees, &in.Parents, &in.Embeds, &in.Contents, &in.Files} {
		*list = slices.Clone(*list)
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return in
}

// With returns the inputs and one more file.
func (in Inputs) With(file string) Inputs {
	in.Files = append(slices.Clone(in.Files), file)
	return in.sorted()
}

// Folders returns the folders in which something may happen that matters, some of which may not exist.
func (in Inputs) Folders() []string {
	all := slices.Concat(in.Dirs, in.Trees, in.Parents)
	for _, file := range slices.Concat(in.Files, in.Embeds, in.Contents) {
		all = append(all, filepath.Dir(file))
	}
	for _, parent := range in.Parents {
		for _, child := range children(parent) {
			all = append(all, child, filepath.Join(child, "agent"))
		}
	}
	for _, pattern := range in.Embeds {
		_ = walkEmbedded(pattern, func(path string, dir bool) { // what cannot be read is said by the fingerprint
			if dir {
				all = append(all, path)
			}
		})
	}
	for _, dir := range in.Contents {
		_ = walkContents(dir, func(path string, e fs.DirEntry) error { // what cannot be read is said by the fingerprint
			if e.IsDir() {
				all = append(all, path)
			}
			return nil
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Matters says whether the fingerprint may be another one after something happened to a path, which is absolute.
func (in Inputs) Matters(path string) bool {
	has := func(list []string, path string) bool {
		_, found := slices.BinarySearch(list, path)
		return found
	}
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	switch {
	case has(in.Files, path) || has(in.Trees, path) || has(in.Dirs, path):
		return true
	case in.isContent(path):
		return !isLitter(name)
	case hidden(name) || strings.HasSuffix(name, "_test.go"):
		return false
	case has(in.Dirs, dir) && isSource(name):
		return true
	case has(in.Trees, dir) && (isSource(name) || isMarkdown(name) || isDir(path)):
		return true
	}
	return in.mayMakeAgent(path) || in.mayBeEmbedded(path)
}

// mayMakeAgent says whether a path decides if a folder is an agent.
func (in Inputs) mayMakeAgent(path string) bool {
	if !slices.Contains(append(rootNames(), "bot", "agent"), filepath.Base(path)) && !isDir(path) {
		return false
	}
	for range 3 { // one/bot, one/agent/tools
		path = filepath.Dir(path)
		if slices.Contains(in.Parents, path) {
			return true
		}
	}
	return false
}

// mayBeEmbedded says whether a path, or a folder it is in, matches a pattern.
func (in Inputs) mayBeEmbedded(path string) bool {
	for _, pattern := range in.Embeds {
		for at := path; len(at) >= len(filepath.Dir(pattern)) && at != filepath.Dir(at); at = filepath.Dir(at) {
			if ok, err := filepath.Match(pattern, at); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// isContent says whether a path is one of Contents, or below one.
func (in Inputs) isContent(path string) bool {
	return slices.ContainsFunc(in.Contents, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
	})
}

// isLitter says whether a file has a name that editors and desktops give to their own.
func isLitter(name string) bool {
	for _, pattern := range []string{"*~", ".*.sw[px]", ".#*", "#*#", ".DS_Store"} {
		if ok, _ := filepath.Match(pattern, name); ok { // the patterns are good
			return true
		}
	}
	return false
}

// walkContents calls visit for all that is in a folder for workspaces. One that does not exist has nothing.
func walkContents(dir string, visit func(path string, e fs.DirEntry) error) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case isLitter(e.Name()) && !e.IsDir():
			return nil
		}
		return visit(path, e)
	})
}

// children returns the folders in a folder.
func children(dir string) []string {
	entries, _ := os.ReadDir(dir) // what cannot be read has none
	var all []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); !hidden(e.Name()) && isDir(path) {
			all = append(all, path)
		}
	}
	return all
}

// walkEmbedded calls visit for each file and folder that a pattern embeds.
func walkEmbedded(pattern string, visit func(path string, dir bool)) error {
	matches, err := filepath.Glob(pattern)
	for _, match := range matches {
		err = errors.Join(err, filepath.WalkDir(match, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path != match && hidden(e.Name()) && e.IsDir():
				return fs.SkipDir
			case path == match || !hidden(e.Name()):
				visit(path, e.IsDir())
			}
			return nil
		}))
	}
	return err
}

// moduleFiles returns the files that decide which modules are used.
func moduleFiles(m Module) []string {
	work := filepath.Join(m.Dir, "go.work")
	if m.GoWork != "" {
		work = m.GoWork
	}
	return []string{filepath.Join(m.Dir, "go.mod"), filepath.Join(m.Dir, "go.sum"), filepath.Join(m.Dir, "vendor", "modules.txt"), work, work + ".sum"}
}

// inputs returns the packages whose sources may change, and which of their files matter beside sources.
func (g graph) inputs() Inputs {
	var in Inputs
	for _, p := range g {
		if !p.local() || p.Dir == "" {
			continue
		}
		in.Dirs, in.Files = append(in.Dirs, p.Dir), append(in.Files, p.Module.GoMod)
		for _, name := range p.EmbedFiles {
			in.Files = append(in.Files, filepath.Join(p.Dir, name))
		}
		for _, pattern := range p.EmbedPatterns {
			in.Embeds = append(in.Embeds, filepath.Join(p.Dir, filepath.FromSlash(strings.TrimPrefix(pattern, "all:"))))
		}
	}
	return in
}

// Fingerprint returns a hash of the inputs. Whatever changes the program changes it, the go command and its settings left
// aside.
func (in Inputs) Fingerprint() (string, error) {
	h := sha256.New()
	var errs []error
	for _, dir := range in.Dirs {
		errs = append(errs, hashDir(h, dir))
	}
	for _, dir := range in.Trees {
		errs = append(errs, hashTree(h, dir))
	}
	for _, parent := range in.Parents {
		for _, child := range children(parent) {
			if root, _ := agentRoot(child); root != "" {
				fmt.Fprintf(h, "agent %q %s\n", child, root)
			}
		}
	}
	for _, pattern := range in.Embeds {
		errs = append(errs, walkEmbedded(pattern, func(path string, dir bool) {
			if !dir {
				fmt.Fprintf(h, "embedded %q\n", path)
			}
		}))
	}
	for _, dir := range in.Contents {
		errs = append(errs, walkContents(dir, func(path string, e fs.DirEntry) error { return hashContent(h, path, e) }))
	}
	for _, file := range in.Files {
		errs = append(errs, hashFile(h, file))
	}
	if err := errors.Join(errs...); err != nil {
		return "", fmt.Errorf("reading what the program is built from: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashDir hashes the sources in a directory.
func hashDir(h hash.Hash, dir string) error {
	return eachEntry(dir, func(path string, e fs.DirEntry) error {
		if !isSource(e.Name()) {
			return nil
		}
		fmt.Fprintf(h, "source %q %v\n", path, e.Type())
		return hashFile(h, path)
	})
}

// hashTree hashes the names in a folder of an agent.
func hashTree(h hash.Hash, dir string) error {
	return eachEntry(dir, func(path string, e fs.DirEntry) error {
		if folder := isDir(path); folder || isSource(path) || isMarkdown(path) {
			fmt.Fprintf(h, "entry %q %v %t\n", path, e.Type(), folder)
		}
		return nil
	})
}

// hashContent hashes a file or folder for workspaces. Of a large file the time stands for what it says.
func hashContent(h hash.Hash, path string, e fs.DirEntry) error {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "content %q %v %t\n", path, e.Type(), info.Mode()&0o111 != 0)
	switch {
	case !info.Mode().IsRegular():
		return nil
	case info.Size() > 1<<20:
		fmt.Fprintf(h, "%d %d\n", info.Size(), info.ModTime().UnixNano())
		return nil
	}
	return hashFile(h, path)
}

// eachEntry calls visit for what may matter in a directory. One that does not exist has no entries.
func eachEntry(dir string, visit func(path string, e fs.DirEntry) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if hidden(e.Name()) || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if err := visit(filepath.Join(dir, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func isMarkdown(name string) bool { return strings.EqualFold(filepath.Ext(name), ".md") }

// isSource says whether the go command compiles a file.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".s", ".c", ".h", ".cc", ".cpp", ".hh", ".hpp", ".syso":
		return true
	}
	return false
}

// hashFile hashes a file's contents. A file that does not exist, or a directory, has none, but
// is told apart.
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
	if err != nil {
		return err
	}
	if info.IsDir() {
		fmt.Fprintf(h, "directory %q\n", path)
		return nil
	}
	fmt.Fprintf(h, "file %q %d\n", path, info.Size())
	_, err = io.Copy(h, f)
	return err
}
