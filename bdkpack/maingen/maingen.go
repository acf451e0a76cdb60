// Package maingen writes and builds the program that serves an author's agents: imports and one call, nothing that runs
// at import and nothing in the author's packages.
package maingen

import (
	"context"
	"errors"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// Program is a built program.
type Program struct {
	Path      string             `json:"path"`      // of the executable, absolute
	Workspace *project.Workspace `json:"workspace"` // it was built from
	Warnings  diag.List          `json:"warnings"`  // of discovery
	Reused    bool               `json:"-"`         // nothing had changed since an earlier build
}

// Options are all optional.
type Options struct {
	// Env is the environment of the go command, as key=value. Default: the environment of this process.
	Env []string

	// CacheDir takes what is built where the author's folder cannot be written to. Default: none, such a build fails.
	CacheDir string

	// Progress is told what a build is doing, from one goroutine at a time. Default: nobody is told.
	Progress func(Progress)
}

// Progress is a step of a build.
type Progress struct {
	Phase string // "checking", "downloading", "compiling" or "linking"
	Item  string // the module or package at hand, if any
	Done  int    // how many of them so far
	Total int    // at most how many there will be; 0 if that is not known
}

// Generate returns the source of the main program of the agents. The same agents give the same text.
func Generate(agents []project.Agent) ([]byte, error) {
	_ = agents
	return nil, errors.New("not written yet")
}

// Load discovers and builds the agents in dir: [project.Load] and [Build] in one. If nothing has changed since the last
// build it returns that within milliseconds, without the go command. A nil Program without an error means that there
// are errors among the diagnostics.
func Load(ctx context.Context, dir string, opts *Options) (*Program, diag.List, error) {
	_, _, _ = ctx, dir, opts
	return nil, nil, errors.New("not written yet")
}

// Build builds the program of a workspace without errors. The executable keeps its contents: a later build with other
// contents has another path, so a running program is never overwritten; only the newest two are kept.
func Build(ctx context.Context, ws *project.Workspace, opts *Options) (*Program, diag.List, error) {
	_, _, _ = ctx, ws, opts
	return nil, nil, errors.New("not written yet")
}
