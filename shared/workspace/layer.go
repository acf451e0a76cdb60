package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
)

// Layer is an unchanging set of files: those of an agent, or the first ones of its sessions. A nil Layer has none. It is safe
// for concurrent use.
type Layer struct {
	files map[string]layerFile
	names names
}

// layerFile is a file in memory or on disk.
type layerFile struct {
	size int64
	exec bool
	data []byte // never changed
	dir  string // where name is, if it is on disk
	name string
}

// NewLayer returns a layer of files in memory, none of them executable. The map and the data must not be changed afterwards.
// The error is a bdkerr.InvalidRequest if [CheckPath] refuses a path, two of them clash, or a file is larger than [blob.MaxSize].
func NewLayer(files map[string][]byte) (*Layer, error) {
	l := &Layer{files: make(map[string]layerFile, len(files)), names: names{}}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if err := l.add(p, layerFile{size: int64(len(files[p])), data: files[p]}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// LayerOf returns a layer of the files in the directory dir, with their permissions to execute, below the folder prefix of
// workspaces ("" for none). Their contents are read when they are asked for: they must stay there, unchanged. Anything in the
// directory that is no file or folder, such as a symbolic link, is an error that names it; so is what [NewLayer] refuses.
func LayerOf(dir, prefix string) (*Layer, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening a folder of the agent: %w", err)
	}
	l := &Layer{files: map[string]layerFile{}, names: names{}}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return bdkerr.New(bdkerr.InvalidRequest, "%s is no regular file (%s): it cannot be in a workspace", path.Join(dir, name), info.Mode().Type())
		}
		return l.add(path.Join(prefix, name), layerFile{size: info.Size(), exec: isExec(info.Mode()), dir: dir, name: name})
	})
	if err := errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("reading a folder of the agent: %w", err)
	}
	return l, nil
}

// With returns a layer that also has the given file, in the place of the one at that path if there is one. The data must not be
// changed afterwards. Errors are those of [NewLayer].
func (l *Layer) With(path string, data []byte, exec bool) (*Layer, error) {
	return Merge(l, &Layer{files: map[string]layerFile{path: {size: int64(len(data)), exec: exec, data: data}}})
}

// Merge returns a layer of the files of all layers; of those with the same path that of the last layer. Errors are those of
// [NewLayer].
func Merge(layers ...*Layer) (*Layer, error) {
	merged := &Layer{files: map[string]layerFile{}, names: names{}}
	for _, l := range layers {
		for _, p := range l.paths() {
			if err := merged.add(p, l.files[p]); err != nil {
				return nil, err
			}
		}
	}
	return merged, nil
}

func (l *Layer) add(p string, f layerFile) error {
	if err := CheckPath(p); err != nil {
		return err
	}
	if f.size > blob.MaxSize {
		return bdkerr.New(bdkerr.InvalidRequest, "the file %q has %d bytes: at most %d are allowed", p, f.size, int64(blob.MaxSize))
	}
	if err := l.names.check(p); err != nil {
		return err
	}
	if _, ok := l.files[p]; !ok {
		l.names.add(p)
	}
	l.files[p] = f
	return nil
}

// paths returns the sorted paths.
func (l *Layer) paths() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.files))
}

// file returns the file at p.
func (l *Layer) file(p string) (layerFile, bool) {
	if l == nil {
		return layerFile{}, false
	}
	f, ok := l.files[p]
	return f, ok
}

// check returns an error if p cannot be a file beside those of the layer, nor in the place of one.
func (l *Layer) check(p string) error {
	if l == nil {
		return nil
	}
	return l.names.check(p)
}

// read returns the content, which is the caller's.
func (f layerFile) read() ([]byte, error) {
	if f.dir == "" {
		return bytes.Clone(f.data), nil
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, fmt.Errorf("opening a folder of the agent: %w", err)
	}
	data, err := readRegular(root, f.name, blob.MaxSize)
	if err := errors.Join(err, root.Close()); err != nil {
		// The file is missing from the deployment, not from the workspace: that is no fs.ErrNotExist.
		return nil, bdkerr.New(bdkerr.NoWorkspace, "the agent's file %s cannot be read: %v", path.Join(f.dir, f.name), err)
	}
	return data, nil
}

func isExec(m fs.FileMode) bool { return m&0o111 != 0 }
