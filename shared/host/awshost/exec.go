package awshost

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
	"github.com/bdk-lambda/bdk/shared/exec/localexec"
)

// newSandbox returns where the exec function runs scripts: in the directory for temporary files, which is emptied before and after each,
// where the function has it for itself, or else in one of this process.
func newSandbox(env func(string) string) *lambdaexec.Sandbox {
	dir := tempOf("bdk-exec")
	if env(deploy.EnvWrapper) != "" {
		dir = os.TempDir()
	}
	return lambdaexec.NewSandbox(localexec.New(localexec.Options{Alone: true}), dir, &http.Client{})
}

// tempOf returns a directory that is of this process alone while it lives.
func tempOf(name string) string {
	return filepath.Join(os.TempDir(), fmt.Sprint(name, "-", os.Getpid()))
}

// Exec runs a script in this function.
func (h *Host) Exec(ctx context.Context, req lambdaexec.Request) lambdaexec.Answer {
	const libraries = "LD_LIBRARY_PATH" // Python finds its own by it
	if value := h.opts.Getenv(libraries); value != "" && req.Env[libraries] == "" {
		req.Env = maps.Clone(req.Env)
		if req.Env == nil {
			req.Env = map[string]string{}
		}
		req.Env[libraries] = value
	}
	return h.sandbox.Run(ctx, req)
}
