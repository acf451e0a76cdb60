package harness_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/harness"
	"github.com/bdk-lambda/bdk/shared/workspace"
	"github.com/bdk-lambda/bdk/shared/workspace/workspacetest"
)

func TestReadShowsNumberedLines(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, map[string]string{
		"a.txt": "one\ntwo\nthree", "end.txt": "one\n", "empty.txt": "", "dos.txt": "one\r\ntwo\r\n", "latin.txt": "caf\xe9\n",
		"pic.png": "\x89PNG\r\n\x1a\n\x00\x00", "wide.txt": "\xff\xfea\x00", "late.bin": strings.Repeat("x", 600) + "\x00",
	})
	for _, c := range []struct{ name, in, want string }{
		{"all", `{"path":"a.txt"}`, "1\tone\n2\ttwo\n3\tthree"},
		{"with ./", `{"path":"./a.txt"}`, "1\tone\n2\ttwo\n3\tthree"},
		{"the last line end is no line", `{"path":"end.txt"}`, "1\tone"},
		{"from a line on", `{"path":"a.txt","offset":2}`, "2\ttwo\n3\tthree"},
		{"some lines", `{"path":"a.txt","offset":2,"limit":1}`, "2\ttwo\n(the file has 3 lines: go on with offset 3)"},
		{"just all", `{"path":"a.txt","limit":3}`, "1\tone\n2\ttwo\n3\tthree"},
		{"an empty file", `{"path":"empty.txt"}`, "empty.txt is empty"},
		{"CR LF", `{"path":"dos.txt"}`, "1\tone\n2\ttwo\n(the lines of the file end in CR LF)"},
		{"not UTF-8", `{"path":"latin.txt"}`, "1\tcaf\uFFFD"},
		{"an image", `{"path":"pic.png"}`, "pic.png is no text: image/png, 10 bytes"},
		{"UTF-16", `{"path":"wide.txt"}`, "wide.txt is no text: text/plain; charset=utf-16le, 4 bytes"},
		{"a NUL", `{"path":"late.bin"}`, "late.bin is no text: application/octet-stream, 601 bytes"},
	} {
		if diff := cmp.Diff(c.want, b.answer(t, "read", c.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	b.fails(t, "read", `{"path":"a.txt","offset":4}`, "has 3 lines: there is no line 4")
	b.fails(t, "read", `{"path":"a.txt","offset":-1}`, "numbers of lines")
	b.fails(t, "read", `{"path":"a.txt","limit":-1}`, "numbers of lines")
}

// Whoever follows the offsets reads every line once, whatever bound ends each part.
func TestReadInPartsLosesNothing(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"many lines": "x", "wide lines": strings.Repeat("wide ", 300)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, harness.Options{}, map[string]string{"a.txt": strings.Repeat(line+"\n", 4500)})
			next := 1
			for parts := 0; next <= 4500; parts++ {
				got := b.answer(t, "read", fmt.Sprintf(`{"path":"a.txt","offset":%d}`, next))
				if len(got) > 50<<10 || parts > 4500 {
					t.Fatalf("part %d has %d bytes", parts, len(got))
				}
				for shown := range strings.Lines(got) {
					if strings.HasPrefix(shown, "(") {
						if want := fmt.Sprintf("(the file has 4500 lines: go on with offset %d)", next); shown != want {
							t.Fatalf("the end is %q, want %q", shown, want)
						}
						break
					}
					if want := fmt.Sprintf("%d\t%s", next, line); strings.TrimSuffix(shown, "\n") != want {
						t.Fatalf("line %d is %.40q", next, shown)
					}
					next++
				}
			}
		})
	}
}

