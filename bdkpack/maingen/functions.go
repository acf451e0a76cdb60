package maingen

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// Functions builds the program that runs the functions of one agent of a workspace without errors, and returns its path in
// dir, a folder of the caller's. The environment in opts says for which system and architecture. The same sources give the
// same program, wherever they are. It returns no path if there are errors among the diagnostics.
func Functions(ctx context.Context, ws *project.Workspace, agent project.Agent, dir string, opts *Options) (string, diag.List, error) {
	agents := []project.Agent{agent}
	src, err := GenerateFunctions(agents)
	if err != nil {
		return "", nil, err
	}
	one := &project.Workspace{Dir: agent.Dir, Single: true, Module: ws.Module, Agents: agents}
	j := &job{
		builder: &builder{dir: agent.Dir, opts: *opts, counts: map[Phase]int{}}, ws: one, dir: dir,
		flags: []string{"-tags=" + tags(opts.Env), "-trimpath", "-ldflags=-s -w -buildid="},
	}
	diags, err := j.compile(ctx, src)
	if err != nil || diags.HasErrors() {
		return "", diags, err
	}
	return filepath.Join(dir, "agent"), diags, nil
}

// tags returns the build tags of functions: the author's, and the one that leaves out the remote calls of old runtimes, which
// bring templates and with them all methods of all types.
func tags(env []string) string {
	all := []string{"lambda.norpc"}
	for _, kv := range (&exec.Cmd{Env: env}).Environ() {
		flags, ok := strings.CutPrefix(kv, "GOFLAGS=")
		for flag := range strings.FieldsSeq(flags) {
			if more, found := strings.CutPrefix(flag, "-tags="); ok && found {
				all = append(all, more)
			}
		}
	}
	return strings.Join(all, ",")
}
