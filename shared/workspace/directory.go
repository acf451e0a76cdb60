package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
)

// What is in the private directory of a workspace.
const (
	filesDir = "files" // the files; what Dir returns
	stampOf  = "stamp" // written to know the time of the file system
)

// maxTries is how often a file that is replaced all the time is opened.
const maxTries = 100

// errReplaced says that a file is not the one that was found a moment ago.
var errReplaced = errors.New("a file is replaced all the time")

// directory is the files of a workspace on this machine. Programs that change them may run at any time: nothing that was
// looked at is known to be there a moment later. All access goes through roots, so that it stays inside whatever happens.
type directory struct {
	path  string // private, made by this process
	top   *os.Root
	files *os.Root
	known map[string]known // by path, as of the last look
	most  int              // entries that are looked at
}

// known is a file as it was when its content was last known.
type known struct {
	stat stat
	ref  blob.Ref // of the content
	racy bool     // a change may not show in stat: the file was as young as the clock of the file system can tell
}

// stat is what tells whether a file was changed.
type stat struct {
	size         int64
	mode         fs.FileMode
	mtime, ctime int64 // in nanoseconds; ctime is 0 where it is unknown
	dev, ino     uint64
	links        uint64 // names of the file
}

// look is what was found in a directory.
type look struct {
	stamp int64 // the time of the file system before the look
	files map[string]stat
	notes []string // what was left out
	left  int      // entries that may still be looked at
	most  int
}

// newDirectory makes an empty directory with mode 0700 below parent, of which no more than most entries are looked at.
func newDirectory(parent string, most int) (*directory, error) {
	if parent != "" {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(parent, "workspace-")
	if err != nil {
		return nil, err
	}
	d := &directory{path: dir, known: map[string]known{}, most: most}
	if d.top, err = os.OpenRoot(dir); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	err = d.top.Mkdir(filesDir, 0o700)
	if err == nil {
		d.files, err = d.top.OpenRoot(filesDir)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// filesPath is what Dir returns.
func (d *directory) filesPath() string { return filepath.Join(d.path, filesDir) }

// close removes the directory.
func (d *directory) close() error {
	err := os.RemoveAll(d.path)
	if err != nil { // programs leave folders that must not be written to
		walkErr := fs.WalkDir(d.top.FS(), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = d.top.Chmod(name, 0o700)
			}
			return err
		})
		err = errors.Join(walkErr, os.RemoveAll(d.path))
	}
	if d.files != nil {
		err = errors.Join(err, d.files.Close())
	}
	return errors.Join(err, d.top.Close())
}

// create writes a file that is not there yet.
func (d *directory) create(p string, data []byte, exec bool) error {
	if err := d.files.MkdirAll(path.Dir(p), 0o700); err != nil {
		return err
	}
	return writeNew(d.files, p, data, exec)
}

// replace writes a file whatever was there, all of it or nothing. Links are not followed.
func (d *directory) replace(p string, data []byte, exec bool) error {
	for folder := range folders(p) {
		if err := d.files.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := checkFolder(d.files, folder); err != nil {
			return err
		}
	}
	if info, err := d.files.Lstat(p); err == nil && info.IsDir() {
		return bdkerr.New(bdkerr.InvalidRequest, "the path %q is a folder, not a file", p)
	}
	tmp := rand.Text()
	if err := writeNew(d.top, tmp, data, exec); err != nil {
		return err
	}
	if err := d.top.Rename(tmp, path.Join(filesDir, p)); err != nil {
		return errors.Join(err, d.top.Remove(tmp))
	}
	return nil
}

func writeNew(root *os.Root, p string, data []byte, exec bool) error {
	mode := fs.FileMode(0o600)
	if exec {
		mode = 0o700
	}
	f, err := root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close(), root.Remove(p))
	}
	return f.Close()
}