func TestReadCutsLongLinesInWholeCharacters(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, map[string]string{"a.txt": "x" + strings.Repeat("é", 5000)})
	want := "1\tx" + strings.Repeat("é", 999) + "… (8002 more bytes)"
	if diff := cmp.Diff(want, b.answer(t, "read", `{"path":"a.txt"}`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissingFilesNameThoseThatMayBeMeant(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, map[string]string{"src/main.go": "", "cmd/tool/main.go": "", "README.md": "", "x/y/z": ""})
	b.fails(t, "read", `{"path":"main.go"}`, `did you mean src/main.go, cmd/tool/main.go?`)
	b.fails(t, "read", `{"path":"readme.md"}`, `did you mean README.md?`)
	b.fails(t, "edit", `{"path":"src/mian.go","old":"a","new":"b"}`, `did you mean src/main.go`)
	b.fails(t, "read", `{"path":"nothing.like.it"}`, "look for it with ls or glob")
	b.fails(t, "read", `{"path":"src"}`, `"src" is a folder: list it with ls`)
	b.fails(t, "ls", `{"path":"scr/main.go"}`, `did you mean src/main.go`)
	setup(t, harness.Options{}, nil).fails(t, "read", `{"path":"a"}`, "the workspace has no files")
	if _, err := b.Dir(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.fails(t, "read", `{"path":"src"}`, `"src" is a folder: list it with ls`)
	b.fails(t, "read", `{"path":"main.go"}`, `did you mean src/main.go`)
}

func TestWriteKeepsTheModeUnlessItIsGiven(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, nil)
	for _, c := range []struct{ in, want string }{
		{`{"path":"bin/run","content":"#!/bin/sh\n","exec":true}`, "created bin/run: 10 bytes, executable"},
		{`{"path":"./bin/run","content":"x"}`, "replaced bin/run: 1 bytes, executable"},
		{`{"path":"bin/run","content":"","exec":false}`, "replaced bin/run: 0 bytes"},
		{`{"path":"a","content":"é"}`, "created a: 2 bytes"},
	} {
		if got := b.answer(t, "write", c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.in, got, c.want)
		}
	}
	if got, want := b.answer(t, "ls", `{"path":"bin"}`), "run (0 bytes)"; got != want {
		t.Errorf("ls: %q, want %q", got, want)
	}
	b.fails(t, "write", `{"path":"a/b","content":""}`, "a")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, in string
		want, answer   string // of an edit that is made
		err            string // of one that is not
	}{
		{name: "one occurrence", file: "a\nb\nc\n", in: `"old":"b","new":"x\ny"`, want: "a\nx\ny\nc\n", answer: "edited f at line 2"},
		{name: "nothing is put there", file: "a\nb\nc\n", in: `"old":"b\n","new":""`, want: "a\nc\n", answer: "edited f at line 2"},
		{name: "all of several", file: "a b a", in: `"old":"a","new":"aa","all":true`, want: "aa b aa", answer: "replaced 2 occurrences in f"},
		{name: "all of one", file: "a b", in: `"old":"a","new":"c","all":true`, want: "c b", answer: "edited f at line 1"},
		{name: "lines that end in CR LF", file: "a\r\nb\r\n", in: `"old":"a\nb","new":"a\nx\nb"`, want: "a\r\nx\r\nb\r\n", answer: "edited f at line 1"},
		{name: "bytes that are not UTF-8 stay", file: "caf\xe9 x", in: `"old":"x","new":"y"`, want: "caf\xe9 y", answer: "edited f at line 1"},
		{name: "several occurrences", file: "a\nb\na\n", in: `"old":"a","new":"c"`, err: "old occurs 2 times, at the lines 1, 3: give more"},
		{name: "very many occurrences", file: strings.Repeat("a\n", 20), in: `"old":"a","new":"c"`, err: "20 times, at the lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"},
		{name: "no occurrence", file: "a\n", in: `"old":"b","new":"c"`, err: "old does not occur: read the file"},
		{name: "other white space", file: "x\n\tif a {\n\t\tb\n", in: `"old":"if a {\n    b","new":"c"`, err: "at line 2 there is a text that differs from it in white space only"},
		{name: "line numbers", file: "a\nb\n", in: `"old":"2\tb","new":"c"`, err: "begins with a line number"},
		{name: "no text", file: "a\x00", in: `"old":"b","new":"c"`, err: "the file is no text"},
		{name: "old is empty", file: "a", in: `"old":"","new":"c"`, err: "old is empty"},
		{name: "nothing changes", file: "a", in: `"old":"a","new":"a"`, err: "old and new are the same"},
		{name: "too large", file: strings.Repeat("a", 1<<20), in: `"old":"a","new":"` + strings.Repeat("b", 100) + `","all":true`, err: "more than 67108864 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, harness.Options{}, map[string]string{"f": c.file})
			in := `{"path":"f",` + c.in + `}`
			if c.err != "" {
				b.fails(t, "edit", in, c.err)
				c.want = c.file
			} else if got := b.answer(t, "edit", in); got != c.answer {
				t.Errorf("answer: %q, want %q", got, c.answer)
			}
			if data, err := b.ReadFile(t.Context(), "f"); err != nil || string(data) != c.want {
				t.Errorf("the file is %q, %v, want %q", data, err, c.want)
			}
		})
	}
}

func TestEditKeepsTheMode(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, nil)
	b.answer(t, "write", `{"path":"run","content":"a","exec":true}`)
	b.answer(t, "edit", `{"path":"run","old":"a","new":"b"}`)
	if got, want := b.answer(t, "ls", `{}`), "run (1 bytes, executable)"; got != want {
		t.Errorf("ls: %q, want %q", got, want)
	}
}

