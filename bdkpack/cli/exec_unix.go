//go:build unix

package cli

import (
	"context"
	"fmt"
	"syscall"
)

// become replaces this process by a program, so that the command itself takes no memory while the program runs. It
// returns only if it fails.
func become(_ context.Context, _ *IO, path string, env []string) error {
	return fmt.Errorf("starting the agent program: %w", syscall.Exec(path, []string{path}, env))
}
