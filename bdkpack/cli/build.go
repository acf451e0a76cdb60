package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// build returns the program of the agents in dir, built if something changed. It shows what it is doing and the mistakes
// it finds; with mistakes there is no program and the error is an exitError. The workspace is nil if nothing is known.
func build(ctx context.Context, io *IO, dir string) (*maingen.Program, *project.Workspace, error) {
	program, ws, diags, err := load(ctx, io, dir)
	if err != nil {
		return nil, ws, err
	}
	showDiagnostics(io, diags)
	if program == nil {
		return nil, ws, exitError(1)
	}
	return program, ws, nil
}

// load is build without showing the mistakes: with some of them there is neither a program nor an error.
func load(ctx context.Context, io *IO, dir string) (*maingen.Program, *project.Workspace, diag.List, error) {
	cache, _ := userCacheDir(io) // without one, what is built must fit into the agent's folder
	unlock, err := lockBuild(ctx, io, cache, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	defer unlock()
	p := startProgress(io)
	defer p.end()
	return maingen.Load(ctx, dir, &maingen.Options{Env: io.Env, CacheDir: cache, Progress: p.show})
}

// lockBuild waits until no other process builds the agents in dir. The first one builds; the others find its program.
func lockBuild(ctx context.Context, io *IO, cache, dir string) (unlock func(), err error) {
	if dir, err = project.Resolve(dir); err != nil {
		return nil, err
	}
	folder := filepath.Join(cache, "bdk", "locks")
	if cache == "" || os.MkdirAll(folder, 0o700) != nil {
		return func() {}, nil //nolint:nilerr // there is no place to meet others: go on without
	}
	sum := sha256.Sum256([]byte(dir))
	lock := flock.New(filepath.Join(folder, hex.EncodeToString(sum[:12])))
	free, err := lock.TryLock()
	if err == nil && !free {
		fmt.Fprintln(io.Err, "waiting for another process that builds this agent")
		_, err = lock.TryLockContext(ctx, 20*time.Millisecond)
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for another build of %s: %w", dir, err)
	}
	return func() { _ = lock.Unlock() }, nil // it ends with this process in any case
}

func userCacheDir(io *IO) (string, error) {
	if dir := io.env("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	return os.UserCacheDir()
}

// showDiagnostics prints diagnostics for the author, with paths as seen from here.
func showDiagnostics(io *IO, diags diag.List) {
	if len(diags) == 0 {
		return
	}
	if wd, err := os.Getwd(); err == nil {
		diags = diags.Relative(wd)
	}
	_ = diags.Render(io.Err, io.Color) // nobody to tell that the terminal is gone
	warnings := len(diags) - diags.Errors()
	fmt.Fprintf(io.Err, "\n%s, %s\n", plural(diags.Errors(), "error"), plural(warnings, "warning"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// launchConfig returns what is common to all that an agent program may be told.
func launchConfig(command string, program *maingen.Program) (launch.Config, error) {
	c := launch.Config{Command: command, Roots: map[string]string{}}
	for _, a := range program.Workspace.Agents {
		c.Roots[a.Slug] = a.Dir
	}
	var err error
	c.Diagnostics, err = json.Marshal(program.Warnings)
	return c, err
}

// stateRoot returns the absolute path of the folder for durable state: the given one, or .bdk/state in the agent's folder.
func stateRoot(given string, program *maingen.Program) (string, error) {
	if given == "" {
		return filepath.Join(program.Workspace.Dir, ".bdk", "state"), nil
	}
	return filepath.Abs(given)
}

// programEnv returns the environment of an agent program: that of this command and what to do. The bearer token is for
// the program alone, not for what its tools start.
func programEnv(io *IO, c launch.Config) ([]string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("telling the agent program what to do: %w", err)
	}
	var env []string
	for _, kv := range io.Env {
		if key, _, _ := strings.Cut(kv, "="); key != launch.Env && key != tokenEnv {
			env = append(env, kv)
		}
	}
	return append(env, launch.Env+"="+string(text)), nil
}

// progress shows the steps of a build: on a terminal in one line, elsewhere a line now and then. It is safe for concurrent
// use, because it also tells from time to time that a long step goes on.
type progress struct {
	io   *IO
	done chan struct{}

	mu    sync.Mutex
	step  maingen.Progress // at hand
	phase maingen.Phase    // that was shown last
	start time.Time        // of the build
	last  time.Time        // when something was shown
}

const patience = 5 * time.Second // without a word

func startProgress(io *IO) *progress {
	now := io.Clock.Now()
	p := &progress{io: io, done: make(chan struct{}), start: now, last: now}
	go p.remind()
	return p
}

// remind shows the step at hand again when nothing has been shown for long.
func (p *progress) remind() {
	for {
		due, stop := p.io.Clock.After(patience)
		select {
		case <-p.done:
			stop()
			return
		case <-due:
		}
		p.mu.Lock()
		now := p.io.Clock.Now()
		if p.step.Phase != "" && now.Sub(p.last) >= patience {
			p.print(now)
		}
		p.mu.Unlock()
	}
}

// show is called for each step.
func (p *progress) show(step maingen.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = step
	every := 2 * time.Second
	switch {
	case p.io.Terminal:
		every = 80 * time.Millisecond
	case p.phase != step.Phase:
		every = 500 * time.Millisecond // what is over soon is not worth a line
	}
	if now := p.io.Clock.Now(); now.Sub(p.last) >= every {
		p.print(now)
	}
}

func (p *progress) print(now time.Time) {
	p.last, p.phase = now, p.step.Phase
	text := describeStep(p.step, now.Sub(p.start))
	if p.io.Terminal {
		fmt.Fprintf(p.io.Err, "\r\x1b[K%.100s", text)
		return
	}
	fmt.Fprintln(p.io.Err, text)
}

// describeStep returns what a build is doing and how long it has taken so far. How much there is left nobody knows.
func describeStep(step maingen.Progress, took time.Duration) string {
	took = took.Round(time.Second)
	switch {
	case step.Phase == maingen.Compiling && step.Done > 0:
		return fmt.Sprintf("compiling (%s so far, %s)", plural(step.Done, "package"), took)
	case step.Phase == maingen.Downloading:
		return fmt.Sprintf("downloading (%s so far, %s) %s", plural(step.Done, "module"), took, step.Module)
	}
	return fmt.Sprintf("%s (%s)", step.Phase, took)
}

// end removes the line from the terminal.
func (p *progress) end() {
	close(p.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.io.Terminal && p.step.Phase != "" {
		fmt.Fprint(p.io.Err, "\r\x1b[K")
	}
}
