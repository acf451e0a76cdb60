// Package project finds out what an author's folder consists of. It reads and type-checks the files of one agent, or of
// all agents in a folder, names each definition by its path and reports every mistake as a diagnostic.
//
// It never runs the author's code.
package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// Workspace is one agent, or the agents of a folder, as discovered. It marshals to JSON and back without loss.
type Workspace struct {
	Dir    string  `json:"dir"`    // absolute, with symbolic links resolved
	Single bool    `json:"single"` // Dir itself is the agent
	Module Module  `json:"module"`
	Agents []Agent `json:"agents"` // in slug order; those with errors as far as they were understood
	Inputs Inputs  `json:"inputs"`
}

// Module is the Go module that all agents of a workspace belong to. It is zero if there is none.
type Module struct {
	Dir    string `json:"dir"`              // absolute
	GoWork string `json:"goWork,omitempty"` // the go.work file in use, absolute; "" if there is none
}

// Agent is what was found in an agent's folder.
type Agent struct {
	Slug         string       `json:"slug"`
	Dir          string       `json:"dir"`  // absolute
	Root         string       `json:"root"` // "bot" or "agent"
	Config       *Definition  `json:"config,omitempty"`
	Models       []string     `json:"models,omitempty"`   // that Config names by constants: its model, then its fallbacks
	Computed     bool         `json:"computed,omitempty"` // Config has models that only running its code would tell
	Instructions Instructions `json:"instructions"`
	Tools        []Named      `json:"tools"`               // in name order
	Skills       []Skill      `json:"skills,omitempty"`    // in name order
	Subagents    []Subagent   `json:"subagents,omitempty"` // in name order

	Hooks           []Named     `json:"hooks,omitempty"`           // in name order
	Channels        []Named     `json:"channels,omitempty"`        // in name order
	Schedules       []Schedule  `json:"schedules,omitempty"`       // in name order
	Connections     []Named     `json:"connections,omitempty"`     // in name order
	HostConnections []Named     `json:"hostConnections,omitempty"` // in name order
	Programs        []string    `json:"programs,omitempty"`        // the connections that are programs to start
	ArtifactKinds   *Definition `json:"artifactKinds,omitempty"`
	Seed            string      `json:"seed,omitempty"` // the folder with the first files of sessions, relative to Dir; "" for none
}

// Instructions are an agent's instructions: text or a definition, neither if Agent.Instructions has them.
type Instructions struct {
	Text       string      `json:"text,omitempty"`  // of the Markdown files
	Files      []string    `json:"files,omitempty"` // they come from, relative to the agent's folder, with slashes
	Definition *Definition `json:"definition,omitempty"`
}

// Named is a definition and the name its file gave it.
type Named struct {
	Name   string   `json:"name"`
	Events []string `json:"events,omitempty"` // that a hook handles, * for all, as far as that can be said without running it
	Definition
}

// Definition is an exported package-level variable that defines something.
type Definition struct {
	Package string `json:"package"` // import path
	Var     string `json:"var"`
	File    string `json:"file"` // relative to the agent's folder, with slashes
	Line    int    `json:"line"`
}

// Options are all optional.
type Options struct {
	// Env is the environment of the go command, as key=value. A model in it takes the place of the agents' own, which are
	// not looked at then. Default: the environment of this process.
	Env []string

	// Downloading is told of each module that has to be downloaded. Default: nobody is told.
	Downloading func(module string)

	// Compiling is told whenever a package that the program needs is compiled, because it has not been on this machine
	// yet. Default: nobody is told, and only what type-checking needs is compiled.
	Compiling func()
}

// Load discovers the agent in dir, or the agents in the folders of dir. The workspace says what to watch even if there
// are diagnostics; it can be built if none of them is an error. Diagnostics are sorted and name files by absolute path.
// An error means that nothing can be said about the folder, such as a missing go command.
func Load(ctx context.Context, dir string, opts *Options) (*Workspace, diag.List, error) {
	if opts == nil {
		opts = &Options{}
	}
	dir, err := Resolve(dir)
	if err != nil {
		return nil, nil, err
	}
	l := &loader{opts: *opts, ws: &Workspace{Dir: dir}, sources: sources{}}
	l.findAgents()
	var all []*folder
	for i := range l.ws.Agents {
		all = append(all, l.scan(&l.ws.Agents[i]))
	}
	if l.findModule() {
		if err := l.checkGo(ctx, all); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range all {
		l.checkForms(f)
		l.checkSubagents(f)
		l.checkNoModel(f)
	}
	l.ws.Inputs = l.ws.Inputs.sorted()
	return l.ws, l.diags.Sort(), nil
}

// Resolve returns the absolute path of a directory, without symbolic links.
func Resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(abs)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no folder %s", dir)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("this user may not look into the folder %s", dir)
	case err != nil:
		return "", fmt.Errorf("finding the agent's folder: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("%s is a file: name the folder of an agent", dir)
	}
	return abs, nil
}

// ModelGiven says whether the environment, as key=value, names a model for all agents. A nil one is that of this process.
func ModelGiven(env []string) bool {
	return slices.ContainsFunc((&exec.Cmd{Env: env}).Environ(), func(kv string) bool {
		value, ok := strings.CutPrefix(kv, "BDK_MODEL=")
		return ok && value != ""
	})
}

// loader collects what one Load finds.
type loader struct {
	opts    Options
	ws      *Workspace
	diags   diag.List
	sources sources
}

// sources are files read for the excerpts of diagnostics.
type sources map[string][]byte

func (s sources) line(pos diag.Pos) string {
	if pos.Line == 0 {
		return ""
	}
	src, read := s[pos.File]
	if !read {
		src, _ = os.ReadFile(pos.File) // without a source there is no excerpt
		s[pos.File] = src
	}
	return diag.SourceLine(src, pos.Line)
}

// path returns the absolute path of a file of the agent.
func (a *Agent) path(rel string) string { return filepath.Join(a.Dir, filepath.FromSlash(rel)) }
