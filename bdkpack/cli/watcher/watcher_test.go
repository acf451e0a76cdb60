package watcher_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/cli/watcher"
	"github.com/bdk-lambda/bdk/shared/clock"
)

func watch(t *testing.T) (*watcher.Watcher, string) {
	t.Helper()
	w, err := watcher.New(clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	dir := t.TempDir()
	for _, name := range []string{"bot", "beside"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	set(t, w, filepath.Join(dir, "bot"), filepath.Join(dir, "missing"), filepath.Join(dir, "beside"))
	return w, dir
}

// set watches folders, in which temporary files do not matter.
func set(t *testing.T, w *watcher.Watcher, dirs ...string) (added bool) {
	t.Helper()
	added, err := w.Set(dirs, func(path string) bool { return filepath.Ext(path) != ".tmp" })
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func write(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// wait returns the changes, relative to dir.
func wait(t *testing.T, w *watcher.Watcher, dir string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	names, err := w.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i], _ = filepath.Rel(dir, name)
	}
	return names
}

func TestChangesThatMatterAreToldTogether(t *testing.T) {
	t.Parallel()
	w, dir := watch(t)
	bot, beside := filepath.Join(dir, "bot"), filepath.Join(dir, "beside")
	write(t,
		filepath.Join(bot, "agent.go"), filepath.Join(bot, "instructions.md"), filepath.Join(beside, "go.mod"),
		filepath.Join(bot, "agent.tmp"), // does not
	)
	if err := os.Chtimes(filepath.Join(bot, "agent.tmp"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	want := []string{"beside/go.mod", "bot/agent.go", "bot/instructions.md"}
	if diff := cmp.Diff(want, wait(t, w, dir)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if err := os.Rename(filepath.Join(bot, "agent.go"), filepath.Join(bot, "config.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(bot, "instructions.md")); err != nil {
		t.Fatal(err)
	}
	want = []string{"bot/agent.go", "bot/config.go", "bot/instructions.md"}
	if diff := cmp.Diff(want, wait(t, w, dir)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if err := os.Chmod(filepath.Join(bot, "config.go"), 0o700); err != nil { // whether a script may be run
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bot/config.go"}, wait(t, w, dir)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestSetReplacesWhatIsWatched(t *testing.T) {
	t.Parallel()
	w, dir := watch(t)
	bot, tools := filepath.Join(dir, "bot"), filepath.Join(dir, "bot", "tools")
	if err := os.Mkdir(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bot/tools"}, wait(t, w, dir)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if !set(t, w, bot, tools) {
		t.Error("Set did not say that a folder was added")
	}
	if set(t, w, tools) {
		t.Error("Set said that a folder was added, but one was removed")
	}
	write(t, filepath.Join(bot, "agent.go"), filepath.Join(dir, "beside", "go.mod"), filepath.Join(tools, "a.go"))
	if diff := cmp.Diff([]string{"bot/tools/a.go"}, wait(t, w, dir)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w, _ := watch(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
