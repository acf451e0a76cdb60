package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/bdk-lambda/bdk/shared/launch"
)

// callProgram has an agent program call a tool and returns its answer.
func callProgram(ctx context.Context, o *IO, path string, c launch.Config, body []byte) ([]byte, error) {
	env, err := programEnv(o, c)
	if err != nil {
		return nil, err
	}
	quiet := *o
	quiet.In = bytes.NewReader(body)
	var out bytes.Buffer
	err = runProgram(ctx, &quiet, path, env, &out)
	return out.Bytes(), err
}

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