// A model edits one file at many places in one step, and the calls run at the same time.
func TestNoEditIsLost(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 32 {
		fmt.Fprintf(&before, "old %d.\n", i)
		fmt.Fprintf(&after, "new %d.\n", i)
	}
	b := setup(t, harness.Options{}, map[string]string{"f": before.String()})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			if _, err := b.call(t.Context(), "edit", fmt.Sprintf(`{"path":"f","old":"old %d.","new":"new %d."}`, i, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if data, err := b.ReadFile(t.Context(), "f"); err != nil || string(data) != after.String() {
		t.Errorf("the file is %q, %v", data, err)
	}
}

func TestTheAgentsOwnFolderIsReadOnly(t *testing.T) {
	t.Parallel()
	base, err := workspace.NewLayer(map[string][]byte{".agents/tools/x": []byte("#!/bin/sh\n")})
	if err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, harness.Options{}, workspace.Options{Base: base}, nil)
	for _, p := range []string{".agents/tools/x", "./.agents/tools/x", ".Agents/tools/x", ".agents", ".agents/new"} {
		b.fails(t, "write", input(t, map[string]any{"path": p, "content": "x"}), "the agent's own folder")
		b.fails(t, "edit", input(t, map[string]any{"path": p, "old": "sh", "new": "x"}), "the agent's own folder")
	}
	b.answer(t, "read", `{"path":".agents/tools/x"}`)
	b.answer(t, "write", `{"path":".agentsx/y","content":""}`)
}

func TestPathTricksAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{Skills: skills()}, map[string]string{"a": "x", "b/c": "y"})
	before, err := b.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	harmless := map[string]map[string]bool{ // what an entry point takes for a name of the workspace
		"file":   {"./a": true},
		"folder": {"": true, ".": true, "./a": true, "a/": true},
		"beside": {"": true, "./a": true}, // "" is the skill itself
	}
	for _, c := range []struct {
		tool, kind, property string
		rest                 map[string]any
	}{
		{"read", "file", "path", nil},
		{"write", "file", "path", map[string]any{"content": "x"}},
		{"edit", "file", "path", map[string]any{"old": "x", "new": "y"}},
		{"ls", "folder", "path", nil},
		{"glob", "folder", "path", map[string]any{"pattern": "*"}},
		{"grep", "folder", "path", map[string]any{"pattern": "x"}},
		{"skill", "beside", "file", map[string]any{"name": "research"}},
	} {
		for _, p := range workspacetest.BadPaths() {
			if harmless[c.kind][p] {
				continue
			}
			in := map[string]any{c.property: p}
			maps.Copy(in, c.rest)
			raw := input(t, in)
			out, err := b.call(t.Context(), c.tool, raw)
			if bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
				t.Errorf("%s %q: %v, %v", c.tool, p, out, err)
			}
		}
	}
	after, err := b.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the files (-before +after):\n%s", diff)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{}, map[string]string{"a": "x\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, in := range map[string]string{"glob": `{"pattern":"*"}`, "grep": `{"pattern":"x"}`} {
		if out, err := b.call(ctx, name, in); err == nil {
			t.Errorf("%s after the end: %v", name, out)
		}
	}
}

func FuzzEdit(f *testing.F) {
	for _, s := range [][3]string{{"a\nb\n", "b", "c"}, {"a\r\nb\r\n", "a\nb", "x"}, {"aaa", "aa", "b"}, {"é", "\xc3", "x"}, {"", "a", ""}, {"\t x", " x", "\tx"}} {
		f.Add(s[0], s[1], s[2], false)
		f.Add(s[0], s[1], s[2], true)
	}
	f.Fuzz(func(t *testing.T, file, old, put string, all bool) {
		if len(file) > 1<<16 || len(old) > 1<<12 || len(put) > 1<<12 {
			return
		}
		b := setup(t, harness.Options{}, map[string]string{"f": file})
		raw := input(t, map[string]any{"path": "f", "old": old, "new": put, "all": all})
		_, err := b.call(t.Context(), "edit", raw)
		data, readErr := b.ReadFile(t.Context(), "f")
		if readErr != nil {
			t.Fatal(readErr)
		}
		switch got := string(data); {
		case err != nil && got != file:
			t.Fatalf("%v, but the file is %q", err, got)
		case err != nil || !utf8.ValidString(old+put): // JSON replaces some bytes
		case strings.Contains(file, "\r\n") && !strings.Contains(old+put, "\r"): // the line ends may be those of the file
		case got != strings.ReplaceAll(file, old, put):
			t.Fatalf("the file is %q", got)
		case !all && strings.Count(file, old) != 1:
			t.Fatalf("%d occurrences were replaced", strings.Count(file, old))
		}
	})
}
