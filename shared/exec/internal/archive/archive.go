// Package archive carries the regular files of a directory from one machine to another, and what has changed of them back: a tar
// file in gzip, the same bytes for the same files.
//
// Of the modes of files the execute bit travels. Links, devices and directories without files stay where they are. Whoever reads an
// archive need not trust its writer: all access is through an [os.Root], and what an archive may hold is bounded.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// What an archive may hold.
const (
	MaxFiles = 10_000    // with those that are told to be removed
	MaxBytes = 256 << 20 // of all files
	MaxSize  = MaxBytes + MaxFiles*perFile

	perFile = 4 << 10 // of names and padding
	maxPath = 1024    // bytes
	maxName = 255     // bytes of a part of it
)

// removed is the PAX record of a file that is no more.
const removed = "BDK.removed"

// state tells the contents and the execute bit of a file from others.
type state struct {
	hash       [sha256.Size]byte
	executable bool
}

// Files are the regular files of a directory by their paths in it, with slashes.
type Files map[string]state

// Look returns the files of a directory. What its owner may not read is made readable. Too many files, or too large ones, are a
// bdkerr.PayloadTooLarge error, names that cannot travel a bdkerr.InvalidRequest one.
func Look(root *os.Root) (Files, error) {
	files, left := Files{}, int64(MaxBytes)
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || !d.IsDir() && !info.Mode().IsRegular() {
			return err
		}
		if err := open(root, name, info); err != nil || d.IsDir() {
			return err
		}
		if left -= info.Size(); left < 0 || len(files) == MaxFiles {
			return tooMuch()
		}
		if err := check(name); err != nil {
			return err
		}
		files[name], err = sum(root, name, info)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking at the files: %w", err)
	}
	return files, nil
}

func tooMuch() error {
	return bdkerr.New(bdkerr.PayloadTooLarge, "the command works with more than %d files or %d MiB: that is too much to send", MaxFiles, MaxBytes>>20)
}

// open lets the owner of a file or directory read it.
func open(root *os.Root, name string, info fs.FileInfo) error {
	need := fs.FileMode(0o400)
	if info.IsDir() {
		need = 0o700
	}
	if info.Mode()&need == need {
		return nil
	}
	return root.Chmod(name, info.Mode().Perm()|need)
}

func sum(root *os.Root, name string, info fs.FileInfo) (s state, err error) {
	f, err := root.Open(name)
	if err != nil {
		return s, err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.CopyN(h, f, info.Size()); err != nil {
		return s, fmt.Errorf("reading %s: %w", name, err)
	}
	s.executable = info.Mode()&0o100 != 0
	h.Sum(s.hash[:0])
	return s, nil
}

// check fails for a path that leads out of a directory, or would not mean the same file everywhere.
func check(name string) error {
	long := slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxName })
	if long || len(name) > maxPath || name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") {
		return bdkerr.New(bdkerr.InvalidRequest, "the path %.100q of a file cannot be sent", name)
	}
	return nil
}

// Pack writes to w what has to be done to a directory with the files of base so that it has those of root: all files of root if
// base is nil. It returns how many files that are. It fails as [Look] does.
func Pack(w io.Writer, root *os.Root, base Files) (count int, err error) {
	files, err := Look(root)
	if err != nil {
		return 0, err
	}
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return 0, err
	}
	out := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(base)) { // first, because a file may be a directory now
		if _, there := files[name]; there {
			continue
		}
		count++
		err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Format: tar.FormatPAX, PAXRecords: map[string]string{removed: "1"}})
		if err != nil {
			return 0, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if old, there := base[name]; there && old == files[name] {
			continue
		}
		if count++; count > MaxFiles {
			return 0, tooMuch()
		}
		if err := add(out, root, name, files[name].executable); err != nil {
			return 0, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	return count, errors.Join(out.Close(), zip.Close())
}

func add(out *tar.Writer, root *os.Root, name string, executable bool) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: info.Size(), Format: tar.FormatPAX}
	if executable {
		h.Mode = 0o700
	}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, h.Size)
	return err
}

// Check reads an archive to its end and fails if [Apply] could not go through with it for what is in it.
func Check(r io.Reader) error {
	return each(r, func(*tar.Header, io.Reader) error { return nil })
}

// Apply does to a directory what an archive says. It fails in the middle for one that [Check] would have found wrong, or that was made
// for another directory.
func Apply(root *os.Root, r io.Reader) error {
	return each(r, func(h *tar.Header, content io.Reader) error {
		if h.PAXRecords[removed] != "" {
			return remove(root, h.Name)
		}
		return write(root, h, content)
	})
}

// remove removes a file, if there is one, and the directories that are empty without it.
func remove(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil || info.IsDir() {
		return nil //nolint:nilerr // there is no such file
	}
	err = root.Remove(name)
	for name = path.Dir(name); err == nil && name != "." && root.Remove(name) == nil; {
		name = path.Dir(name)
	}
	return err
}

func write(root *os.Root, h *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(h.Name), 0o700); err != nil {
		return err
	}
	if err := root.RemoveAll(h.Name); err != nil { // also a link, rather than what it leads to
		return err
	}
	mode := fs.FileMode(0o600)
	if h.Mode&0o100 != 0 {
		mode = 0o700
	}
	f, err := root.OpenFile(h.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, content, h.Size)
	return errors.Join(err, f.Close())
}

// each calls do for the entries of an archive. It fails for anything that [Pack] does not write.
func each(r io.Reader, do func(h *tar.Header, content io.Reader) error) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("reading an archive of files: %w", err)
	}
	limited := &io.LimitedReader{R: zip, N: MaxSize}
	in, seen := tar.NewReader(limited), entries{names: map[string]bool{}, gone: map[string]bool{}, left: MaxBytes}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = seen.add(h)
		}
		if err == nil {
			err = do(h, in)
		}
		if err != nil {
			return fmt.Errorf("reading an archive of files: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, limited); err != nil { // to its checksum
		return fmt.Errorf("reading an archive of files: %w", err)
	}
	if limited.N == 0 {
		return fmt.Errorf("reading an archive of files: %w", tooMuch())
	}
	return nil
}

// entries are what was read of an archive.
type entries struct {
	names map[string]bool // true: of a file, false: of a directory
	gone  map[string]bool
	count int
	left  int64
}

func (e *entries) add(h *tar.Header) error {
	_, gone := h.PAXRecords[removed]
	if err := check(h.Name); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg || h.Size < 0 || gone && h.Size != 0 {
		return fmt.Errorf("%.100q is not a regular file", h.Name)
	}
	if e.count++; e.count > MaxFiles {
		return tooMuch()
	}
	if e.left -= h.Size; e.left < 0 {
		return tooMuch()
	}
	if _, there := e.names[h.Name]; there || e.gone[h.Name] || gone && len(e.names) > 0 {
		return fmt.Errorf("%.100q is there twice, or too late", h.Name)
	}
	if gone {
		e.gone[h.Name] = true
		return nil
	}
	e.names[h.Name] = true
	for dir := path.Dir(h.Name); dir != "."; dir = path.Dir(dir) {
		if e.names[dir] {
			return fmt.Errorf("%.100q is both a file and a directory", dir)
		}
		e.names[dir] = false
	}
	return nil
}
