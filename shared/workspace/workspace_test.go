package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/workspace"
	"github.com/bdk-lambda/bdk/shared/workspace/workspacetest"
)

// driver counts what is asked of it, and can be told to fail.
type driver struct {
	blob.Driver
	gets, puts atomic.Int64
	fail       atomic.Bool
}

var errStore = errors.New("the store is down")

func (d *driver) Put(ctx context.Context, ref blob.Ref, data []byte) error {
	if d.puts.Add(1); d.fail.Load() {
		return errStore
	}
	return d.Driver.Put(ctx, ref, data)
}

func (d *driver) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	if d.gets.Add(1); d.fail.Load() {
		return nil, errStore
	}
	return d.Driver.Get(ctx, ref)
}

type fixture struct {
	*workspace.Store
	driver *driver
	temp   string
}

func setup(t testing.TB, opts workspace.Options) fixture {
	t.Helper()
	f := fixture{driver: &driver{Driver: memblob.New()}, temp: filepath.Join(t.TempDir(), "temp")}
	opts.TempDir = f.temp
	f.Store = workspace.New(blob.New(f.driver), opts)
	return f
}

func (f fixture) open(t testing.TB, ref string, first map[string]string) *workspace.Workspace {
	t.Helper()
	w, err := f.Open(t.Context(), ref, first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func layer(t testing.TB, files map[string]string) *workspace.Layer {
	t.Helper()
	data := map[string][]byte{}
	for p, s := range files {
		data[p] = []byte(s)
	}
	l, err := workspace.NewLayer(data)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t testing.TB, w *workspace.Workspace, p, s string) {
	t.Helper()
	if err := w.WriteFile(t.Context(), p, []byte(s), 0o644); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, w *workspace.Workspace) (string, bool) {
	t.Helper()
	ref, changed, err := w.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ref, changed
}

func dir(t testing.TB, w *workspace.Workspace) string {
	t.Helper()
	d, err := w.Dir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// content returns all files; those that are executable have a ! at the end of their content.
func content(t testing.TB, w *workspace.Workspace) map[string]string {
	t.Helper()
	files, err := w.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		data, err := w.ReadFile(t.Context(), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(data)) != f.Size {
			t.Errorf("%s has %d bytes, listed with %d", f.Path, len(data), f.Size)
		}
		got[f.Path] = string(data)
		if f.Exec {
			got[f.Path] += "!"
		}
	}
	return got
}

func wantContent(t testing.TB, w *workspace.Workspace, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, content(t, w)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func wantCode(t testing.TB, err error, want bdkerr.Code) {
	t.Helper()
	if got := bdkerr.CodeOf(err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// put writes below a directory, as a program would.
func put(t testing.TB, dir, p, s string, mode fs.FileMode) {
	t.Helper()
	name := filepath.Join(dir, p)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(s), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, dir, p string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, p)); err != nil {
		t.Fatal(err)
	}
}

func TestTurnsWithoutFilesCostNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Seed: layer(t, map[string]string{"s": "s"})})
	for _, ref := range []string{"", string(blob.RefOf([]byte("gone")))} {
		w := f.open(t, ref, map[string]string{"a": "a"})
		if got, changed := commit(t, w); got != ref || changed {
			t.Errorf("Commit: %q, %v", got, changed)
		}
	}
	if f.driver.gets.Load()+f.driver.puts.Load() != 0 {
		t.Error("the store was asked")
	}
	if _, err := os.Stat(f.temp); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the disk was touched")
	}
}

func TestReadingIsNoChange(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Seed: layer(t, map[string]string{"s": "seed", "a": "seed"}), Base: layer(t, map[string]string{"AGENTS.md": "base"})})
	w := f.open(t, "", map[string]string{"a": "first"})
	want := map[string]string{"s": "seed", "a": "first", "AGENTS.md": "base"}
	wantContent(t, w, want)
	dir(t, w)
	wantContent(t, w, want)
	for p, s := range want { // the same content is no change either
		write(t, w, p, s)
	}
	if ref, changed := commit(t, w); ref != "" || changed {
		t.Errorf("Commit: %q, %v", ref, changed)
	}
}

func TestFilesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, inDir := range []bool{false, true} {
		t.Run(fmt.Sprintf("directory=%v", inDir), func(t *testing.T) {
			t.Parallel()
			f := setup(t, workspace.Options{Seed: layer(t, map[string]string{"seed/a": "1", "seed/b": "2"}), Base: layer(t, map[string]string{"AGENTS.md": "base"})})
			w := f.open(t, "", map[string]string{"first": "x"})
			if inDir {
				dir(t, w)
			}
			big := strings.Repeat("\x00\xff\x01", 5<<20)
			write(t, w, "bin/big", big)
			write(t, w, "empty", "")
			if err := w.WriteFile(t.Context(), "run.sh", []byte("#!"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, w, "seed/a", "changed")
			if err := w.Remove(t.Context(), "seed/b"); err != nil {
				t.Fatal(err)
			}
			ref, changed := commit(t, w)
			if !changed || ref == "" {
				t.Errorf("Commit: %q, %v", ref, changed)
			}
			if again, changed := commit(t, w); again != ref || changed {
				t.Errorf("second Commit: %q, %v", again, changed)
			}
			want := map[string]string{"AGENTS.md": "base", "first": "x", "bin/big": big, "empty": "", "run.sh": "#!!", "seed/a": "changed"}
			w = f.open(t, ref, map[string]string{"ignored": ""})
			wantContent(t, w, want)
			d := dir(t, w)
			wantContent(t, w, want)
			if got, err := os.ReadFile(filepath.Join(d, "bin/big")); err != nil || string(got) != big {
				t.Errorf("the big file in the directory: %d bytes, %v", len(got), err)
			}
			if again, changed := commit(t, w); again != ref || changed {
				t.Errorf("Commit of the unchanged: %q, %v", again, changed)
			}
		})
	}
}

func TestSameFilesHaveTheSameReference(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	a, b := f.open(t, "", nil), f.open(t, "", map[string]string{"x": "1"})
	write(t, a, "y", "2")
	write(t, a, "x", "0")
	write(t, a, "x", "1")
	put(t, dir(t, b), "y", "2", 0o600)
	refA, _ := commit(t, a)
	refB, _ := commit(t, b)
	if refA != refB {
		t.Errorf("%s and %s", refA, refB)
	}
	write(t, a, "x", "3")
	write(t, a, "x", "1")
	if ref, changed := commit(t, a); ref != refA || changed {
		t.Errorf("there and back again: %q, %v", ref, changed)
	}
}

func TestWhatProgramsChangeInTheDirectoryIsKept(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Base: layer(t, map[string]string{"AGENTS.md": "base", "tool": "base", "keep": "base"})})
	w := f.open(t, "", map[string]string{"same": "1", "edited": "1", "gone": "1", "mode": "1", "backdated": "1", "folder/x": "1", "case/a": "1"})
	d := dir(t, w)
	if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info.Mode(), err)
	}
	put(t, d, "edited", "2", 0o600) // as long as before, at once
	put(t, d, "new/deep/file", "3", 0o644)
	put(t, d, "mode", "1", 0o755)
	put(t, d, "backdated", "2", 0o600)
	if info, err := os.Stat(filepath.Join(d, "same")); err != nil || os.Chtimes(filepath.Join(d, "backdated"), time.Time{}, info.ModTime()) != nil {
		t.Fatal(err)
	}
	put(t, d, "AGENTS.md", "mine", 0o644)
	put(t, d, "unreadable", "4", 0)
	remove(t, d, "gone")
	remove(t, d, "folder")
	remove(t, d, "tool") // the agent's: no effect
	put(t, d, "folder", "now a file", 0o644)
	if err := os.Mkdir(filepath.Join(d, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"same": "1", "edited": "2", "backdated": "2", "new/deep/file": "3", "mode": "1!", "AGENTS.md": "mine", "unreadable": "4", "folder": "now a file", "tool": "base", "keep": "base", "case/a": "1",
	}
	wantContent(t, w, want) // before the commit, too
	if _, err := w.ReadFile(t.Context(), "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed: %v", err)
	}
	ref, _ := commit(t, w)
	wantContent(t, w, want)
	wantContent(t, f.open(t, ref, nil), want)
	put(t, d, "edited", "5", 0o600)
	want["edited"] = "5"
	ref, _ = commit(t, w)
	wantContent(t, f.open(t, ref, nil), want)
	if again := dir(t, w); again != d {
		t.Errorf("another directory: %s", again)
	}
}

