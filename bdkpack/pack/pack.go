// Package pack makes of an agent's folder what is deployed: an archive with one program for all functions and a manifest
// that says what becomes of it on AWS.
//
// The same sources give the same archive, byte by byte, wherever they are. The author's code is compiled, never run.
package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// The architectures of functions.
const (
	ARM64 = "arm64"
	AMD64 = "amd64"
)

// What a packed agent should not exceed, in bytes: how fast a function starts depends on it.
const (
	BudgetBootstrap = 20_000_000
	BudgetArchive   = 8_000_000
)

// The names of what is written for each agent.
const (
	archiveName  = "bootstrap.zip"
	manifestName = "manifest.json"
)

// Options are all optional.
type Options struct {
	Arch string // ARM64 or AMD64; default: ARM64
	Out  string // the folder to write to, each agent into a folder of its slug; default: dist

	// Model takes the place of the agents' own models. The file of a scripted one is relative to the working directory and
	// gets into the archive. Default: none, and BDK_MODEL in the environment has no meaning.
	Model string

	// Env is the environment of the go command, as key=value. Default: the environment of this process.
	Env []string

	// Progress is told what a build is doing, by one call at a time. Default: nobody is told.
	Progress func(maingen.Progress)
}

// Result says what was packed.
type Result struct {
	Agents []Agent `json:"agents"` // in slug order
}

// Agent is one packed agent.
type Agent struct {
	Path      string          `json:"path"` // of the manifest, absolute
	Manifest  deploy.Manifest `json:"manifest"`
	Bootstrap int64           `json:"bootstrap"` // size of the program, in bytes
	Archive   int64           `json:"archive"`   // size of the archive, in bytes
	Files     []File          `json:"files"`     // in the archive, in their order
}

// File is a file in an archive.
type File struct {
	Name  string `json:"name"`  // with slashes
	Bytes int64  `json:"bytes"` // its size
}

// Pack packs the agent in dir, or each of the agents in the folders of dir. With errors among the diagnostics nothing is
// written, unless only the build of a later agent finds them. Diagnostics are sorted and name files by absolute path. An error means that something beside the agents is wrong,
// such as the options, the go command or the folder to write to.
func Pack(ctx context.Context, dir string, opts Options) (Result, diag.List, error) {
	p := &packer{Options: opts}
	if err := p.complete(); err != nil {
		return Result{}, nil, err
	}
	if p.Progress == nil {
		p.Progress = func(maingen.Progress) {}
	}
	p.Progress(maingen.Progress{Phase: maingen.Checking})
	downloaded := 0
	ws, diags, err := project.Load(ctx, dir, &project.Options{Env: p.Env, Downloading: func(module string) {
		downloaded++
		p.Progress(maingen.Progress{Phase: maingen.Downloading, Module: module, Done: downloaded})
	}})
	if err != nil {
		return Result{}, nil, err
	}
	result := Result{Agents: []Agent{}}
	if diags.HasErrors() {
		return result, diags, nil
	}
	plans := make([]plan, len(ws.Agents))
	for i, a := range ws.Agents {
		var more diag.List
		plans[i], more = p.plan(a)
		diags = append(diags, more...)
	}
	if diags = diags.Sort(); diags.HasErrors() {
		return result, diags, nil
	}
	for _, plan := range plans {
		packed, more, err := p.pack(ctx, ws, plan)
		diags = append(diags, more...).Sort()
		if err != nil || diags.HasErrors() {
			return Result{}, diags, err
		}
		result.Agents = append(result.Agents, packed)
	}
	return result, diags, nil
}

// packer is one run of Pack.
type packer struct {
	Options

	script string // path of the file of a scripted Model, "" if there is none
}

// complete checks the options and fills in the defaults.
func (p *packer) complete() error {
	switch p.Arch {
	case "":
		p.Arch = ARM64
	case ARM64, AMD64:
	default:
		return fmt.Errorf("there is no architecture %q: functions run on %s or %s", p.Arch, ARM64, AMD64)
	}
	if p.Out == "" {
		p.Out = "dist"
	}
	if err := p.completeModel(); err != nil {
		return err
	}
	out, err := filepath.Abs(p.Out)
	if err != nil {
		return fmt.Errorf("finding the folder to write to: %w", err)
	}
	p.Out = out
	env := slices.DeleteFunc((&exec.Cmd{Env: p.Env}).Environ(), func(kv string) bool { return strings.HasPrefix(kv, deploy.EnvModel+"=") })
	p.Env = append(env, "GOOS=linux", "GOARCH="+p.Arch, "CGO_ENABLED=0")
	if p.Model != "" { // discovery then does not look at the agents' own
		p.Env = append(p.Env, deploy.EnvModel+"="+p.Model)
	}
	return nil
}

// pack builds and writes one agent.
func (p *packer) pack(ctx context.Context, ws *project.Workspace, plan plan) (Agent, diag.List, error) {
	dir := filepath.Join(p.Out, plan.manifest.Slug)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return Agent{}, nil, fmt.Errorf("making the folder for the packed agent: %w", err)
	}
	build, err := os.MkdirTemp(dir, ".build-*")
	if err != nil {
		return Agent{}, nil, fmt.Errorf("making a folder for the program: %w", err)
	}
	defer os.RemoveAll(build) //nolint:errcheck // it is no part of the result
	program, diags, err := maingen.Functions(ctx, ws, plan.agent, build, &maingen.Options{Env: p.Env, Progress: p.Progress})
	if err != nil || diags.HasErrors() {
		return Agent{}, diags, err
	}
	files := append([]entry{{name: "bootstrap", path: program, mode: 0o755}}, plan.files...)
	packed := Agent{Path: filepath.Join(dir, manifestName), Manifest: plan.manifest}
	if packed.Manifest.SHA256, packed.Archive, err = writeArchive(filepath.Join(dir, archiveName), files); err != nil {
		return Agent{}, nil, err
	}
	for _, f := range files {
		info, err := os.Stat(f.path)
		if err != nil {
			return Agent{}, nil, fmt.Errorf("measuring %s: %w", f.name, err)
		}
		packed.Files = append(packed.Files, File{f.name, info.Size()})
	}
	packed.Bootstrap = packed.Files[0].Bytes
	return packed, diags, writeManifest(packed.Path, packed.Manifest)
}

// writeManifest writes a manifest at once or not at all.
func writeManifest(path string, m deploy.Manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = os.WriteFile(path+".new", append(data, '\n'), 0o644) //nolint:gosec // nothing in it is secret
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", errors.Join(err, os.Remove(path+".new")))
	}
	return nil
}
