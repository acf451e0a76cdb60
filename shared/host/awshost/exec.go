package awshost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
)

// newSandbox returns where the exec function runs scripts: in the directory that it has for itself, or else in one of this process.
func newSandbox(env func(string) string) *lambdaexec.Sandbox {
	temp := cmp.Or(env("TMPDIR"), "/tmp")
	dir := cmp.Or(env(deploy.EnvScratch), filepath.Join(temp, fmt.Sprint("bdk-exec-", os.Getpid())))
	return lambdaexec.NewSandbox(missing{}, dir, &http.Client{})
}

// Exec runs a script in this function.
func (h *Host) Exec(ctx context.Context, req lambdaexec.Request) lambdaexec.Answer {
	return h.sandbox.Run(ctx, req)
}

// missing stands for the runner of child processes until there is one.
type missing struct{}

// Run implements [exec.Runner].
func (missing) Run(context.Context, exec.Command) (exec.Result, error) {
	return exec.Result{}, errors.New("scripts cannot be run here yet")
}