// unchanged reports whether p, found with stat s, has the content and mode that are known of it.
func (d *directory) unchanged(p string, s stat) (bool, error) {
	was, ok := d.known[p]
	if !ok || was.stat.size != s.size || isExec(was.stat.mode) != isExec(s.mode) {
		return false, nil
	}
	if was.stat == s && !was.racy {
		return true, nil
	}
	data, err := readRegular(d.files, p, blob.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && blob.RefOf(data) == was.ref, err
}

// look returns the files that can be in a workspace, with a note of each thing that cannot.
func (d *directory) look(ctx context.Context) (*look, error) {
	l := &look{files: map[string]stat{}, left: d.most, most: d.most}
	stamp, err := d.stamp()
	if err != nil {
		return nil, err
	}
	l.stamp = stamp
	if err := l.walk(ctx, d.files, ""); err != nil {
		return nil, err
	}
	d.dropForeign(l)
	return l, nil
}

// stamp returns the time of the file system. A file changed after it has this or a later time.
func (d *directory) stamp() (int64, error) {
	if err := d.top.WriteFile(stampOf, []byte("."), 0o600); err != nil {
		return 0, err
	}
	info, err := d.top.Lstat(stampOf)
	if err != nil {
		return 0, err
	}
	return statOf(info).changed(), nil
}

// changed returns the time of the last change.
func (s stat) changed() int64 { return max(s.mtime, s.ctime) }

// dropForeign leaves out the files that also have names outside of the directory. One that was ours before they got those stays.
func (d *directory) dropForeign(l *look) {
	type id struct{ dev, ino uint64 }
	inside := map[id]uint64{}
	for _, s := range l.files {
		if s.links > 1 {
			inside[id{s.dev, s.ino}]++
		}
	}
	for p, s := range l.files {
		was, ok := d.known[p]
		ours := ok && was.stat.dev == s.dev && was.stat.ino == s.ino
		if s.links > max(1, inside[id{s.dev, s.ino}]) && !ours {
			delete(l.files, p)
			l.note(p, "it is also a file outside of the workspace (hard link)")
		}
	}
	slices.Sort(l.notes)
}

func (l *look) note(p, why string) { l.notes = append(l.notes, fmt.Sprintf("%.200q: %s", p, why)) }

// walk adds what is in the folder p, which is open as root. Paths have a limited depth, and so has the recursion.
func (l *look) walk(ctx context.Context, root *os.Root, p string) error {
	names, err := l.list(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.entry(ctx, root, path.Join(p, name), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *look) entry(ctx context.Context, root *os.Root, p, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if why := pathFault(p); why != "" {
		l.note(p, why)
		return nil
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		if mode.Perm()&0o700 != 0o700 {
			_ = root.Chmod(name, 0o700) // it shows when it is opened
		}
		sub, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		return errors.Join(l.walk(ctx, sub, p), sub.Close())
	case mode.IsRegular():
		if mode.Perm()&0o400 == 0 {
			_ = root.Chmod(name, mode.Perm()|0o600) // it shows when it is read
			if info, err = root.Lstat(name); err != nil {
				return err
			}
		}
		l.files[p] = statOf(info)
	case mode&fs.ModeSymlink != 0:
		l.note(p, "it is a symbolic link")
	default:
		l.note(p, "it is neither a file nor a folder")
	}
	return nil
}

// list returns the sorted names in a folder.
func (l *look) list(root *os.Root) ([]string, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(l.left + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if l.left -= len(names); l.left < 0 {
		return nil, bdkerr.New(bdkerr.PayloadTooLarge, "the directory of the workspace has more than %d files and folders", l.most)
	}
	slices.Sort(names)
	return names, nil
}

// readRegular returns the content of a file of at most limit bytes. Links are not followed, pipes not waited for. The error is
// an fs.ErrNotExist if there is nothing, or a folder that leads to it is none.
func readRegular(root *os.Root, p string, limit int64) (data []byte, err error) {
	for range maxTries {
		if data, err = tryRead(root, p, limit); !errors.Is(err, errReplaced) {
			return data, err
		}
	}
	return nil, fmt.Errorf("reading %q: %w", p, err)
}

func tryRead(root *os.Root, p string, limit int64) ([]byte, error) {
	for folder := range folders(p) {
		if err := checkFolder(root, folder); err != nil {
			return nil, err
		}
	}
	info, err := root.Lstat(p)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, bdkerr.New(bdkerr.InvalidRequest, "%q is no file (%s)", p, kind(info.Mode()))
	}
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	data, err := readOpen(f, info, limit)
	return data, errors.Join(err, f.Close())
}

func readOpen(f *os.File, want fs.FileInfo, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, want) {
		return nil, errReplaced
	}
	if info.Size() > limit {
		return nil, Limits{FileSize: limit}.checkSize(want.Name(), info.Size())
	}
	data := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case int64(len(data)) > limit:
			return nil, Limits{FileSize: limit}.checkSize(want.Name(), int64(len(data)))
		}
		data = slices.Grow(data, 1)
	}
}

// checkFolder returns an fs.ErrNotExist error unless p is there, and another one if it is a link or some other thing.
func checkFolder(root *os.Root, p string) error {
	info, err := root.Lstat(p)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return nil
	case info.Mode().IsRegular():
		return fmt.Errorf("%q is a file, not a folder: %w", p, fs.ErrNotExist)
	}
	return bdkerr.New(bdkerr.InvalidRequest, "%q is no folder (%s)", p, kind(info.Mode()))
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link: they are not followed"
	}
	return "a special file"
}
