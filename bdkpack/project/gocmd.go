package project

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// GoError is a go command that ended with an error. Its text is what the command wrote to standard error.
type GoError struct {
	Args   []string
	Stderr string
	err    error
}

func (e *GoError) Error() string {
	return fmt.Sprintf("running go %s: %v\n%s", e.Args[0], e.err, strings.TrimSpace(e.Stderr))
}

// Unwrap returns how the process ended.
func (e *GoError) Unwrap() error { return e.err }

// RunGo runs the go command in a directory and returns its standard output. Each line of standard error is passed to
// line, if that is not nil, as it comes. A nil env is the environment of this process. A command that ran and did not
// succeed is a [GoError].
func RunGo(ctx context.Context, dir string, env []string, line func(string), args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // which ends its compilers, too
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdout = &stdout
	cmd.Stderr = &lineWriter{all: &stderr, line: line}
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("running go %s: %w", args[0], context.Cause(ctx))
	case err != nil && cmd.ProcessState == nil:
		return nil, fmt.Errorf("running the go command, which has to be installed: %w", err)
	case err != nil:
		return stdout.Bytes(), &GoError{Args: args, Stderr: stderr.String(), err: err}
	}
	return stdout.Bytes(), nil
}

// lineWriter keeps what is written and passes on whole lines.
type lineWriter struct {
	all  *bytes.Buffer
	seen int
	line func(string)
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	for w.line != nil {
		end := bytes.IndexByte(w.all.Bytes()[w.seen:], '\n')
		if end < 0 {
			break
		}
		w.line(string(w.all.Bytes()[w.seen : w.seen+end]))
		w.seen += end + 1
	}
	return len(p), nil
}

// Downloading returns the module that a line of the go command's standard error says it is fetching.
func Downloading(line string) (module string, ok bool) {
	return strings.CutPrefix(line, "go: downloading ")
}
