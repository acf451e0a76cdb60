package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

func TestLayersOfFolders(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	put(t, folder, "SKILL.md", "skill", 0o644)
	put(t, folder, "scripts/run", "#!", 0o755)
	skill, err := workspace.LayerOf(folder, ".agents/skills/x")
	if err != nil {
		t.Fatal(err)
	}
	base, err := workspace.Merge(nil, layer(t, map[string]string{"AGENTS.md": "old", "tool": "old"}), skill, layer(t, map[string]string{"AGENTS.md": "new"}))
	if err != nil {
		t.Fatal(err)
	}
	with, err := base.With("tool", []byte("script"), true)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"AGENTS.md": "new", "tool": "script!", ".agents/skills/x/SKILL.md": "skill", ".agents/skills/x/scripts/run": "#!!"}
	f := setup(t, workspace.Options{Base: with})
	w := f.open(t, "", nil)
	wantContent(t, w, want)
	dir(t, w)
	wantContent(t, w, want)
	want["tool"] = "old"
	wantContent(t, setup(t, workspace.Options{Base: base}).open(t, "", nil), want)

	// As a seed they are the session's own, and saved with the first change.
	f = setup(t, workspace.Options{Seed: with})
	w = f.open(t, "", nil)
	write(t, w, "tool", "mine")
	ref, _ := commit(t, w)
	remove(t, folder, "SKILL.md")
	want["tool"] = "mine"
	wantContent(t, f.open(t, ref, nil), want)

	_, err = f.open(t, "", nil).ReadFile(t.Context(), ".agents/skills/x/SKILL.md")
	wantCode(t, err, bdkerr.NoWorkspace)
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("a fault of the deployment looks like a file that is not there")
	}
}

func TestFoldersWithLinksAreNoLayers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	put(t, folder, "sub/a", "", 0o644)
	if err := os.Symlink("a", filepath.Join(folder, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	_, err := workspace.LayerOf(folder, "")
	wantCode(t, err, bdkerr.InvalidRequest)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "sub", "link")) {
		t.Errorf("the error does not name it: %v", err)
	}
	remove(t, folder, "sub/link")
	put(t, folder, "sub/A", "", 0o644)
	_, err = workspace.LayerOf(folder, "")
	wantCode(t, err, bdkerr.InvalidRequest)
	_, err = workspace.LayerOf(filepath.Join(folder, "missing"), "")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	remove(t, folder, "sub/A")
	_, err = workspace.LayerOf(folder, "../out")
	wantCode(t, err, bdkerr.InvalidRequest)
	if err := os.Truncate(filepath.Join(folder, "sub", "a"), 65<<20); err != nil {
		t.Fatal(err)
	}
	_, err = workspace.LayerOf(folder, "")
	wantCode(t, err, bdkerr.InvalidRequest)
}
