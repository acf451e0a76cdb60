// Package exec is the function that runs scripts and shell commands. It has no permissions and knows no secrets: what it works with
// comes with its event.
package exec

import (
	"context"
	"errors"
	"log/slog"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
)

// New returns the Lambda handler. A command that was not run, or whose changes are lost, is an answer with the reason: the function is
// not called again for it. The log has neither what was run nor what it printed. From here on the process is hidden from its children.
func New(run func(context.Context, lambdaexec.Request) lambdaexec.Answer, log *slog.Logger) func(context.Context, lambdaexec.Request) (lambdaexec.Answer, error) {
	hide()
	return func(ctx context.Context, req lambdaexec.Request) (a lambdaexec.Answer, err error) {
		ran := false
		err = invocation.Run(ctx, log, "exec", func() ([]slog.Attr, error) {
			a = run(ctx, req)
			if ran = true; a.Fault != nil {
				return nil, errors.New(a.Fault.Message)
			}
			return []slog.Attr{
				slog.Int("exit_code", a.ExitCode), slog.String("killed", a.Killed), slog.Int64("took_ms", a.Took),
				slog.Int64("changed_bytes", int64(len(a.Changes))+a.Stored),
			}, nil
		})
		if ran {
			return a, nil
		}
		return a, err
	}
}
