// Package workspace keeps the files of sessions: content-addressed, in blobs, under a reference that the event log records.
//
// A [Store] makes the [Workspace] of a session for as long as a turn or a call needs it. Its files are
//
//   - those of the agent (the base [Layer]): always those of the running program, visible to every session, read-only. A
//     session may have a file of its own in their place;
//   - the session's own files. They begin as the seed [Layer] and the files the session was started with; from then on they
//     are what the newest reference says.
//
// Opening a workspace costs nothing: no blob is read and no directory is made before a file is asked for. Files that are read
// and written one by one stay in memory until [Workspace.Commit]; a program that needs a directory gets one from
// [Workspace.Dir], and what it changes there counts as the session's changes. From then on the directory is where the files
// are. Empty folders, links, special files, times, and modes but the permission to execute are not kept.
package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
)

var _ bdk.Workspace = (*Workspace)(nil)

// errClosed is what a closed workspace answers.
var errClosed = errors.New("the workspace is closed")

const (
	maxPending  = 32 << 20     // bytes that are held in memory until a commit
	maxParallel = 16           // blobs that are read or written at the same time
	maxInFlight = blob.MaxSize // bytes of them
)

// Store makes workspaces. It is safe for concurrent use.
type Store struct {
	blobs *blob.Store
	opts  Options
}

// Options are what is optional about a Store.
type Options struct {
	Base    *Layer                                           // the agent's files, read-only in all workspaces; nil for none
	Shown   func(context.Context) (map[string][]byte, error) // files, by path, that are in all workspaces too, as they are when one is first looked at; nil for none
	Seed    *Layer                                           // the first files of each session; nil for none
	TempDir string                                           // where directories are made, itself made if missing; "" for the system's. What a killed process leaves there is never used again, nor removed
	Limits  Limits                                           // of the session's own files
	Log     *slog.Logger                                     // is told what was left out of a directory; nil for nowhere
}

// New returns a store of workspaces whose files are in blobs.
func New(blobs *blob.Store, opts Options) *Store {
	opts.Limits = opts.Limits.withDefaults()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{blobs: blobs, opts: opts}
}

// Open returns the workspace that a Commit has given the reference ref, or a new one if ref is "". That begins with the
// seed's files and those in first, paths to contents, which win over the seed; first is ignored otherwise. The error is a
// bdkerr.InvalidRequest for a reference or a path of the wrong form, or one in first that is in [AgentDir]. Everything else is looked
// at on first use: then files that clash are a bdkerr.InvalidRequest error, too many or too large ones a bdkerr.PayloadTooLarge one,
// and a manifest that is missing or corrupt a bdkerr.NoWorkspace one. The caller must Close the workspace.
func (s *Store) Open(_ context.Context, ref string, first map[string]string) (*Workspace, error) {
	if ref != "" {
		if err := blob.Ref(ref).Check(); err != nil {
			return nil, fmt.Errorf("opening a workspace: %w", err)
		}
		first = nil
	}
	for p := range first {
		if err := CheckPath(p); err != nil {
			return nil, err
		}
		if InAgentDir(p) {
			return nil, bdkerr.New(bdkerr.InvalidRequest, "the path %q cannot be given: %s is the agent's own folder", p, AgentDir)
		}
	}
	return &Workspace{store: s, ref: ref, first: first, below: s.opts.Base}, nil
}

// Workspace is the files of a session, made by [Store.Open]. It implements [bdk.Workspace] and is safe for concurrent use.
type Workspace struct {
	store *Store
	first map[string]string // of a new workspace
	below *Layer            // the files that are not the session's own

	mu        sync.Mutex
	ref       string     // of committed
	committed *tree      // never changed; nil until a file is asked for
	own       *tree      // as of the last write or commit; the directory, if there is one, may be ahead of it
	dir       *directory // nil until Dir
	notes     []string
	closed    bool
}

