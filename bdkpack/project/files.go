package project

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// What a folder for workspaces may have: the defaults of [workspace.Limits].
const (
	maxFiles = 10_000
	maxBytes = 512 << 20 // of all files together
)

// checkFiles complains about files of a folder that cannot be in a workspace, and watches them.
func (l *loader) checkFiles(dir string) bool {
	l.watch(Inputs{Contents: []string{dir}})
	before := len(l.diags)
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		l.fail(codeWorkspaceFile, diag.Pos{File: dir}, "put the folder itself here", "it is no folder but a %s", fileKind(info.Mode()))
		return false
	}
	files, total := 0, int64(0)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			l.unreadable(path, err)
			return nil
		case len(l.diags)-before >= maxErrors:
			return fs.SkipAll
		case e.IsDir():
			return nil
		}
		files++
		total += l.checkFile(dir, path)
		return nil
	})
	switch {
	case err != nil:
		l.unreadable(dir, err)
	case len(l.diags) > before:
	case files > maxFiles || total > maxBytes:
		l.fail(codeWorkspaceFile, diag.Pos{File: dir}, "keep what sessions do not need elsewhere",
			"it has %d files of %d bytes together: a workspace has at most %d of %d", files, total, maxFiles, maxBytes)
	default:
		if _, err := workspace.LayerOf(dir, ""); err != nil { // such as names that differ in case only
			l.fail(codeWorkspaceFile, diag.Pos{File: dir}, "rename it", "%v", err)
		}
	}
	return len(l.diags) == before
}

// checkFile complains about a file of a folder that cannot be in a workspace. It returns the file's size.
func (l *loader) checkFile(dir, path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		l.unreadable(path, err)
		return 0
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		l.unreadable(path, err)
		return 0
	}
	pos := diag.Pos{File: path}
	if err := workspace.CheckPath(filepath.ToSlash(rel)); err != nil {
		l.fail(codeWorkspaceFile, pos, "rename it", "%v", err)
	}
	switch {
	case !info.Mode().IsRegular():
		l.fail(codeWorkspaceFile, pos, "remove it, or put a file here: sessions get plain files", "it cannot be in a workspace: it is a %s", fileKind(info.Mode()))
	case info.Size() > blob.MaxSize:
		l.fail(codeWorkspaceFile, pos, "keep it elsewhere, and let a tool fetch what is needed", "it has %d bytes: a file of a workspace has at most %d", info.Size(), int64(blob.MaxSize))
	}
	return info.Size()
}

// fileKind names a kind of file.
func fileKind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}
