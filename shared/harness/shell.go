package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/exec"
)

const (
	maxCommand = 100 << 10        // bytes of a command: systems pass little more as one argument
	shellTrip  = 30 * time.Second // what a call has besides its command's time, for the files to go there and come back
	maxSeconds = int(exec.MaxTimeout / time.Second)
)

// startShell runs its first argument with bash, or with sh where there is no bash.
const startShell = `if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec sh -c "$1"`

type shellInput struct {
	Command        string `json:"command" jsonschema:"the command, for bash"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"when to kill it; default 60, at most 600"`
}

func shellTool(runner exec.Runner) bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Runs a command with bash in a directory with the session's files. What it changes there is kept, but for links, empty folders " +
			"and times; what it leaves running is killed. Each call begins anew: variables and the working directory are not carried over. " +
			"The network may be out of reach. Answers with what the command printed, and how it ended if that is not with exit code 0.",
		Timeout: exec.MaxTimeout + shellTrip,
		DryRunResult: bdk.DryRunOf(func(shellInput) string {
			return "(a dry run: the command was not run, so there is no output)"
		}),
	}, func(ctx context.Context, call *bdk.Call, in shellInput) (any, error) {
		if err := in.check(); err != nil {
			return nil, fmt.Errorf("%w; the command was not run", err)
		}
		if runner == nil {
			return nil, errors.New("this host runs no commands: it was not run")
		}
		return shell(ctx, runner, call, in)
	})
}

// check returns what is wrong with the input.
func (in shellInput) check() error {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return errors.New("the command is empty")
	case strings.ContainsRune(in.Command, 0):
		return errors.New("the command has a NUL character")
	case len(in.Command) > maxCommand:
		return fmt.Errorf("the command has %d bytes, and at most %d are possible: write it to a file and run that", len(in.Command), maxCommand)
	case in.TimeoutSeconds < 0 || in.TimeoutSeconds > maxSeconds:
		return fmt.Errorf("timeoutSeconds is %d: it must be from 1 to %d, or left out for 60", in.TimeoutSeconds, maxSeconds)
	}
	return nil
}

// shell runs a command. One that goes wrong is an Output, not an error: of a long one the end is kept too.
func shell(ctx context.Context, runner exec.Runner, call *bdk.Call, in shellInput) (any, error) {
	w, err := filesOf(call)
	if err != nil {
		return nil, err
	}
	dir, err := w.Dir(ctx)
	if err != nil {
		return nil, fmt.Errorf("there is no directory with the session's files, the command was not run: %w", err)
	}
	r, err := runner.Run(ctx, exec.Command{
		Dir: dir, Args: []string{"sh", "-c", startShell, "sh", in.Command},
		Timeout: time.Duration(in.TimeoutSeconds) * time.Second,
		Env:     map[string]string{"BDK_CALL_ID": call.ID},
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the command did not run, or nothing is known of it: %w", err)
	case r.Killed != "" || r.ExitCode != 0:
		return bdk.Output{Content: []bdk.Content{{Text: printed(r)}, {Text: ending(r)}}, IsError: true}, nil
	}
	return printed(r), nil
}

// printed returns what a command printed, as text.
func printed(r exec.Result) string {
	out, errs := text(bytes.TrimSuffix(r.Stdout, []byte("\n"))), text(bytes.TrimSuffix(r.Stderr, []byte("\n")))
	switch {
	case out == "" && errs == "":
		return "(no output)"
	case errs == "":
		return out
	case out == "":
		return "[stderr]\n" + errs
	}
	return out + "\n[stderr]\n" + errs
}

// ending says how a command that went wrong ended.
func ending(r exec.Result) string {
	took := r.Took.Round(time.Millisecond)
	switch r.Killed {
	case "":
		return fmt.Sprintf("[exit code %d after %s]", r.ExitCode, took)
	case "timeout":
		return fmt.Sprintf("[killed after %s: its time was over; timeoutSeconds may be up to %d]", took, maxSeconds)
	}
	return fmt.Sprintf("[killed after %s: %s]", took, r.Killed)
}