// Dir implements [bdk.Workspace]. The directory is new, private to this process's user (mode 0700), and the same for all calls.
// Programs in it may change the session's own files and make files of their own in the place of the agent's; removing one of the
// agent's there has no effect beyond the directory. Links and special files are left out of the workspace, see [Workspace.Notes].
func (w *Workspace) Dir(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(ctx); err != nil {
		return "", err
	}
	if w.dir == nil {
		dir, err := w.materialise(ctx)
		if err != nil {
			return "", fmt.Errorf("making the directory of the workspace: %w", err)
		}
		w.dir = dir
	}
	return w.dir.filesPath(), nil
}

// Files implements [bdk.Workspace].
func (w *Workspace) Files(ctx context.Context) ([]bdk.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(ctx); err != nil {
		return nil, err
	}
	own := w.own
	if w.dir != nil {
		l, err := w.dir.look(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the directory of the workspace: %w", err)
		}
		own = l.tree()
	}
	var files []bdk.File
	for p, f := range w.visible(own) {
		files = append(files, bdk.File{Path: p, Size: f.size, Exec: f.exec})
	}
	slices.SortFunc(files, func(a, b bdk.File) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}

// ReadFile implements [bdk.Workspace]. Links in the directory are not followed.
func (w *Workspace) ReadFile(ctx context.Context, name string) ([]byte, error) {
	if err := CheckPath(name); err != nil {
		return nil, err
	}
	w.mu.Lock()
	err := w.load(ctx)
	f, ok := w.find(name)
	dir := w.dir
	w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if dir != nil {
		data, err := readRegular(dir.files, name, blob.MaxSize)
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
		if ok { // it was there when it was opened or last committed: what is left is the agent's
			f, ok = w.base(name)
		}
	}
	if !ok {
		return nil, notExist(name)
	}
	return w.read(ctx, name, f)
}

// WriteFile implements [bdk.Workspace]. A path that [CheckPath] refuses or that clashes with others is a bdkerr.InvalidRequest
// error, a file beyond the limits a bdkerr.PayloadTooLarge error; that of all files together is found by Commit if there is a
// directory.
func (w *Workspace) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	if err := CheckPath(name); err != nil {
		return err
	}
	if err := w.store.opts.Limits.checkSize(name, int64(len(data))); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(ctx); err != nil {
		return err
	}
	if err := w.checkBeside(ctx, name); err != nil {
		return err
	}
	if w.dir != nil {
		if err := w.dir.replace(name, data, isExec(mode)); err != nil {
			return fmt.Errorf("writing %q: %w", name, err)
		}
		return nil
	}
	return w.write(ctx, name, data, isExec(mode))
}

// Remove implements [bdk.Workspace]. Files of the agent cannot be removed, a bdkerr.InvalidRequest error; a session's own file in
// the place of one can, and the agent's is seen again.
func (w *Workspace) Remove(ctx context.Context, name string) error {
	if err := CheckPath(name); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(ctx); err != nil {
		return err
	}
	if w.dir != nil {
		return w.removeInDir(name)
	}
	_, visible := w.find(name)
	switch _, own := w.own.files[name]; {
	case !visible:
		return notExist(name)
	case !own:
		return belongsToAgent(name)
	}
	w.change()
	w.own.remove(name)
	return nil
}

// Notes returns what the last Commit left out of the workspace, and why: links, special files, and files whose paths
// cannot be kept. Each is a line that may be shown to the model.
func (w *Workspace) Notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notes)
}

// Commit makes durable what has changed since the workspace was opened or last committed, and returns the reference to open it by.
// If nothing has, it stores nothing and returns the reference it had, "" for a new workspace, and false. The same files have
// the same reference. After an error, such as a bdkerr.PayloadTooLarge for a directory beyond the limits, the workspace is as it
// was, and Commit may be called again.
func (w *Workspace) Commit(ctx context.Context) (ref string, changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return "", false, errClosed
	}
	if w.committed == nil || (w.own == w.committed && w.dir == nil) {
		return w.ref, false, nil
	}
	next, seen, err := w.collect(ctx)
	if err != nil {
		return "", false, fmt.Errorf("collecting the files of the workspace: %w", err)
	}
	ref = w.ref
	if changed = !next.same(w.committed); changed {
		if next, ref, err = w.save(ctx, next); err != nil {
			return "", false, fmt.Errorf("saving the workspace: %w", err)
		}
		w.committed, w.ref = next, ref
	}
	w.own = w.committed
	if w.dir != nil {
		w.dir.known = seen
	}
	return ref, changed, nil
}

