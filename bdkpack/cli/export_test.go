package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// BuildFunc builds the program of dev.
type BuildFunc = buildFunc

// Dev runs `bdk dev` with another build.
func Dev(ctx context.Context, io *IO, dir string, port int, build BuildFunc) error {
	return devRun(ctx, io, serving{dir: dir, host: "127.0.0.1", port: port, mode: "multi", dev: true}, build)
}

// Serving returns what `bdk serve` with the given flags tells a program.
func Serving(io *IO, program *maingen.Program, flags ...string) (launch.Config, error) {
	var s serving
	cmd := new(cobra.Command)
	s.flags(cmd)
	if err := errors.Join(cmd.ParseFlags(flags), s.check(io)); err != nil {
		return launch.Config{}, err
	}
	return s.config(program)
}

// Deploy runs `bdk deploy` with another checkout of bdk.
func Deploy(ctx context.Context, io *IO, dir, checkout string, destroy bool, env ...string) error {
	return deployRun(ctx, io, deployOptions{packing: packing{dir: dir, arch: "arm64"}, env: env, destroy: destroy}, checkout)
}

// StartProgress shows steps of a build until end is called.
func StartProgress(io *IO) (show func(maingen.Progress), end func()) {
	p := startProgress(io)
	return p.show, p.end
}

// RunProgram runs an agent program as `bdk run` and `bdk info` do.
func RunProgram(ctx context.Context, io *IO, path string, env []string) error {
	return runProgram(ctx, io, path, env, io.Out)
}

// Info shows what a program says about its agents.
func Info(ctx context.Context, io *IO, program *maingen.Program) error {
	return infoShow(ctx, io, infoOptions{}, program)
}

// ExitError is what build returns when the author made mistakes.
type ExitError = exitError