func TestChangesOfTheSameSizeAndTimeAreSeen(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	w := f.open(t, "", nil)
	name := filepath.Join(dir(t, w), "a")
	for i := range 300 {
		if err := os.WriteFile(name, fmt.Appendf(nil, "%03d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, changed := commit(t, w); !changed {
			t.Errorf("change %d was not seen", i)
		}
	}
}

func TestCallersOwnTheirData(t *testing.T) {
	t.Parallel()
	w := setup(t, workspace.Options{Base: layer(t, map[string]string{"base": "1"})}).open(t, "", nil)
	data := []byte("1")
	if err := w.WriteFile(t.Context(), "own", data, 0); err != nil {
		t.Fatal(err)
	}
	data[0] = 'x'
	for _, p := range []string{"base", "own"} {
		data, err := w.ReadFile(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		data[0] = 'x'
	}
	wantContent(t, w, map[string]string{"base": "1", "own": "1"})
}

func TestFilesOfTheAgentShowAgainWhenTheSessionsAreGone(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Base: layer(t, map[string]string{"AGENTS.md": "base"})})
	w := f.open(t, "", map[string]string{"AGENTS.md": "mine"})
	remove(t, dir(t, w), "AGENTS.md")
	want := map[string]string{"AGENTS.md": "base"}
	wantContent(t, w, want)
	ref, changed := commit(t, w)
	if !changed {
		t.Error("nothing has changed")
	}
	wantContent(t, w, want)
	wantContent(t, f.open(t, ref, nil), want)
}

func TestWhatIsOverALimitMayShrink(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	w := f.open(t, "", nil)
	for _, p := range []string{"a", "b", "c", "d"} {
		write(t, w, p, "0123456789")
	}
	ref, _ := commit(t, w)
	small := fixture{temp: f.temp, Store: workspace.New(blob.New(f.driver), workspace.Options{Limits: workspace.Limits{Files: 2, Total: 15}, TempDir: f.temp})}
	for _, inDir := range []bool{false, true} {
		w := small.open(t, ref, nil)
		if inDir {
			remove(t, dir(t, w), "a")
		} else if err := w.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		write(t, w, "b", "012345678")
		ref, _ := commit(t, w)
		wantContent(t, small.open(t, ref, nil), map[string]string{"b": "012345678", "c": "0123456789", "d": "0123456789"})
		err := w.WriteFile(t.Context(), "b", []byte("0123456789"), 0)
		if err == nil {
			_, _, err = w.Commit(t.Context())
		}
		wantCode(t, err, bdkerr.PayloadTooLarge)
	}
}