// Close removes the directory, if there is one. What was not committed is gone. Closing again does nothing.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.dir == nil {
		return nil
	}
	dir := w.dir
	w.dir = nil
	if err := dir.close(); err != nil {
		return fmt.Errorf("removing the directory of the workspace: %w", err)
	}
	return nil
}

// load sees to it that committed and own are there.
func (w *Workspace) load(ctx context.Context) error {
	if w.closed {
		return errClosed
	}
	if w.committed != nil {
		return nil
	}
	w.show(ctx)
	t, err := w.loadTree(ctx)
	if err != nil {
		return fmt.Errorf("loading the workspace: %w", err)
	}
	w.committed, w.own = t, t
	return nil
}

// show adds the files that are shown beside the agent's. Without them there is work to do all the same.
func (w *Workspace) show(ctx context.Context) {
	if w.store.opts.Shown == nil {
		return
	}
	files, err := w.store.opts.Shown(ctx)
	if err != nil || len(files) == 0 {
		w.cannotShow(ctx, err)
		return
	}
	shown, err := NewLayer(files)
	if err == nil {
		shown, err = Merge(shown, w.store.opts.Base)
	}
	if err != nil {
		w.cannotShow(ctx, err)
		return
	}
	w.below = shown
}

func (w *Workspace) cannotShow(ctx context.Context, err error) {
	if err != nil {
		w.store.opts.Log.WarnContext(ctx, "files are not shown in a workspace", slog.Any("error", err))
	}
}

func (w *Workspace) loadTree(ctx context.Context) (*tree, error) {
	if w.ref == "" {
		return w.begin()
	}
	data, err := w.blob(ctx, blob.Ref(w.ref), "the list of the session's files")
	if err != nil {
		return nil, err
	}
	t, err := decodeManifest(data)
	if err != nil {
		return nil, &bdkerr.Error{Code: bdkerr.NoWorkspace, Message: "the list of the session's files is corrupt", Err: err}
	}
	return t, nil
}

