package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// build returns the program of the agents in dir, built if something changed. It shows what it is doing and the mistakes
// it finds; with mistakes there is no program and the error is an exitError. The workspace is nil if nothing is known.
func build(ctx context.Context, io *IO, dir string) (*maingen.Program, *project.Workspace, error) {
	p := &progress{io: io, last: io.Clock.Now()}
	cache, _ := userCacheDir(io) // without one, what is built must fit into the agent's folder
	program, ws, diags, err := maingen.Load(ctx, dir, &maingen.Options{Env: io.Env, CacheDir: cache, Progress: p.show})
	p.end()
	if err != nil {
		return nil, ws, err
	}
	showDiagnostics(io, diags)
	if program == nil {
		return nil, ws, exitError(1)
	}
	return program, ws, nil
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

// progress shows the steps of a build: on a terminal in one line, elsewhere a line now and then.
type progress struct {
	io    *IO
	last  time.Time
	phase maingen.Phase
	shown bool
}

// show is called for each step.
func (p *progress) show(step maingen.Progress) {
	every := 2 * time.Second
	switch {
	case p.io.Terminal:
		every = 80 * time.Millisecond
	case p.phase != step.Phase:
		every = 500 * time.Millisecond // what is over soon is not worth a line
	}
	now := p.io.Clock.Now()
	if now.Sub(p.last) < every {
		return
	}
	p.phase, p.last = step.Phase, now
	text := string(step.Phase)
	switch {
	case step.Most > 0:
		text += fmt.Sprintf(" %d/%d", step.Done, step.Most)
	case step.Done > 0:
		text += fmt.Sprintf(" %d", step.Done)
	}
	if step.Item != "" {
		text += " " + step.Item
	}
	if p.io.Terminal {
		fmt.Fprintf(p.io.Err, "\r\x1b[K%.100s", text)
		p.shown = true
		return
	}
	fmt.Fprintln(p.io.Err, text)
}

// end removes the line from the terminal.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.io.Err, "\r\x1b[K")
	}
}
