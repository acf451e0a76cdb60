package maingen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// build builds the program of a workspace without errors.
func (b *builder) build(ctx context.Context, ws *project.Workspace, fingerprint string) (*Program, diag.List, error) {
	src, err := Generate(ws.Agents)
	if err != nil {
		return nil, nil, err
	}
	if err := b.makeRoot(); err != nil {
		return nil, nil, err
	}
	b.last.Source = hash(string(src))
	dir := filepath.Join(b.root, hash(fingerprint+b.settings()+b.last.Source))
	if fingerprint == "" {
		dir, err = os.MkdirTemp(b.root, "unsettled-*")
	} else {
		err = os.MkdirAll(dir, 0o750)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for the program: %w", err)
	}
	p := &Program{Path: filepath.Join(dir, "agent"), Workspace: ws}
	if _, err := os.Stat(p.Path); err == nil {
		return p, nil, nil // of the build before the last one
	}
	j := &job{builder: b, ws: ws, dir: dir, flags: []string{"-ldflags=-w"}}
	diags, err := j.compile(ctx, src)
	if err != nil || diags.HasErrors() {
		return nil, diags, errors.Join(err, os.RemoveAll(dir))
	}
	return p, diags, nil
}

// makeRoot finds the first place that can be written to.
func (b *builder) makeRoot() error {
	var errs []error
	for i, place := range b.places() {
		err := os.MkdirAll(place, 0o750)
		if err == nil && i == 0 {
			err = writeFile(filepath.Join(filepath.Dir(place), ".gitignore"), []byte("*\n"))
		}
		if err == nil {
			b.root = place
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("making a folder for the program: %w", errors.Join(errs...))
}

// job is one program being built.
type job struct {
	*builder
	ws    *project.Workspace
	dir   string   // what it is built in
	flags []string // of go build
}

// anchor returns the folder the compiler sees the program in. It is inside the module and, where possible, not outside
// of any folder whose internal packages the agents are.
func (j *job) anchor() string {
	for _, dir := range []string{j.ws.Dir, j.ws.Agents[0].Dir} {
		if rel, err := filepath.Rel(j.ws.Module.Dir, dir); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(dir, ".bdk", "main")
		}
	}
	return filepath.Join(j.ws.Module.Dir, ".bdk", "main")
}

func (j *job) writeSources(src []byte) error {
	mainFile := filepath.Join(j.dir, "main.go")
	if err := writeFile(mainFile, src); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(j.anchor(), "main.go"): mainFile}})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(j.dir, "overlay.json"), overlay)
}

// compile writes the source and runs go build. The author's module need not know what only the host imports: where go.mod lacks it, a copy of
// it is completed instead.
func (j *job) compile(ctx context.Context, src []byte) (diag.List, error) {
	if err := j.writeSources(src); err != nil {
		return nil, fmt.Errorf("writing the program: %w", err)
	}
	stderr, err := j.goBuild(ctx, nil)
	if err != nil || stderr == "" {
		return nil, err
	}
	if !incomplete(stderr) || j.ws.Module.GoWork != "" { // a workspace has one go.mod only
		return j.diagnose(stderr), nil
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(j.ws.Module.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("copying %s: %w", name, err)
		}
		if err := writeFile(filepath.Join(j.dir, name), data); err != nil {
			return nil, fmt.Errorf("copying %s: %w", name, err)
		}
	}
	again, err := j.goBuild(ctx, []string{"-mod=mod", "-modfile=" + filepath.Join(j.dir, "go.mod")})
	if err != nil || again == "" {
		return nil, err
	}
	diags := j.diagnose(again)
	for i := range diags {
		if diags[i].Code == codeBuild {
			diags[i].Help = "run `go get -tool " + project.CommandPackage + "`, so that the module knows all that the program needs; with vendoring, then run `go mod vendor`"
		}
	}
	return diags, nil
}

// incomplete says whether a build failed because go.mod, go.sum or vendor/ lack what the host imports.
func incomplete(stderr string) bool {
	return regexp.MustCompile(`missing go\.sum entry|no required module provides|updates to go\.mod needed|` +
		`inconsistent vendoring|cannot find module providing package|is not in your go\.mod|not in vendor`).MatchString(stderr)
}

// goBuild builds the program at dir/agent. The text is what the go command says if it cannot.
func (j *job) goBuild(ctx context.Context, flags []string) (string, error) {
	rel, err := filepath.Rel(j.ws.Module.Dir, j.anchor())
	if err != nil {
		return "", fmt.Errorf("building the program: %w", err)
	}
	binary := filepath.Join(j.dir, "agent")
	args := []string{"build", "-v", "-buildvcs=false", "-o", binary + ".new", "-overlay", filepath.Join(j.dir, "overlay.json")}
	args = slices.Concat(args, j.flags, flags, []string{"./" + filepath.ToSlash(rel)})
	_, err = project.RunGo(ctx, j.ws.Module.Dir, j.opts.Env, j.line, args...)
	if gerr, ok := errors.AsType[*project.GoError](err); ok {
		return gerr.Stderr, nil
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(binary+".new", binary); err != nil {
		return "", fmt.Errorf("building the program: %w", err)
	}
	return "", nil
}

// line tells of progress what a line of go build -v says.
func (j *job) line(text string) {
	if module, ok := project.Downloading(text); ok {
		j.tell(Downloading, module)
		return
	}
	switch {
	case !packageLine(text):
	case strings.HasSuffix(text, "/.bdk/main"):
		j.tell(Linking, "")
	default:
		j.tell(Compiling, "")
	}
}

// packageLine says whether a line of go build -v is an import path.
func packageLine(text string) bool {
	return text != "" && !strings.ContainsAny(text, ": \t#")
}

// diagnose turns what go build says into diagnostics.
func (j *job) diagnose(stderr string) diag.List {
	var found diag.List
	var rest []string
	pattern := regexp.MustCompile(`^([^:\s][^:]*\.go):(\d+):(?:(\d+):)? (.*)$`)
	for line := range strings.Lines(stderr) {
		line = strings.TrimRight(line, "\r\n")
		m := pattern.FindStringSubmatch(line)
		switch {
		case m != nil && strings.HasPrefix(j.absolute(m[1]), j.dir):
			rest = append(rest, m[4]) // the author did not write it
		case m != nil:
			found = append(found, j.compileError(m))
		case line != "" && !strings.HasPrefix(line, "# ") && !packageLine(line) && !strings.HasPrefix(line, "go: downloading "):
			rest = append(rest, line)
		}
	}
	if len(found) == 0 {
		found = diag.List{{
			Code: codeBuild, Severity: diag.Error, Pos: diag.Pos{File: filepath.Join(j.ws.Module.Dir, "go.mod")},
			Message: "the program cannot be built: " + strings.Join(rest, "\n"),
			Help:    "check that go.mod requires the version of " + project.BDKModule + " that this command has; `bdk version` prints it",
		}}
	}
	return found.Sort()
}

// absolute returns a path as go build writes it without reference to where it was run.
func (j *job) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(j.ws.Module.Dir, path)
}

func (j *job) compileError(m []string) diag.Diagnostic {
	pos := diag.Pos{File: j.absolute(m[1])}
	pos.Line, _ = strconv.Atoi(m[2]) // digits
	pos.Col, _ = strconv.Atoi(m[3])
	src, _ := os.ReadFile(pos.File) // without a source there is no excerpt
	return diag.Diagnostic{
		Code: codeCompile, Severity: diag.Error, Pos: pos, Message: m[4], Help: "mend the Go code", Excerpt: diag.SourceLine(src, pos.Line),
	}
}
