//go:build !unix

package cli

import "context"

// become runs a program in place of this command.
func become(ctx context.Context, io *IO, path string, env []string) error {
	return runProgram(ctx, io, path, env, io.Out)
}
