package lambdaexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/internal/archive"
)

// Sandbox is where commands run, in the function. It runs one at a time. It is safe for concurrent use.
type Sandbox struct {
	runner exec.Runner
	dir    string
	client *http.Client

	mu sync.Mutex
}

// NewSandbox returns a sandbox that runs its commands by runner. Whatever is in dir, which is made if it is missing, is removed before
// each command and after it. The client fetches and stores what is too large for a call.
func NewSandbox(runner exec.Runner, dir string, client *http.Client) *Sandbox {
	return &Sandbox{runner: runner, dir: dir, client: client}
}

// Run runs a command. An answer with a fault is one without a result.
func (s *Sandbox) Run(ctx context.Context, req Request) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.End > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.UnixMilli(req.End))
		defer cancel()
	}
	a, err := s.run(ctx, req)
	_ = s.empty() // if it cannot be emptied the next command is not run
	if err != nil {
		return Answer{Fault: &Fault{Code: bdkerr.CodeOf(err), Message: err.Error()}}
	}
	return a
}

func (s *Sandbox) run(ctx context.Context, req Request) (a Answer, err error) {
	if err := s.empty(); err != nil { // the command before may have ended with its process
		return a, fmt.Errorf("cleaning up before the command: %w", err)
	}
	dir := filepath.Join(s.dir, "files")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return a, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return a, err
	}
	defer root.Close() //nolint:errcheck // it is removed
	stdin, err := s.stdin(ctx, req.Stdin)
	if err != nil {
		return a, fmt.Errorf("receiving the standard input of the command: %w", err)
	}
	if err := s.unpack(ctx, root, req.Files); err != nil {
		return a, fmt.Errorf("receiving the files of the command: %w", err)
	}
	base, err := archive.Look(root)
	if err != nil {
		return a, err
	}
	res, err := s.runner.Run(ctx, req.command(dir, stdin))
	if err != nil {
		return a, err
	}
	a = Answer{Stdout: res.Stdout, Stderr: res.Stderr, ExitCode: res.ExitCode, Killed: res.Killed, Took: res.Took.Milliseconds()}
	if err := s.changes(ctx, root, base, req.Put, &a); err != nil {
		return a, fmt.Errorf("sending back the files of the command, which was run: %w", err)
	}
	return a, nil
}

// empty removes all there is, but for what belongs to others.
func (s *Sandbox) empty() error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if os.RemoveAll(path) == nil {
			continue
		}
		if errors.Is(os.Chmod(path, 0o700), fs.ErrPermission) { //nolint:gosec // so that it can be removed
			continue
		}
		_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700) //nolint:gosec // likewise
			}
			return nil
		})
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

func (s *Sandbox) stdin(ctx context.Context, p Part) ([]byte, error) {
	if p.URL == "" {
		return p.Data, nil
	}
	var b bytes.Buffer
	err := s.get(ctx, p.URL, exec.MaxStdin, &b, func() error { b.Reset(); return nil })
	return b.Bytes(), err
}

// unpack makes the files of a command.
func (s *Sandbox) unpack(ctx context.Context, root *os.Root, p Part) error {
	if p.URL == "" {
		if len(p.Data) == 0 {
			return nil
		}
		return archive.Apply(root, bytes.NewReader(p.Data))
	}
	f, err := temporary()
	if err != nil {
		return err
	}
	defer f.remove()
	if err := s.get(ctx, p.URL, archive.MaxSize, f, f.reset); err != nil {
		return err
	}
	if err := f.rewind(); err != nil {
		return err
	}
	return archive.Apply(root, f)
}

// changes adds to the answer what is not as it was, or stores it.
func (s *Sandbox) changes(ctx context.Context, root *os.Root, base archive.Files, put string, a *Answer) error {
	f, err := temporary()
	if err != nil {
		return err
	}
	defer f.remove()
	size, err := f.pack(root, base)
	if err != nil {
		return err
	}
	if size <= maxInline {
		a.Changes, err = io.ReadAll(f) // none if nothing has changed
		return err
	}
	a.Stored = size
	return s.again(ctx, func() error {
		r, err := http.NewRequestWithContext(ctx, "PUT", put, io.NewSectionReader(f, 0, size)) // a failed request may still read
		if err != nil {
			return err
		}
		r.ContentLength = size
		return s.do(r, func(io.Reader) error { return nil })
	})
}

// get writes what is at a URL, at most limit bytes, to w, after reset.
func (s *Sandbox) get(ctx context.Context, from string, limit int64, w io.Writer, reset func() error) error {
	return s.again(ctx, func() error {
		if err := reset(); err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, "GET", from, http.NoBody)
		if err != nil {
			return err
		}
		return s.do(r, func(body io.Reader) error {
			n, err := io.Copy(w, io.LimitReader(body, limit+1))
			if err == nil && n > limit {
				err = fmt.Errorf("there are more than %d bytes", limit)
			}
			return err
		})
	})
}

// again does what may be done again up to three times.
func (s *Sandbox) again(ctx context.Context, do func() error) (err error) {
	for range 3 {
		if err = do(); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// do makes a request and has the answer read. Errors do not tell the URL, which is a key.
func (s *Sandbox) do(r *http.Request, read func(io.Reader) error) error {
	res, err := s.client.Do(r)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the store answers %s", res.Status)
	}
	return read(res.Body)
}
