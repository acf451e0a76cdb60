package diag_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

func mistakes() diag.List {
	return diag.List{
		{Code: "BDK900", Severity: diag.Warning, Message: "no place"},
		{Code: "BDK901", Pos: diag.Pos{File: "/a/b.go", Line: 7, Col: 4}, Message: "later", Help: "first\nsecond", Excerpt: "\té := 1"},
		{Code: "BDK902", Severity: diag.Error, Pos: diag.Pos{File: "/a/b.go", Line: 2, Col: 1}, Message: "sooner", Excerpt: "x"},
		{Code: "BDK903", Severity: diag.Error, Pos: diag.Pos{File: "/a/b.go", Line: 2, Col: 1}, Message: "same place", Excerpt: "x"},
		{Code: "BDK904", Severity: diag.Warning, Pos: diag.Pos{File: "/z.md", Line: 4}, Message: "whole line", Excerpt: "bad \x1b[31m"},
		{Code: "BDK902", Severity: diag.Error, Pos: diag.Pos{File: "/a/b.go", Line: 2, Col: 1}, Message: "sooner", Excerpt: "x"},
	}
}

func TestListIsShownInOrderOfPlacesEachOnce(t *testing.T) {
	t.Parallel()
	want := `warning[BDK900]: no place

error[BDK902]: sooner
  --> b.go:2:1
    2 | x
      | ^

error[BDK903]: same place
  --> b.go:2:1
    2 | x
      | ^

error[BDK901]: later
  --> b.go:7:4
    7 | 	é := 1
      | 	 ^
  help: first
        second

warning[BDK904]: whole line
  --> /z.md:4
    4 | bad ` + "\uFFFD" + `[31m
`
	got := mistakes().Sort().Relative("/a").String()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rendered (-want +got):\n%s", diff)
	}
}

func TestColoursChangeNothingElse(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := mistakes().Render(&b, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\x1b[1;31merror[BDK901]\x1b[0m") {
		t.Errorf("an error is not red: %q", b.String())
	}
	plain := b.String()
	for _, code := range []string{"\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[0m"} {
		plain = strings.ReplaceAll(plain, code, "")
	}
	if diff := cmp.Diff(mistakes().String(), plain); diff != "" {
		t.Errorf("without colours (-want +got):\n%s", diff)
	}
}

func TestJSONHasTheDocumentedShape(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list diag.List
		want string
	}{
		"none": {nil, `[]`},
		"full": {mistakes()[1:2], `[{"code":"BDK901","severity":"error","file":"/a/b.go","line":7,"col":4,"message":"later","help":"first\nsecond","excerpt":"\té := 1"}]`},
		"bare": {mistakes()[:1], `[{"code":"BDK900","severity":"warning","message":"no place"}]`},
	} {
		got, err := json.Marshal(c.list)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s and error %v, want %s", name, got, err, c.want)
		}
		var back diag.List
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != c.want {
			t.Errorf("%s: after a round trip got %s and error %v", name, again, err)
		}
	}
}

func TestOnlyWarningsLetABuildGoOn(t *testing.T) {
	t.Parallel()
	if n := mistakes().Errors(); n != 4 || !mistakes().HasErrors() {
		t.Errorf("got %d errors, want 4: one without a severity counts", n)
	}
	if mistakes()[:1].HasErrors() || diag.List(nil).HasErrors() {
		t.Error("a warning, or nothing, counts as an error")
	}
}

func TestSourceLineIsOneLineOfText(t *testing.T) {
	t.Parallel()
	src := []byte("one\r\n\ttwo\n\nfour\xff")
	for line, want := range []string{"", "one", "\ttwo", "", "four\uFFFD", "", ""} {
		if got := diag.SourceLine(src, line); got != want {
			t.Errorf("line %d: got %q, want %q", line, got, want)
		}
	}
	if got := diag.SourceLine([]byte(strings.Repeat("é", 1000)), 1); len(got) > 410 || !utf8.ValidString(got) {
		t.Errorf("an overlong line is shown in %d bytes", len(got))
	}
}

func FuzzRenderingAnyPlaceKeepsLinesAndControlCharactersApart(f *testing.F) {
	f.Add("message", "\tx := 1\n", 1, 3)
	f.Add("\x1b[2J", "", -1, 1<<40)
	f.Add("a\nb", "\xff\xfe\r\n\x00", 2, -5)
	f.Fuzz(func(t *testing.T, message, src string, line, col int) {
		l := diag.List{{Code: "BDK900", Pos: diag.Pos{File: "f", Line: line, Col: col}, Message: message, Excerpt: diag.SourceLine([]byte(src), line)}}
		got := l.Sort().String()
		if strings.ContainsAny(got, "\x1b\x00\r") {
			t.Errorf("a control character reached the terminal: %q", got)
		}
		if strings.Contains(l[0].Excerpt, "\n") || !utf8.ValidString(l[0].Excerpt) {
			t.Errorf("the excerpt is not a line of text: %q", l[0].Excerpt)
		}
	})
}
