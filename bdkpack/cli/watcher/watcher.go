// Package watcher tells that files of interest have changed, once things are quiet again.
package watcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/bdk-lambda/bdk/shared/clock"
)

const (
	quiet   = 100 * time.Millisecond // without a change before one is told
	hurried = time.Second            // since the first change, after which it is told although there are more
)

// Watcher watches folders. It is not safe for concurrent use. Close it.
type Watcher struct {
	inner *fsnotify.Watcher
	clock clock.Clock
	dirs  map[string]bool // watched; whether everything in it matters
	files map[string]bool // those that matter in the other folders
}

// New returns a watcher that watches nothing yet.
func New(c clock.Clock) (*Watcher, error) {
	w, err := fsnotify.NewBufferedWatcher(1000)
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	return &Watcher{inner: w, clock: c, dirs: map[string]bool{}}, nil
}

// Close stops watching.
func (w *Watcher) Close() error { return w.inner.Close() }

// Set watches all that is directly in dirs, and files, in place of what was watched before. Paths are absolute; what does
// not exist is not watched, but a file that appears later in a folder that does exist is seen. It reports whether a
// folder was added: what happened there before has not been seen. An error says what is not watched though it exists.
func (w *Watcher) Set(dirs, files []string) (added bool, err error) {
	want := map[string]bool{}
	w.files = map[string]bool{}
	for _, file := range files {
		w.files[file] = true
		want[filepath.Dir(file)] = false
	}
	for _, dir := range dirs {
		want[dir] = true
	}
	for dir := range w.dirs {
		if _, ok := want[dir]; !ok {
			_ = w.inner.Remove(dir) // it may be gone already
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(want)) {
		_, watched := w.dirs[dir]
		cause := w.inner.Add(dir) // again, in case it was removed and made anew
		switch {
		case cause == nil:
			added = added || !watched
			continue
		case !errors.Is(cause, fs.ErrNotExist) && err == nil: // one stands for all: they have the same cause
			err = fmt.Errorf("watching %s: %w", dir, cause)
		}
		delete(want, dir)
	}
	w.dirs = want
	return added, err
}

// Wait returns the names of the files that changed, sorted, once there was no change for a tenth of a second. The error is
// that of ctx, or says that watching is not possible any more.
func (w *Watcher) Wait(ctx context.Context) ([]string, error) {
	changed := map[string]bool{}
	var calm, enough <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err, ok := <-w.inner.Errors:
			if !ok {
				return nil, fmt.Errorf("watching files: %w", fsnotify.ErrClosed)
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return nil, fmt.Errorf("watching files: %w", err)
			}
			changed["(many files)"] = true
		case e := <-w.inner.Events:
			if !w.matters(e) {
				continue
			}
			changed[e.Name] = true
		case <-calm:
			return slices.Sorted(maps.Keys(changed)), nil
		case <-enough:
			return slices.Sorted(maps.Keys(changed)), nil
		}
		if enough == nil {
			enough, _ = w.clock.After(hurried)
		}
		calm, _ = w.clock.After(quiet)
	}
}

func (w *Watcher) matters(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod || ignored(filepath.Base(e.Name)) {
		return false
	}
	return w.dirs[filepath.Dir(e.Name)] || w.files[e.Name]
}

// ignored reports whether a file or folder of this name never matters: tests, temporary files of editors, and the
// folders of version control and of the bdk command.
func ignored(name string) bool {
	switch name {
	case "", ".git", ".hg", ".jj", ".svn", ".bdk", ".idea", ".vscode", ".DS_Store", "4913":
		return true
	}
	return strings.HasPrefix(name, ".#") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".swx") || strings.HasSuffix(name, "_test.go")
}
