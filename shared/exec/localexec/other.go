//go:build !unix

package localexec

import (
	"context"
	"errors"
	"fmt"

	"github.com/bdk-lambda/bdk/shared/exec"
)

func (r *Runner) run(context.Context, exec.Command, []string, string) (exec.Result, error) {
	return exec.Result{}, fmt.Errorf("running a command on this operating system: %w", errors.ErrUnsupported)
}

func adopt() {}

// KillLeft does nothing on this operating system.
func KillLeft(string) {}
