// Package watcher tells that files of interest have changed, once things are quiet again.
package watcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
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
	dirs  map[string]bool // watched

	matters func(path string) bool
}

// New returns a watcher that watches nothing yet.
func New(c clock.Clock) (*Watcher, error) {
	w, err := fsnotify.NewBufferedWatcher(1000)
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	return &Watcher{inner: w, clock: c}, nil
}

// Close stops watching.
func (w *Watcher) Close() error { return w.inner.Close() }

// Set watches what is directly in dirs, in place of what was watched before, as far as it matters. Paths are absolute; a
// folder that does not exist is not watched. It reports whether a folder was added: what happened there before has not
// been seen. An error says what is not watched though it exists.
func (w *Watcher) Set(dirs []string, matters func(path string) bool) (added bool, err error) {
	w.matters = matters
	want := map[string]bool{}
	for _, dir := range dirs {
		want[dir] = true
	}
	for dir := range w.dirs {
		if !want[dir] {
			_ = w.inner.Remove(dir) // it may be gone already
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(want)) {
		cause := w.inner.Add(dir) // again, in case it was removed and made anew
		switch {
		case cause == nil:
			added = added || !w.dirs[dir]
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
			if !w.matters(e.Name) { // a change of mode matters as well: whether a script may be run
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