func TestHugeDirectoriesAreNotLookedThrough(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Limits: workspace.Limits{Files: 2}})
	w := f.open(t, "", map[string]string{"a": "1"})
	d := dir(t, w)
	for i := range 59 { // folders are no files, but cost as well
		if err := os.Mkdir(filepath.Join(d, fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, w)
	put(t, d, "59/x", "", 0o600)
	_, _, err := w.Commit(t.Context())
	wantCode(t, err, bdkerr.PayloadTooLarge)
	_, err = w.Files(t.Context())
	wantCode(t, err, bdkerr.PayloadTooLarge)
}

func TestWritesShowInTheDirectory(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Base: layer(t, map[string]string{"AGENTS.md": "base"})})
	w := f.open(t, "", map[string]string{"a": "1", "b": "1"})
	d := dir(t, w)
	put(t, d, "a", "program", 0o644)
	write(t, w, "a", "tool")
	write(t, w, "c/d", "tool")
	write(t, w, "AGENTS.md", "mine")
	if err := w.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{"a": "tool", "c/d": "tool", "AGENTS.md": "mine"} {
		if got, err := os.ReadFile(filepath.Join(d, p)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(d, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("b: %v", err)
	}
	put(t, d, "c/d", "later", 0o644)
	ref, _ := commit(t, w)
	wantContent(t, f.open(t, ref, nil), map[string]string{"a": "tool", "c/d": "later", "AGENTS.md": "mine"})
	if err := w.Remove(t.Context(), "AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	wantContent(t, w, map[string]string{"a": "tool", "c/d": "later", "AGENTS.md": "base"})
	wantCode(t, w.Remove(t.Context(), "AGENTS.md"), bdkerr.InvalidRequest)
	ref, _ = commit(t, w)
	w = f.open(t, ref, nil)
	wantCode(t, w.Remove(t.Context(), "AGENTS.md"), bdkerr.InvalidRequest) // nothing of the session's own is left there
	wantContent(t, w, map[string]string{"a": "tool", "c/d": "later", "AGENTS.md": "base"})
}

func TestFilesOfTheAgentAreReadOnly(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Base: layer(t, map[string]string{"AGENTS.md": "base", ".agents/x": "base"})})
	w := f.open(t, "", nil)
	wantCode(t, w.Remove(t.Context(), "AGENTS.md"), bdkerr.InvalidRequest)
	wantCode(t, w.WriteFile(t.Context(), "agents.md", nil, 0), bdkerr.InvalidRequest)
	wantCode(t, w.WriteFile(t.Context(), ".agents", nil, 0), bdkerr.InvalidRequest)
	wantCode(t, w.WriteFile(t.Context(), "AGENTS.md/x", nil, 0), bdkerr.InvalidRequest)
	write(t, w, "AGENTS.md", "mine")
	ref, _ := commit(t, w)

	// the next deployment has other files
	next := workspace.New(blob.New(f.driver), workspace.Options{Base: layer(t, map[string]string{"AGENTS.md/now/a/folder": "", "new": "new"}), TempDir: f.temp})
	w, err := next.Open(t.Context(), ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	wantContent(t, w, map[string]string{"AGENTS.md": "mine", "new": "new"})
	dir(t, w)
	wantContent(t, w, map[string]string{"AGENTS.md": "mine", "new": "new"})
	if err := w.Remove(t.Context(), "AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(t.Context(), "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing what is not there: %v", err)
	}
}

func TestEveryEntryPointRefusesPathTricks(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	plain, inDir := f.open(t, "", nil), f.open(t, "", nil)
	dir(t, inDir)
	for _, p := range workspacetest.BadPaths() {
		for _, w := range []*workspace.Workspace{plain, inDir} {
			_, err := w.ReadFile(t.Context(), p)
			wantCode(t, err, bdkerr.InvalidRequest)
			wantCode(t, w.WriteFile(t.Context(), p, nil, 0), bdkerr.InvalidRequest)
			wantCode(t, w.Remove(t.Context(), p), bdkerr.InvalidRequest)
		}
		_, err := f.Open(t.Context(), "", map[string]string{p: ""})
		wantCode(t, err, bdkerr.InvalidRequest)
		_, err = workspace.NewLayer(map[string][]byte{p: nil})
		wantCode(t, err, bdkerr.InvalidRequest)
		_, err = (*workspace.Layer)(nil).With(p, nil, true)
		wantCode(t, err, bdkerr.InvalidRequest)
	}
}

// What a client gives has to fit beside what the agent gives, or its session would begin with files that nobody can open.
func TestFirstFilesFitBesideTheAgents(t *testing.T) {
	t.Parallel()
	layer := func(p string) *workspace.Layer {
		l, err := workspace.NewLayer(map[string][]byte{p: []byte("agent")})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	f := setup(t, workspace.Options{Base: layer("lib/a"), Seed: layer("docs/b")})
	for _, p := range []string{".agents", ".agents/x", ".Agents/skills/x/SKILL.md"} {
		_, err := f.Open(t.Context(), "", map[string]string{p: ""})
		wantCode(t, err, bdkerr.InvalidRequest)
	}
	for _, p := range []string{"docs", "Docs/c", "docs/B", "docs/b/c", "lib", "LIB/c", "lib/a/b"} {
		_, err := f.open(t, "", map[string]string{p: ""}).Files(t.Context())
		wantCode(t, err, bdkerr.InvalidRequest)
	}
	files, err := f.open(t, "", map[string]string{"docs/b": "mine", "lib/c": "", ".agentsx": ""}).Files(t.Context())
	if err != nil || len(files) != 4 {
		t.Errorf("%v, %v; want lib/a and the three that were given", files, err)
	}
}

func TestPathsThatClashAreRefused(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"a", "A"}, {"a", "a/b"}, {"a/b", "a"}, {"a/b", "A/c"}, {"straße", "STRAẞE"}, {"É", "é"}, {"a/b/c", "a/B"}, {"σ", "ς"}, {"a/b", "A"}} {
		f := setup(t, workspace.Options{})
		w := f.open(t, "", map[string]string{pair[0]: ""})
		for range 2 {
			wantCode(t, w.WriteFile(t.Context(), pair[1], nil, 0), bdkerr.InvalidRequest)
			dir(t, w)
		}
		if err := w.Remove(t.Context(), pair[0]); err != nil {
			t.Fatal(err)
		}
		remove(t, dir(t, w), "a") // an empty folder may be left there
		write(t, w, pair[1], "free now")
		_, err := workspace.NewLayer(map[string][]byte{pair[0]: nil, pair[1]: nil})
		wantCode(t, err, bdkerr.InvalidRequest)
		_, err = f.open(t, "", map[string]string{pair[0]: "", pair[1]: ""}).Files(t.Context())
		wantCode(t, err, bdkerr.InvalidRequest)
	}
}

