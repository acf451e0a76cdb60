package cli

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/config"
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

// Deployment is how `bdk deploy` is called.
type Deployment struct {
	Dir, Checkout, Arch, Model string
	Env, Context               []string
	Yes                        bool
	AWS                        []func(*config.LoadOptions) error
}

func (d Deployment) options(destroy bool) (deployOptions, surroundings) {
	return deployOptions{packing{d.Dir, d.Arch, d.Model}, d.Env, d.Context, destroy, d.Yes}, surroundings{d.Checkout, d.AWS}
}

// Deploy runs `bdk deploy` in other surroundings.
func Deploy(ctx context.Context, io *IO, d Deployment) error {
	opts, at := d.options(false)
	return deployRun(ctx, io, opts, at)
}

// Destroy runs `bdk deploy --destroy` in other surroundings.
func Destroy(ctx context.Context, io *IO, d Deployment) error {
	opts, at := d.options(true)
	return destroyRun(ctx, io, opts, at)
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

// CallProgram has an agent program call a tool.
func CallProgram(ctx context.Context, io *IO, path, tool string, body []byte) ([]byte, error) {
	return callProgram(ctx, io, path, launch.Config{Command: "call", Tool: tool}, body)
}
