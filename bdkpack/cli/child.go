package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// runProgram runs an agent program to its end. If it fails, its exit code becomes that of this command. When ctx ends it
// is asked to finish, and killed if that takes longer than a second.
func runProgram(ctx context.Context, o *IO, path string, env []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, path)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, o.In, out, o.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exitError(exit.ExitCode())
	case err != nil:
		return fmt.Errorf("running the agent program: %w", err)
	}
	return nil
}
