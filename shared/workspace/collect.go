package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
)

const (
	maxNotes       = 20 // how many things that were left out are named
	entriesPerFile = 20 // how many times as many entries as files a directory may have, with folders and what is left out
)

// materialise makes a directory of the visible files.
func (w *Workspace) materialise(ctx context.Context) (*directory, error) {
	visible := w.visible(w.own)
	d, err := newDirectory(w.store.opts.TempDir, entriesPerFile*(len(visible)+w.store.opts.Limits.Files))
	if err != nil {
		return nil, err
	}
	if err := w.fill(ctx, d, visible); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (w *Workspace) fill(ctx context.Context, d *directory, visible map[string]file) error {
	var mu sync.Mutex
	refs := map[string]blob.Ref{}
	all := func(file) bool { return true }
	err := inParallel(ctx, visible, all, func(ctx context.Context, p string, f file) error {
		data, err := w.read(ctx, p, f)
		if err != nil {
			return err
		}
		ref := f.ref
		if f.layer != nil {
			ref = blob.RefOf(data)
		}
		mu.Lock()
		refs[p] = ref
		mu.Unlock()
		return d.create(p, data, f.exec)
	})
	if err != nil {
		return err
	}
	l, err := d.look(ctx)
	if err != nil {
		return err
	}
	for p, s := range l.files {
		d.known[p] = l.record(s, refs[p])
	}
	return nil
}

// record returns what is known of a file that has been found with the content ref.
func (l *look) record(s stat, ref blob.Ref) known {
	return known{stat: s, ref: ref, racy: s.changed() >= l.stamp}
}

// collect returns the session's own files as they are in the directory, and what is known of the directory then; own if there
// is no directory. Contents that were changed there are in blobs when it returns.
func (w *Workspace) collect(ctx context.Context) (*tree, map[string]known, error) {
	if w.dir == nil {
		return w.own, nil, nil
	}
	l, err := w.dir.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	next, seen := newTree(), map[string]known{}
	var changed []string
	for _, p := range slices.Sorted(maps.Keys(l.files)) {
		same, err := w.dir.unchanged(p, l.files[p])
		if err != nil {
			return nil, nil, err
		}
		if !same {
			changed = append(changed, p)
			continue
		}
		seen[p] = l.record(l.files[p], w.dir.known[p].ref)
		if f, ok := w.own.files[p]; ok {
			if err := next.put(p, f); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := w.plan(l, next, changed); err != nil {
		return nil, nil, err
	}
	if err := w.gather(ctx, l, next, seen, changed); err != nil {
		return nil, nil, err
	}
	w.report(ctx, l.notes)
	return next, seen, nil
}

// plan puts changed files into next as far as they can be there, without their contents, and checks the limits before
// those are read.
func (w *Workspace) plan(l *look, next *tree, changed []string) error {
	limits := w.store.opts.Limits
	added := func(p string) bool { _, ok := w.own.files[p]; return !ok }
	// Of two files that clash, the one that was there before stays.
	for _, p := range slices.Concat(filter(changed, func(p string) bool { return !added(p) }), filter(changed, added)) {
		s := l.files[p]
		var err error
		if added(p) {
			err = w.below.check(p)
		}
		if err == nil {
			err = next.put(p, file{size: s.size, exec: isExec(s.mode)})
		}
		if err != nil {
			l.note(p, err.Error())
			continue
		}
		if err := limits.checkSize(p, s.size); err != nil {
			return err
		}
	}
	return limits.check(next, len(w.own.files), w.own.total)
}

func filter(paths []string, keep func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !keep(p) })
}

// gather stores the contents of the changed files of next. Those that are gone meanwhile are removed from it.
func (w *Workspace) gather(ctx context.Context, l *look, next *tree, seen map[string]known, changed []string) error {
	planned := map[string]file{}
	for _, p := range changed {
		if f, ok := next.files[p]; ok {
			planned[p] = f
		}
	}
	var mu sync.Mutex
	limits := w.store.opts.Limits
	all := func(file) bool { return true }
	err := inParallel(ctx, planned, all, func(ctx context.Context, p string, f file) error {
		data, err := readRegular(w.dir.files, p, limits.FileSize)
		if err == nil {
			f.size = int64(len(data))
			f.ref, err = w.store.blobs.Put(ctx, data)
		}
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, fs.ErrNotExist) {
			next.remove(p)
			return nil
		}
		if err != nil {
			return err
		}
		seen[p] = l.record(l.files[p], f.ref)
		return next.put(p, f)
	})
	if err != nil {
		return err
	}
	return limits.check(next, len(w.own.files), w.own.total) // they may have grown
}

// tree returns what was found as a tree without contents.
func (l *look) tree() *tree {
	t := newTree()
	for _, p := range slices.Sorted(maps.Keys(l.files)) {
		if err := t.put(p, file{size: l.files[p].size, exec: isExec(l.files[p].mode)}); err != nil {
			continue // it differs in case only from another one: Commit leaves it out, and says so
		}
	}
	return t
}

// report keeps what was left out, and logs it if it is new.
func (w *Workspace) report(ctx context.Context, notes []string) {
	if n := len(notes) - maxNotes; n > 0 {
		notes = append(notes[:maxNotes], fmt.Sprintf("and %d more", n))
	}
	if len(notes) > 0 && !slices.Equal(notes, w.notes) {
		w.store.opts.Log.WarnContext(ctx, "files were left out of a workspace", slog.Any("files", notes))
	}
	w.notes = notes
}

// removeInDir removes a file from the directory. If the agent has one of that path, it gets its place again.
func (w *Workspace) removeInDir(name string) error {
	d := w.dir
	for folder := range folders(name) {
		if err := checkFolder(d.files, folder); err != nil {
			return fmt.Errorf("removing %q: %w", name, err)
		}
	}
	info, err := d.files.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.isBase(name):
		return belongsToAgent(name)
	case errors.Is(err, fs.ErrNotExist):
		return notExist(name)
	case err != nil:
		return fmt.Errorf("removing %q: %w", name, err)
	case info.IsDir():
		return bdkerr.New(bdkerr.InvalidRequest, "the path %q is a folder, not a file", name)
	}
	base, ok := w.base(name)
	if !ok {
		return d.files.Remove(name)
	}
	if _, own := w.own.files[name]; !own {
		if same, err := d.unchanged(name, statOf(info)); err != nil || same {
			return errors.Join(err, belongsToAgent(name))
		}
	}
	return w.restore(name, *base.layer)
}

// restore puts a file of the agent into the directory, in the place of the session's own.
func (w *Workspace) restore(name string, f layerFile) error {
	data, err := f.read()
	if err != nil {
		return err
	}
	if err := w.dir.replace(name, data, f.exec); err != nil {
		return fmt.Errorf("removing %q: %w", name, err)
	}
	info, err := w.dir.files.Lstat(name)
	if err != nil {
		return err
	}
	w.dir.known[name] = known{stat: statOf(info), ref: blob.RefOf(data), racy: true}
	if _, ok := w.own.files[name]; ok {
		w.change()
		w.own.remove(name)
	}
	return nil
}
