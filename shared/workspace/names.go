package workspace

import (
	"strings"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// names knows which paths can be files beside each other: no two that differ only in case, no file where a folder is.
type names map[string]name // by the folded path

// name is a file or a folder.
type name struct {
	path  string
	files int // in the folder; 0 for a file
}

// check returns an error if path cannot be a file beside the others. It can if it is one of them.
func (n names) check(path string) error {
	for folder := range folders(path) {
		switch at, ok := n[fold(folder)]; {
		case !ok:
			return nil // nothing is in that folder
		case at.files == 0:
			return bdkerr.New(bdkerr.InvalidRequest, "the path %q leads through %q, which is a file", path, at.path)
		case at.path != folder:
			return bdkerr.New(bdkerr.InvalidRequest, "the path %q leads through the folder %q, which differs from %q in case only", path, folder, at.path)
		}
	}
	switch at, ok := n[fold(path)]; {
	case !ok:
		return nil
	case at.files > 0:
		return bdkerr.New(bdkerr.InvalidRequest, "the path %q is a folder, not a file: %q", path, at.path)
	case at.path != path:
		return bdkerr.New(bdkerr.InvalidRequest, "the path %q differs in case only from the file %q", path, at.path)
	}
	return nil
}

// add adds a file that check has allowed and that was not there.
func (n names) add(path string) {
	for folder := range folders(path) {
		key := fold(folder)
		n[key] = name{path: folder, files: n[key].files + 1}
	}
	n[fold(path)] = name{path: path}
}

// remove removes a file, and the folders that are empty without it.
func (n names) remove(path string) {
	delete(n, fold(path))
	for folder := range folders(path) {
		key := fold(folder)
		if at := n[key]; at.files > 1 {
			n[key] = name{path: at.path, files: at.files - 1}
		} else {
			delete(n, key)
		}
	}
}

// folders yields the folders that path is in, the outermost first.
func folders(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(path) {
			if path[i] == '/' && !yield(path[:i]) {
				return
			}
		}
	}
}

// top returns the outermost folder of path with its slash, or path itself.
func top(path string) string {
	if folder, _, ok := strings.Cut(path, "/"); ok {
		return folder + "/"
	}
	return path
}
