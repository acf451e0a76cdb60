package workspace_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/workspace"
	"github.com/bdk-lambda/bdk/shared/workspace/workspacetest"
)

func goodPaths() []string {
	return []string{
		"a", "a.txt", ".env", ".agents/skills/x/SKILL.md", "a b/c d", "..a", "a..b", "a/..b/c", "...a", "README", "src/日本語/ファイル.txt", "Ünïcödé/é.md", "naïve",
		"한국어.txt", "русский/файл", "हिन्दी.txt", "emoji😀.png", "console.log", "nulls/auxiliary.c", "com10", "lpt", "a-b_c+d=e,f@g!h#i$j%k^l&m(n)[o]{p};q'r`s~t",
		"%2e%2e%2fx", "~", "~root/x", "Screenshot 5.04\u202fPM.png", "报告：一.txt", strings.Repeat("a", 255), strings.Repeat("a/", 63) + "x", "CON1/x",
	}
}

func TestPathsThatAreSafeEverywhereAreAccepted(t *testing.T) {
	t.Parallel()
	for _, p := range goodPaths() {
		if err := workspace.CheckPath(p); err != nil {
			t.Error(err)
		}
	}
}

func TestPathTricksAreRefused(t *testing.T) {
	t.Parallel()
	paths := workspacetest.BadPaths()
	if len(paths) < 80 {
		t.Errorf("the corpus has %d cases only", len(paths))
	}
	seen := map[string]bool{}
	for _, p := range paths {
		if seen[p] {
			t.Errorf("%q is there twice", p)
		}
		seen[p] = true
		if err := workspace.CheckPath(p); bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
			t.Errorf("%q: got %v, want invalid_request", p, err)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, p := range append(workspacetest.BadPaths(), goodPaths()...) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if workspace.CheckPath(p) != nil {
			return
		}
		joined := filepath.Join("/base", "dir", filepath.FromSlash(p))
		if joined != "/base/dir/"+p || !filepath.IsLocal(p) || !fs.ValidPath(p) || !utf8.ValidString(p) {
			t.Errorf("%q was accepted, and becomes %q", p, joined)
		}
		if strings.ContainsAny(p, "\x00\n\r\\:") || len(p) > workspace.MaxPath {
			t.Errorf("%q was accepted", p)
		}
	})
}
