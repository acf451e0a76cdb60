package maingen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// Program is a built program.
type Program struct {
	Path      string             `json:"path"`      // of the executable, absolute; other contents have another path
	Workspace *project.Workspace `json:"workspace"` // it was built from
	Warnings  diag.List          `json:"warnings"`  // of discovery, with absolute paths
	Reused    bool               `json:"-"`         // nothing had changed since an earlier build
}

// Options are all optional.
type Options struct {
	// Env is the environment of the go command, as key=value. Default: the environment of this process.
	Env []string

	// CacheDir takes what is built where the author's folder cannot be written to. Default: none, such a build fails.
	CacheDir string

	// Progress is told what a build is doing, by one call at a time. Default: nobody is told.
	Progress func(Progress)
}

// Progress is a step of a build.
type Progress struct {
	Phase  Phase
	Module string // the one being downloaded, if any
	Done   int    // how many modules or packages so far
}

// Phase is what a build is doing.
type Phase string

// The phases of a build. Some are skipped, and downloading may come back.
const (
	Checking    Phase = "checking"    // discovery
	Downloading Phase = "downloading" // a module
	Compiling   Phase = "compiling"   // packages
	Linking     Phase = "linking"     // the program
)

// Load discovers and builds the agents in dir. If nothing has changed since the last build it returns that within
// milliseconds, without the go command. A nil Program without an error means that there are errors among the
// diagnostics; the workspace is returned in any case, so that its inputs can be watched.
//
// What is built is kept in dir/.bdk/build, which git ignores, or in the cache directory: the newest two programs. One
// that runs is never overwritten.
func Load(ctx context.Context, dir string, opts *Options) (*Program, *project.Workspace, diag.List, error) {
	if opts == nil {
		opts = &Options{}
	}
	dir, err := project.Resolve(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	b := &builder{dir: dir, opts: *opts, counts: map[Phase]int{}}
	if p := b.reuse(); p != nil {
		return p, p.Workspace, p.Warnings, nil
	}
	ws, diags, fingerprint, err := b.discover(ctx)
	if err != nil || diags.HasErrors() {
		return nil, ws, diags, err
	}
	p, more, err := b.build(ctx, ws, fingerprint)
	diags = slices.Concat(diags, more).Sort()
	if p != nil {
		p.Warnings = diags
		err = b.remember(p, fingerprint)
	}
	return p, ws, diags, err
}

// builder is one run of Load.
type builder struct {
	dir    string // of the workspace, absolute
	opts   Options
	last   record // of the build before, zero if there is none
	root   string // where programs are kept
	counts map[Phase]int
}

// record is what is remembered of a build.
type record struct {
	Program     *Program `json:"program"`
	Fingerprint string   `json:"fingerprint"` // of the inputs; "" if they changed during the build
	Settings    string   `json:"settings"`    // hash of those of the go command
	Source      string   `json:"source"`      // hash of what was generated
	ModelGiven  bool     `json:"modelGiven"`  // the environment named a model, so that the agents' own were not looked at
}

const recordFile = "build.json"

// places returns where a build may be kept, best first.
func (b *builder) places() []string {
	places := []string{filepath.Join(b.dir, ".bdk", "build")}
	if b.opts.CacheDir != "" {
		places = append(places, filepath.Join(b.opts.CacheDir, "bdk", "build", hash(b.dir)))
	}
	return places
}

// reuse returns the program of the build before if nothing has changed, nil otherwise.
func (b *builder) reuse() *Program {
	for _, place := range b.places() {
		data, err := os.ReadFile(filepath.Join(place, recordFile))
		if err != nil || json.Unmarshal(data, &b.last) != nil || b.last.Program == nil || b.last.Program.Workspace == nil {
			b.last = record{}
			continue
		}
		break
	}
	p := b.last.Program
	if p == nil || p.Workspace.Dir != b.dir || b.last.Fingerprint == "" || b.last.Settings != b.settings() {
		return nil
	}
	if given := project.ModelGiven(b.opts.Env); given != b.last.ModelGiven && (b.last.ModelGiven || len(p.Warnings) > 0) {
		return nil
	}
	if _, err := os.Stat(p.Path); err != nil {
		return nil
	}
	if now, err := p.Workspace.Inputs.Fingerprint(); err != nil || now != b.last.Fingerprint {
		return nil
	}
	if src, err := Generate(p.Workspace.Agents); err != nil || hash(string(src)) != b.last.Source {
		return nil
	}
	p.Reused = true
	return p
}

// settings returns a hash of what else decides how the go command builds.
func (b *builder) settings() string {
	env := (&exec.Cmd{Env: b.opts.Env}).Environ()
	env = slices.DeleteFunc(env, func(kv string) bool { return !strings.HasPrefix(kv, "GO") && !strings.HasPrefix(kv, "CGO_") })
	slices.Sort(env)
	if tool, err := exec.LookPath("go"); err == nil {
		if info, err := os.Stat(tool); err == nil {
			env = append(env, fmt.Sprint(tool, info.Size(), info.ModTime().UnixNano()))
		}
	}
	return hash(strings.Join(env, "\n"))
}

// discover finds the agents and a fingerprint of what it read, which is "" if that does not stand still.
func (b *builder) discover(ctx context.Context) (*project.Workspace, diag.List, string, error) {
	opts := &project.Options{
		Env:         b.opts.Env,
		Downloading: func(module string) { b.tell(Downloading, module) },
	}
	if b.last.Program == nil { // nothing may have been compiled yet, which takes long
		opts.Compiling = func() { b.tell(Compiling, "") }
	}
	var inputs project.Inputs
	if b.last.Program != nil {
		inputs = b.last.Program.Workspace.Inputs
	}
	for tries := 0; ; tries++ {
		b.tell(Checking, "")
		before, _ := inputs.Fingerprint() // an unreadable input is found out by Load
		ws, diags, err := project.Load(ctx, b.dir, opts)
		if err != nil || diags.HasErrors() {
			return ws, diags, "", err
		}
		after, err := ws.Inputs.Fingerprint()
		if err != nil {
			return ws, diags, "", err
		}
		if before == after && reflect.DeepEqual(inputs, ws.Inputs) {
			return ws, diags, after, nil
		}
		if tries == 2 {
			return ws, diags, "", nil
		}
		inputs, opts.Compiling = ws.Inputs, nil
	}
}

func (b *builder) tell(phase Phase, module string) {
	if b.opts.Progress == nil {
		return
	}
	if phase == Downloading || phase == Compiling {
		b.counts[phase]++
	}
	b.opts.Progress(Progress{Phase: phase, Module: module, Done: b.counts[phase]})
}

// remember lets a later run reuse the program, and removes older ones.
func (b *builder) remember(p *Program, fingerprint string) error {
	if now, err := p.Workspace.Inputs.Fingerprint(); err != nil || now != fingerprint {
		fingerprint = ""
	}
	b.last.Program, b.last.Fingerprint, b.last.Settings = p, fingerprint, b.settings()
	b.last.ModelGiven = project.ModelGiven(b.opts.Env)
	data, err := json.MarshalIndent(b.last, "", "\t")
	if err != nil {
		return fmt.Errorf("recording the build: %w", err)
	}
	if err := writeFile(filepath.Join(b.root, recordFile), data); err != nil {
		return fmt.Errorf("recording the build: %w", err)
	}
	b.prune(filepath.Dir(p.Path))
	return nil
}

// prune removes all programs but the newest two. What cannot be removed stays.
func (b *builder) prune(keep string) {
	entries, err := os.ReadDir(b.root)
	if err != nil {
		return
	}
	var old []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && e.Name() != filepath.Base(keep) {
			old = append(old, info)
		}
	}
	slices.SortFunc(old, func(x, y fs.FileInfo) int { return y.ModTime().Compare(x.ModTime()) })
	for _, info := range old[min(1, len(old)):] {
		_ = os.RemoveAll(filepath.Join(b.root, info.Name())) // tried again after the next build
	}
}

// writeFile writes a file at once or not at all.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}
