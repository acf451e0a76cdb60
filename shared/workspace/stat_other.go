//go:build !linux && !darwin

package workspace

import "io/fs"

// statOf returns what tells whether a file was changed.
func statOf(info fs.FileInfo) stat {
	return stat{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano(), links: 1}
}
