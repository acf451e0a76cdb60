package harness_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/harness"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

func tree() map[string]string {
	return map[string]string{
		"README.md": "# Title\n", "go.mod": "module x\n", "src/main.go": "package main\n\nfunc main() {}\n", "src/main_test.go": "package main\r\n",
		"src/deep/er/x.go": "package er // Main\n", "src-old/y.go": "package old\n", "pic.png": "\x89PNG\r\n\x1a\n\x00main", ".hidden/z.go": "",
	}
}

func TestListShowsAFolder(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, tree())
	for in, want := range map[string]string{
		`{}`:                    ".hidden/ (1 files)\nREADME.md (8 bytes)\ngo.mod (9 bytes)\npic.png (13 bytes)\nsrc-old/ (1 files)\nsrc/ (3 files)",
		`{"path":"src"}`:        "deep/ (1 files)\nmain.go (29 bytes)\nmain_test.go (14 bytes)",
		`{"path":"./src/"}`:     "deep/ (1 files)\nmain.go (29 bytes)\nmain_test.go (14 bytes)",
		`{"path":"src/deep"}`:   "er/ (1 files)",
		`{"path":"README.md"}`:  "README.md (8 bytes)",
		`{"path":"src-old/./"}`: "",
	} {
		if want == "" {
			b.fails(t, "ls", in, "cannot be used")
			continue
		}
		if diff := cmp.Diff(want, b.answer(t, "ls", in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
	if diff := cmp.Diff(b.answer(t, "ls", `{}`), b.answer(t, "ls", `{"path":"."}`)); diff != "" {
		t.Error(diff)
	}
	if got := setup(t, harness.Options{}, nil).answer(t, "ls", `{}`); got != "(the workspace has no files)" {
		t.Errorf("an empty workspace: %q", got)
	}
}

func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 1500 {
		files[fmt.Sprintf("f%04d", i)] = "x"
	}
	b := setup(t, harness.Options{}, files)
	for _, got := range []string{b.answer(t, "ls", `{}`), b.answer(t, "glob", `{"pattern":"**"}`)} {
		if lines := strings.Split(got, "\n"); len(lines) != 1001 || lines[1000] != "(and 500 more: narrow it down)" {
			t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
		}
	}
	if got := b.answer(t, "grep", `{"pattern":"x"}`); strings.Count(got, "\n") != 100 || !strings.HasSuffix(got, "(there are more: 100 lines are shown; narrow it down)") {
		t.Errorf("grep shows %d lines", strings.Count(got, "\n"))
	}
	if got := b.answer(t, "grep", `{"pattern":"x","maxResults":100000}`); strings.Count(got, "\n") != 500 {
		t.Errorf("grep shows %d lines at most", strings.Count(got, "\n"))
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, tree())
	for _, c := range []struct{ pattern, in, want string }{
		{"*.md", "", "README.md"},
		{"*.go", "", ".hidden/z.go src-old/y.go src/deep/er/x.go src/main.go src/main_test.go"},
		{"**/*.go", "", ".hidden/z.go src-old/y.go src/deep/er/x.go src/main.go src/main_test.go"},
		{"./src/*.go", "", "src/main.go src/main_test.go"},
		{"src/**/*.go", "", "src/deep/er/x.go src/main.go src/main_test.go"},
		{"src/**", "", "src/deep/er/x.go src/main.go src/main_test.go"},
		{"**/er/**", "", "src/deep/er/x.go"},
		{"src**", "", ""},
		{"src*/*", "", "src-old/y.go src/main.go src/main_test.go"},
		{"*.{md,mod}", "", "README.md go.mod"},
		{"{src,src-old}/*.go", "", "src-old/y.go src/main.go src/main_test.go"},
		{"{src/**,*.md}", "", "README.md src/deep/er/x.go src/main.go src/main_test.go"},
		{"src/main{,_test}.go", "", "src/main.go src/main_test.go"},
		{"[!x-z].go", "", ""},
		{"[^x-y].go", "", ".hidden/z.go"},
		{"[x-z].go", "", ".hidden/z.go src-old/y.go src/deep/er/x.go"},
		{"?????_test.go", "", ""},
		{"????_test.go", "", "src/main_test.go"},
		{"*.go", "src", "src/deep/er/x.go src/main.go src/main_test.go"},
		{"deep/**", "src", "src/deep/er/x.go"},
		{"**", "src/deep/", "src/deep/er/x.go"},
		{"*", "go.mod", "go.mod"},
		{`go\.mod`, "", "go.mod"},
		{"goXmod", "", ""},
		{"**", ".", ".hidden/z.go README.md go.mod pic.png src-old/y.go src/deep/er/x.go src/main.go src/main_test.go"},
	} {
		want := strings.ReplaceAll(c.want, " ", "\n")
		if want == "" {
			want = "(no files match)"
		}
		if diff := cmp.Diff(want, b.answer(t, "glob", input(t, map[string]any{"pattern": c.pattern, "path": c.in}))); diff != "" {
			t.Errorf("%s in %q (-want +got):\n%s", c.pattern, c.in, diff)
		}
	}
	for pattern, want := range map[string]string{
		"": "empty", "/etc/*": "absolute", "{a": "not closed", "[a": "not closed", `a\`: `ends in a \`, "[a/b]": "slash", `[\d]`: `has a \`, "[z-a]": "", strings.Repeat("a", 300): "at most 256",
	} {
		b.fails(t, "glob", input(t, map[string]any{"pattern": pattern}), want)
	}
	b.fails(t, "glob", `{"pattern":"*","path":"nowhere"}`, `there is no "nowhere"`)
}

func TestGrep(t *testing.T) {
	t.Parallel()
	files := tree()
	files["accents.txt"] = strings.Repeat("é", 400) + "x" + "thorn"
	files["wide.txt"] = strings.Repeat("a", 1000) + "needle" + strings.Repeat("b", 1000)
	b := setup(t, harness.Options{}, files)
	for _, c := range []struct{ in, want string }{
		{`"pattern":"main"`, "src/main.go:1:package main\nsrc/main.go:3:func main() {}\nsrc/main_test.go:1:package main"},
		{`"pattern":"(?i)main$"`, "src/deep/er/x.go:1:package er // Main\nsrc/main.go:1:package main\nsrc/main_test.go:1:package main"},
		{`"pattern":"main","path":"src/main.go"`, "src/main.go:1:package main\nsrc/main.go:3:func main() {}"},
		{`"pattern":"^package","path":"src","glob":"*_test.go"`, "src/main_test.go:1:package main"},
		{`"pattern":"^package","glob":"src/*.go"`, "src/main.go:1:package main\nsrc/main_test.go:1:package main"},
		{`"pattern":"package","maxResults":1`, "src-old/y.go:1:package old\n(there are more: 1 lines are shown; narrow it down)"},
		{`"pattern":"nothing"`, "(no lines match)"},
		{`"pattern":"thorn"`, "accents.txt:1:…" + strings.Repeat("é", 37) + "xthorn"},
		{`"pattern":"needle"`, "wide.txt:1:…" + strings.Repeat("a", 75) + "needle" + strings.Repeat("b", 219) + "… (781 more bytes)"},
	} {
		if diff := cmp.Diff(c.want, b.answer(t, "grep", "{"+c.in+"}")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
	b.fails(t, "grep", `{"pattern":"a("}`, "backslash")
	b.fails(t, "grep", `{"pattern":""}`, "from 1 to 1024")
	b.fails(t, "grep", `{"pattern":"((a{100}){10}b){1}(c{1000}){1}[^x]{1000}.{1000}\\pL{1000}d{1000}"}`, "repeats too much")
	b.fails(t, "grep", `{"pattern":"x","maxResults":-1}`, "leave it out")
	b.fails(t, "grep", `{"pattern":"x","glob":"["}`, "not closed")
}

func TestGrepNamesFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	b := setupOn(t, harness.Options{}, workspace.Options{}, map[string]string{"big.txt": strings.Repeat("x", 9<<20), "small.txt": "x"})
	if diff := cmp.Diff("small.txt:1:x\n(not looked at, too large: big.txt)", b.answer(t, "grep", `{"pattern":"x"}`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// For patterns that the standard library has too, the answers are the same. No pattern is slow or panics.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.go", "src/*", "[a-c]x", "[^a]b", `\*`, "a?c", "{a,b}", "**/x", "[]a]", "[a-]", "[[]", "{,}", "{{a}", "a{b,**}", "****", "[:alpha:]", "[a&&b]", strings.Repeat("**/", 80)} {
		f.Add(s, "src/a.go")
		f.Add(s, "abc")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if workspace.CheckPath(name) != nil || len(pattern) > 300 || strings.ToValidUTF8(pattern, "") != pattern {
			return
		}
		b := setup(t, harness.Options{}, map[string]string{name: ""})
		out, err := b.call(t.Context(), "glob", input(t, map[string]any{"pattern": pattern}))
		if err != nil || strings.Contains(pattern, "**") || strings.ContainsAny(pattern, "{}!") || strings.HasPrefix(pattern, "./") {
			return
		}
		if !strings.Contains(pattern, "/") {
			name = path.Base(name)
		}
		want, err := path.Match(pattern, name)
		if err != nil {
			return
		}
		if got := out != "(no files match)"; got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}
