package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// files are those of a session while somebody works on it. They are opened once somebody asks for them: most turns do not.
type files struct {
	open func(context.Context) (*workspace.Workspace, error)

	mu   sync.Mutex
	ws   *workspace.Workspace
	told []string // what was left out of them, as far as it was told
}

var _ bdk.Workspace = (*files)(nil)

// openFiles returns the files that a list names, or the first ones of a session, which the client gave in a blob.
func (e *Engine) openFiles(list, given string) *files {
	return &files{open: func(ctx context.Context) (*workspace.Workspace, error) {
		if e.deps.Workspaces == nil {
			return nil, errors.New("this host keeps no files")
		}
		var first map[string]string
		if list == "" && given != "" {
			var err error
			if first, err = e.given(ctx, given); err != nil {
				return nil, err
			}
		}
		return e.deps.Workspaces.Open(ctx, list, first)
	}}
}

// checkFiles returns an error if what a client gave cannot be the first files of a session, beside those that the agent gives.
func (e *Engine) checkFiles(ctx context.Context, given string) error {
	if given == "" || e.deps.Workspaces == nil {
		return nil
	}
	first := e.openFiles("", given)
	defer first.close(ctx, e.deps.Log)
	_, err := first.Files(ctx)
	return err
}

// given reads the files that a client gave.
func (e *Engine) given(ctx context.Context, ref string) (map[string]string, error) {
	raw, err := e.deps.Blobs.Get(ctx, blob.Ref(ref))
	if err != nil {
		return nil, fmt.Errorf("reading the files of the session: %w", err)
	}
	var in struct {
		Files map[string]string `json:"files"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("reading the files of the session: %w", err)
	}
	return in.Files, nil
}

func (f *files) get(ctx context.Context) (*workspace.Workspace, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ws != nil {
		return f.ws, nil
	}
	ws, err := f.open(ctx)
	if err == nil {
		f.ws = ws
	}
	return ws, err
}

// Dir implements [bdk.Workspace].
func (f *files) Dir(ctx context.Context) (string, error) {
	ws, err := f.get(ctx)
	if err != nil {
		return "", err
	}
	return ws.Dir(ctx)
}

// Files implements [bdk.Workspace].
func (f *files) Files(ctx context.Context) ([]bdk.File, error) {
	ws, err := f.get(ctx)
	if err != nil {
		return nil, err
	}
	return ws.Files(ctx)
}

// ReadFile implements [bdk.Workspace].
func (f *files) ReadFile(ctx context.Context, name string) ([]byte, error) {
	ws, err := f.get(ctx)
	if err != nil {
		return nil, err
	}
	return ws.ReadFile(ctx, name)
}

// WriteFile implements [bdk.Workspace].
func (f *files) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	ws, err := f.get(ctx)
	if err != nil {
		return err
	}
	return ws.WriteFile(ctx, name, data, mode)
}

// Remove implements [bdk.Workspace].
func (f *files) Remove(ctx context.Context, name string) error {
	ws, err := f.get(ctx)
	if err != nil {
		return err
	}
	return ws.Remove(ctx, name)
}

// commit keeps what was changed and returns the list of the files, "" if nothing was, and what was left out since the last time.
func (f *files) commit(ctx context.Context) (list string, leftOut []string, err error) {
	f.mu.Lock()
	ws := f.ws
	f.mu.Unlock()
	if ws == nil {
		return "", nil, nil
	}
	list, changed, err := ws.Commit(ctx)
	if err != nil || !changed {
		list = ""
	}
	return list, f.untold(ws.Notes()), err
}

// untold returns the notes that were not told before.
func (f *files) untold(notes []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := slices.DeleteFunc(slices.Clone(notes), func(note string) bool { return slices.Contains(f.told, note) })
	f.told = notes
	return fresh
}

func (f *files) close(ctx context.Context, log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ws == nil {
		return
	}
	if err := f.ws.Close(); err != nil {
		log.WarnContext(ctx, "removing the directory of a session", slog.Any("error", err))
	}
}