// begin returns the files of a new workspace.
func (w *Workspace) begin() (*tree, error) {
	t, limits := newTree(), w.store.opts.Limits
	seed := w.store.opts.Seed
	for _, p := range seed.paths() {
		f := seed.files[p]
		if err := errors.Join(limits.checkSize(p, f.size), t.put(p, fileOf(f))); err != nil {
			return nil, err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(w.first)) {
		data := []byte(w.first[p])
		f := file{size: int64(len(data)), ref: blob.RefOf(data), data: data, pending: true}
		if err := errors.Join(limits.checkSize(p, f.size), w.below.check(p), t.put(p, f)); err != nil {
			return nil, err
		}
	}
	return t, limits.check(t, 0, 0)
}

// fileOf returns a file of a layer.
func fileOf(f layerFile) file { return file{size: f.size, exec: f.exec, layer: &f} }

// change makes own a tree that may be changed.
func (w *Workspace) change() {
	if w.own == w.committed {
		w.own = w.committed.clone()
	}
}

// write puts a file into own, and its data into memory or, if there is much already, into a blob.
func (w *Workspace) write(ctx context.Context, name string, data []byte, exec bool) error {
	f := file{size: int64(len(data)), exec: exec, ref: blob.RefOf(data)}
	old, there := w.find(name)
	if there && old.exec == exec && old.size == f.size {
		if ref, err := w.refOf(old); err != nil || ref == f.ref {
			return err
		}
	}
	if err := w.store.opts.Limits.checkGrowth(w.own, name, f.size); err != nil {
		return err
	}
	if w.own.pending+f.size > maxPending {
		if _, err := w.store.blobs.Put(ctx, data); err != nil {
			return fmt.Errorf("writing %q: %w", name, err)
		}
	} else {
		f.data, f.pending = bytes.Clone(data), true
	}
	w.change()
	return w.own.put(name, f)
}

// visible returns all files: own, and those of the agent that are not hidden by them.
func (w *Workspace) visible(own *tree) map[string]file {
	all := maps.Clone(own.files)
	if base := w.below; base != nil {
		for p, f := range base.files {
			if !own.hides(p) {
				all[p] = fileOf(f)
			}
		}
	}
	return all
}

// find returns the file that is visible as name, by what own knows.
func (w *Workspace) find(name string) (file, bool) {
	if w.own == nil {
		return file{}, false
	}
	if f, ok := w.own.files[name]; ok || w.own.hides(name) {
		return f, ok
	}
	return w.base(name)
}

// base returns a file of the agent.
func (w *Workspace) base(name string) (file, bool) {
	f, ok := w.below.file(name)
	return fileOf(f), ok
}

func (w *Workspace) isBase(name string) bool {
	_, ok := w.below.file(name)
	return ok
}

// checkBeside returns an error if name cannot be a file beside the others.
func (w *Workspace) checkBeside(ctx context.Context, name string) error {
	err := w.own.names.check(name)
	if err != nil && w.dir != nil { // what it clashes with may be gone
		l, lookErr := w.dir.look(ctx)
		if lookErr != nil {
			return lookErr
		}
		err = l.tree().names.check(name)
	}
	if _, own := w.own.files[name]; own || err != nil {
		return err
	}
	return w.below.check(name)
}

// refOf returns the reference of a file's content.
func (w *Workspace) refOf(f file) (blob.Ref, error) {
	if f.layer == nil {
		return f.ref, nil
	}
	data, err := f.layer.read()
	return blob.RefOf(data), err
}

// read returns the content of a file, which is the caller's.
func (w *Workspace) read(ctx context.Context, name string, f file) ([]byte, error) {
	switch {
	case f.layer != nil:
		return f.layer.read()
	case f.pending:
		return bytes.Clone(f.data), nil
	}
	return w.blob(ctx, f.ref, fmt.Sprintf("the file %q", name))
}

// blob returns a blob that has to be there.
func (w *Workspace) blob(ctx context.Context, ref blob.Ref, what string) ([]byte, error) {
	data, err := w.store.blobs.Get(ctx, ref)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, &bdkerr.Error{Code: bdkerr.NoWorkspace, Message: what + " is missing from the store", Err: err}
	case errors.Is(err, blob.ErrCorrupt):
		return nil, &bdkerr.Error{Code: bdkerr.NoWorkspace, Message: what + " is corrupt in the store", Err: err}
	}
	return data, err
}

// save stores what is not stored of t, and its manifest. It returns t as it is then.
func (w *Workspace) save(ctx context.Context, t *tree) (*tree, string, error) {
	saved := t.clone()
	var mu sync.Mutex
	err := inParallel(ctx, t.files, func(f file) bool { return f.pending || f.layer != nil }, func(ctx context.Context, p string, f file) error {
		data, err := w.read(ctx, p, f)
		if err != nil {
			return err
		}
		ref, err := w.store.blobs.Put(ctx, data)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return saved.put(p, file{size: int64(len(data)), exec: f.exec, ref: ref})
	})
	if err != nil {
		return nil, "", err
	}
	data, err := encodeManifest(saved)
	if err != nil {
		return nil, "", err
	}
	ref, err := w.store.blobs.Put(ctx, data)
	return saved, string(ref), err
}

// inParallel calls do for the chosen files, some at a time, and returns the first error.
func inParallel(ctx context.Context, files map[string]file, choose func(file) bool, do func(ctx context.Context, p string, f file) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxParallel)
	room := semaphore.NewWeighted(maxInFlight)
	for p, f := range files {
		if !choose(f) {
			continue
		}
		size := min(f.size, maxInFlight)
		if room.Acquire(gctx, size) != nil {
			break // the group has the error, or ctx has
		}
		g.Go(func() error {
			defer room.Release(size)
			return do(gctx, p, f)
		})
	}
	return cmp.Or(g.Wait(), ctx.Err())
}

func notExist(name string) error { return fmt.Errorf("the file %q: %w", name, fs.ErrNotExist) }

func belongsToAgent(name string) error {
	return bdkerr.New(bdkerr.InvalidRequest, "the file %q belongs to the agent: it cannot be removed, only replaced by a file of the session", name)
}
