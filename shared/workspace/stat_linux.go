package workspace

import (
	"io/fs"
	"syscall"
)

// statOf returns what tells whether a file was changed.
func statOf(info fs.FileInfo) stat {
	s := stat{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano(), links: 1}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ctime, s.dev, s.ino = sys.Ctim.Nano(), sys.Dev, sys.Ino
		s.links = uint64(sys.Nlink) //nolint:unconvert // it is uint32 on arm64
	}
	return s
}