func TestLinksInTheDirectoryLeadNowhere(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := setup(t, workspace.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	outside := t.TempDir()
	put(t, outside, "secret", "secret", 0o600)
	w := f.open(t, "", map[string]string{"a": "1", "sub/x": "1", "ours": "1"})
	d := dir(t, w)
	link := func(target, p string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(d, p)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(outside, "secret"), "abs")
	link("../../../../../../etc/passwd", "rel")
	link("b2", "b1") // a chain
	link("b3", "b2")
	link(outside, "b3")
	link("loop2", "loop1")
	link("loop1", "loop2")
	link(".", "self")
	link("a", "inside")
	link("/proc/self/cwd", "proc")
	remove(t, d, "sub")
	link(outside, "sub")
	for from, to := range map[string]string{filepath.Join(outside, "secret"): "hard", filepath.Join(d, "a"): "a2"} {
		if err := os.Link(from, filepath.Join(d, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(d, "ours"), filepath.Join(outside, "theirs")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"abs", "rel", "b1", "b1/secret", "b3/secret", "loop1", "self/a", "inside", "sub/secret", "sub/x", "proc/x"} {
		if data, err := w.ReadFile(t.Context(), p); err == nil {
			t.Errorf("ReadFile %s: %q", p, data)
		}
	}
	for _, p := range []string{"b1/new", "b3/new", "sub/new", "self/new", "loop1/x"} {
		if w.WriteFile(t.Context(), p, nil, 0) == nil || w.Remove(t.Context(), p) == nil {
			t.Errorf("%s was written or removed", p)
		}
	}
	if w.Remove(t.Context(), "sub/secret") == nil {
		t.Error("sub/secret was removed")
	}
	write(t, w, "abs", "mine") // in the place of the link
	write(t, w, "hard", "mine")
	ref, _ := commit(t, w)
	wantContent(t, f.open(t, ref, nil), map[string]string{"a": "1", "a2": "1", "ours": "1", "abs": "mine", "hard": "mine"})
	if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != "secret" {
		t.Errorf("outside: %q, %v", got, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 2 {
		t.Errorf("outside: %v", entries)
	}
	notes := strings.Join(w.Notes(), "\n")
	for _, p := range []string{"b1", "loop1", "sub", "inside", "proc"} {
		if line := fmt.Sprintf("%q: it is a symbolic link", p); !strings.Contains(notes, line) || !strings.Contains(log.String(), p) {
			t.Errorf("no note, or no warning, of %s in:\n%s", p, notes)
		}
	}
}

func TestWhatCannotBeKeptIsLeftOutWithANote(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Base: layer(t, map[string]string{"AGENTS.md": ""})})
	outside := t.TempDir()
	put(t, outside, "secret", "secret", 0o600)
	w := f.open(t, "", map[string]string{"b": "1"})
	d := dir(t, w)
	if err := os.Link(filepath.Join(outside, "secret"), filepath.Join(d, "hard")); err != nil {
		t.Fatal(err)
	}
	put(t, d, "nul", "", 0o600)
	put(t, d, "a:b", "", 0o600)
	put(t, d, "\xff", "", 0o600)
	put(t, d, "bad\u202e/x", "", 0o600)
	put(t, d, "b", "2", 0o600)
	put(t, d, "B", "", 0o600)
	put(t, d, "c", "", 0o600)
	put(t, d, "C", "", 0o600)
	put(t, d, "agents.md", "", 0o600)
	put(t, d, strings.Repeat("d/", 70)+"deep", "", 0o600)
	if err := syscall.Mkfifo(filepath.Join(d, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	ref, _ := commit(t, w)
	wantContent(t, f.open(t, ref, nil), map[string]string{"AGENTS.md": "", "b": "2", "C": ""})
	if got := len(w.Notes()); got != 10 {
		t.Errorf("%d notes:\n%s", got, strings.Join(w.Notes(), "\n"))
	}
	for i := range 40 {
		put(t, d, fmt.Sprintf("x%d:", i), "", 0o600)
	}
	commit(t, w)
	if notes := w.Notes(); len(notes) != 21 || notes[20] != "and 30 more" {
		t.Errorf("%d notes: %q", len(notes), notes)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	limits := workspace.Limits{Files: 3, FileSize: 100, Total: 150}
	tests := map[string]struct {
		files map[string]int // sizes of what is added to a, of 10 bytes
		want  []string
	}{
		"within":      {files: map[string]int{"b": 100, "c": 40}},
		"a file":      {files: map[string]int{"b": 101}, want: []string{`"b"`, "101", "100"}},
		"all":         {files: map[string]int{"b": 100, "x/c": 41}, want: []string{"151", "150", `"b" (100 bytes), "x/c" (41 bytes)`}},
		"how many":    {files: map[string]int{"m/b": 1, "m/c": 1, "d": 1}, want: []string{"4 files", "3", `"m/" (2 files)`}},
		"after edits": {files: map[string]int{"a": 100, "b": 51}, want: []string{"151"}},
	}
	for name, tt := range tests {
		for _, inDir := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, directory=%v", name, inDir), func(t *testing.T) {
				t.Parallel()
				f := setup(t, workspace.Options{Limits: limits, Base: layer(t, map[string]string{"AGENTS.md": strings.Repeat("x", 1000)})})
				w := f.open(t, "", map[string]string{"a": "0123456789"})
				var err error
				if inDir {
					for p, size := range tt.files {
						put(t, dir(t, w), p, strings.Repeat("x", size), 0o600)
					}
				}
				for _, p := range slices.Sorted(maps.Keys(tt.files)) {
					if err == nil && !inDir {
						err = w.WriteFile(t.Context(), p, bytes.Repeat([]byte("x"), tt.files[p]), 0)
					}
				}
				if err == nil {
					_, _, err = w.Commit(t.Context())
				}
				if tt.want == nil {
					wantCode(t, err, "")
					return
				}
				wantCode(t, err, bdkerr.PayloadTooLarge)
				for _, s := range tt.want {
					if err != nil && !strings.Contains(err.Error(), s) {
						t.Errorf("%v does not say %s", err, s)
					}
				}
				if inDir { // made good, it is saved
					for p := range tt.files {
						remove(t, dir(t, w), p)
					}
					put(t, dir(t, w), "fine", "", 0o600)
					commit(t, w)
				}
			})
		}
	}
	f := setup(t, workspace.Options{Limits: limits})
	for _, first := range []map[string]string{{"a": strings.Repeat("x", 101)}, {"a": "", "b": "", "c": "", "d": ""}, {"a": strings.Repeat("x", 80), "b": strings.Repeat("x", 80)}} {
		_, err := f.open(t, "", first).Files(t.Context())
		wantCode(t, err, bdkerr.PayloadTooLarge)
	}
}

func TestManifestsThatCannotBeHadAreErrorsOnFirstUse(t *testing.T) {
	t.Parallel()
	ref := string(blob.RefOf([]byte("x")))
	file := func(p string) string { return `{"path":"` + p + `","blob":"` + ref + `","size":1}` }
	f := setup(t, workspace.Options{})
	for _, s := range []string{
		"", "{", "null", "[]", "{}", `{"version":2,"files":[]}`, `{"version":1,"files":null}`, `{"version":1,"files":[]} `, `{"version":1,"files":[],"more":1}`,
		`{"version":1,"files":[` + file("../x") + `]}`, `{"version":1,"files":[` + file("b") + `,` + file("a") + `]}`, `{"version":1,"files":[` + file("a") + `,` + file("a") + `]}`,
		`{"version":1,"files":[` + file("A") + `,` + file("a") + `]}`, `{"version":1,"files":[` + file("a") + `,` + file("a/b") + `]}`,
		`{"version":1,"files":[{"path":"a","blob":"x","size":1}]}`, `{"version":1,"files":[{"path":"a","blob":"` + ref + `","size":-1}]}`,
	} {
		bad, err := blob.New(f.driver).Put(t.Context(), []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		w := f.open(t, string(bad), nil)
		_, err = w.ReadFile(t.Context(), "a")
		wantCode(t, err, bdkerr.NoWorkspace)
		_, err = w.Dir(t.Context())
		wantCode(t, err, bdkerr.NoWorkspace)
	}
	_, err := f.open(t, ref, nil).Files(t.Context())
	wantCode(t, err, bdkerr.NoWorkspace)
	_, err = f.Open(t.Context(), "nonsense", nil)
	wantCode(t, err, bdkerr.InvalidRequest)
}

func TestMissingBlobsAreNoMissingFiles(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	w := f.open(t, "", map[string]string{"a": "1", "b": "2"})
	write(t, w, "c", "3")
	ref, _ := commit(t, w)
	if err := f.driver.Delete(t.Context(), blob.RefOf([]byte("1"))); err != nil {
		t.Fatal(err)
	}
	w = f.open(t, ref, nil)
	_, err := w.ReadFile(t.Context(), "a")
	wantCode(t, err, bdkerr.NoWorkspace)
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("it looks like a file that is not there")
	}
	_, err = w.Dir(t.Context())
	wantCode(t, err, bdkerr.NoWorkspace)
	if entries, _ := os.ReadDir(f.temp); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
	if data, err := w.ReadFile(t.Context(), "b"); err != nil || string(data) != "2" {
		t.Errorf("the other file: %q, %v", data, err)
	}
}

func TestNothingIsLostWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	for _, inDir := range []bool{false, true} {
		f := setup(t, workspace.Options{})
		w := f.open(t, "", map[string]string{"a": "1"})
		if inDir {
			put(t, dir(t, w), "p", "program", 0o700)
		} else {
			write(t, w, "p", "program")
		}
		f.driver.fail.Store(true)
		if _, changed, err := w.Commit(t.Context()); !errors.Is(err, errStore) || changed {
			t.Errorf("Commit: %v, %v", changed, err)
		}
		if !inDir {
			if err := w.WriteFile(t.Context(), "huge", make([]byte, 33<<20), 0); !errors.Is(err, errStore) {
				t.Errorf("WriteFile: %v", err)
			}
		}
		f.driver.fail.Store(false)
		ref, changed := commit(t, w)
		if !changed {
			t.Error("nothing was saved")
		}
		got := content(t, f.open(t, ref, nil))
		if diff := cmp.Diff([]string{"a", "p"}, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		f.driver.fail.Store(true)
		w = f.open(t, ref, nil)
		if _, err := w.Files(t.Context()); !errors.Is(err, errStore) {
			t.Errorf("Files: %v", err)
		}
		f.driver.fail.Store(false)
		if _, err := w.Files(t.Context()); err != nil {
			t.Errorf("Files afterwards: %v", err)
		}
	}
}

func TestMuchDataDoesNotWaitInMemory(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	w := f.open(t, "", nil)
	data := make([]byte, 20<<20)
	if err := w.WriteFile(t.Context(), "a", data, 0); err != nil || f.driver.puts.Load() != 0 {
		t.Errorf("%d blobs, %v", f.driver.puts.Load(), err)
	}
	data[0] = 1
	if err := w.WriteFile(t.Context(), "b", data, 0); err != nil || f.driver.puts.Load() != 1 {
		t.Errorf("%d blobs, %v", f.driver.puts.Load(), err)
	}
	ref, _ := commit(t, w)
	got := content(t, f.open(t, ref, nil))
	if len(got["a"]) != 20<<20 || got["a"][0] != 0 || got["b"] != string(data) {
		t.Error("other contents")
	}
}

func TestParallelCallsLoseNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{Base: layer(t, map[string]string{"AGENTS.md": "base"})})
	w := f.open(t, "", map[string]string{"shared": "0"})
	var wg sync.WaitGroup
	want := map[string]string{"AGENTS.md": "base"}
	for i := range 16 {
		p := fmt.Sprintf("d%d/f", i)
		want[p] = p
		wg.Go(func() {
			var err error
			if i%4 == 0 {
				var d string
				if d, err = w.Dir(t.Context()); err == nil {
					err = os.MkdirAll(filepath.Join(d, filepath.Dir(p)), 0o700)
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(d, p), []byte(p), 0o600)
				}
			} else {
				err = w.WriteFile(t.Context(), p, []byte(p), 0)
			}
			_, readErr := w.ReadFile(t.Context(), p)
			sharedErr := w.WriteFile(t.Context(), "shared", []byte(p), 0)
			_, filesErr := w.Files(t.Context())
			_, _, commitErr := w.Commit(t.Context())
			if err := errors.Join(err, readErr, sharedErr, filesErr, commitErr); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ref, _ := commit(t, w)
	got := content(t, f.open(t, ref, nil))
	if s := got["shared"]; want[s] != s || s == "" {
		t.Errorf("shared is %q", s)
	}
	delete(got, "shared")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesThatAreReplacedWhileTheyAreCollectedStay(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	w := f.open(t, "", nil)
	write(t, w, "a", "1")
	d, aside := dir(t, w), t.TempDir()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			tmp := filepath.Join(aside, "a")
			err := errors.Join(os.WriteFile(tmp, []byte(fmt.Sprint(i%7)), 0o600), os.Rename(tmp, filepath.Join(d, "a")))
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		ref, _ := commit(t, w)
		if files := content(t, f.open(t, ref, nil)); len(files) != 1 {
			t.Errorf("got %v", files)
		}
	}
	close(done)
	wg.Wait()
}

func TestDirectoriesOfDeadProcessesAreNotReused(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	dead := f.open(t, "", map[string]string{"a": "1"})
	write(t, dead, "b", "2")
	ref, _ := commit(t, dead)
	left := dir(t, dead)
	put(t, left, "a", "half written", 0o600)
	w := f.open(t, ref, nil)
	if d := dir(t, w); d == left {
		t.Error("the directory is the same")
	}
	wantContent(t, w, map[string]string{"a": "1", "b": "2"})
}

func TestCloseRemovesTheDirectory(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	w := f.open(t, "", map[string]string{"a/b": "1"})
	d := dir(t, w)
	if err := os.Chmod(filepath.Join(d, "a"), 0o500); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(f.temp); len(entries) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	_, dirErr := w.Dir(t.Context())
	_, _, commitErr := w.Commit(t.Context())
	_, readErr := w.ReadFile(t.Context(), "a/b")
	if dirErr == nil || commitErr == nil || readErr == nil {
		t.Errorf("after Close: %v, %v, %v", dirErr, commitErr, readErr)
	}
}

func TestCancelledCallsSaySo(t *testing.T) {
	t.Parallel()
	f := setup(t, workspace.Options{})
	w := f.open(t, "", map[string]string{"a": "1"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Dir(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Dir: %v", err)
	}
	dir(t, w)
	if _, _, err := w.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	ref := string(blob.RefOf(nil))
	for _, s := range []string{
		"", "{}", `{"version":1,"files":[]}`, `{"version":1,"files":[{"path":"a","blob":"` + ref + `","size":0,"exec":true}]}`,
		`{"version":1,"files":[{"path":"../a","blob":"` + ref + `","size":0}]}`, `{"version":1,"files":[{"path":"a","blob":"` + ref + `","size":0},{"path":"a/b","blob":"` + ref + `","size":0}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		blobs := blob.New(memblob.New())
		ref, err := blobs.Put(t.Context(), data)
		if err != nil {
			t.Skip(err)
		}
		w, err := workspace.New(blobs, workspace.Options{}).Open(t.Context(), string(ref), nil)
		if err != nil {
			t.Fatal(err)
		}
		files, err := w.Files(t.Context())
		if err != nil {
			wantCode(t, err, bdkerr.NoWorkspace)
			return
		}
		for i, file := range files {
			if err := workspace.CheckPath(file.Path); err != nil || file.Size < 0 || i > 0 && files[i-1].Path >= file.Path {
				t.Errorf("file %+v: %v", file, err)
			}
		}
		// Another change and its opposite lead back to the same bytes.
		if err := w.WriteFile(t.Context(), "zz-new", nil, 0); err != nil {
			return
		}
		if err := w.Remove(t.Context(), "zz-new"); err != nil {
			t.Fatal(err)
		}
		if again, changed, err := w.Commit(t.Context()); again != string(ref) || changed || err != nil {
			t.Errorf("Commit: %s, %v, %v", again, changed, err)
		}
	})
}
