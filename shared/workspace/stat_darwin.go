package workspace

import (
	"io/fs"
	"syscall"
)

// statOf returns what tells whether a file was changed.
func statOf(info fs.FileInfo) stat {
	s := stat{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano(), links: 1}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ctime, s.dev, s.ino, s.links = sys.Ctimespec.Nano(), uint64(sys.Dev), sys.Ino, uint64(sys.Nlink)
	}
	return s
}
