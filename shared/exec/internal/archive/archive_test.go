package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec/internal/archive"
)

// tree makes a directory with files; a path that ends in * is one that may be executed.
func tree(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	for name, text := range files {
		write(t, root, name, text)
	}
	return root
}

func write(t *testing.T, root *os.Root, name, text string) {
	t.Helper()
	name, executable := strings.CutSuffix(name, "*")
	mode := map[bool]fs.FileMode{false: 0o600, true: 0o700}[executable]
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// contents returns everything in a directory: files as tree takes them, others with what they are.
func contents(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if !d.Type().IsRegular() {
			all[name] = d.Type().String()
			return nil
		}
		text, err := root.ReadFile(name)
		if info, ierr := d.Info(); ierr == nil && info.Mode()&0o100 != 0 {
			name += "*"
		}
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func pack(t *testing.T, root *os.Root, base archive.Files) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := archive.Pack(&b, root, base); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func look(t *testing.T, root *os.Root) archive.Files {
	t.Helper()
	files, err := archive.Look(root)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRegularFilesTravel: with their execute bit, and nothing else does.
func TestRegularFilesTravel(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a": "1", "b/run.sh*": "#!/bin/sh", "b/c/ä ö": "", "z": strings.Repeat("x", 100_000)}
	from, to := tree(t, files), tree(t, nil)
	if err := from.Symlink("/etc/passwd", "link"); err != nil {
		t.Fatal(err)
	}
	if err := from.Mkdir("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	data := pack(t, from, nil)
	if err := archive.Check(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Apply(to, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	files["b"], files["b/c"] = "d---------", "d---------"
	if d := cmp.Diff(files, contents(t, to)); d != "" {
		t.Error(d)
	}
	if !bytes.Equal(data, pack(t, to, nil)) {
		t.Error("the same files make another archive")
	}
}

// TestChangesTravelBack: whatever was done to a copy is done to the original.
func TestChangesTravelBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*os.Root) error
		want   map[string]string
	}{
		"nothing":    {func(*os.Root) error { return nil }, map[string]string{"a": "1", "d": "d---------", "d/x*": "2", "d/y": "3"}},
		"contents":   {func(r *os.Root) error { return r.WriteFile("a", []byte("4"), 0) }, map[string]string{"a": "4", "d": "d---------", "d/x*": "2", "d/y": "3"}},
		"execute on": {func(r *os.Root) error { return r.Chmod("a", 0o755) }, map[string]string{"a*": "1", "d": "d---------", "d/x*": "2", "d/y": "3"}},
		"a removal":  {func(r *os.Root) error { return r.Remove("d/x") }, map[string]string{"a": "1", "d": "d---------", "d/y": "3"}},
		"all of a directory": {
			func(r *os.Root) error { return r.RemoveAll("d") }, map[string]string{"a": "1"},
		},
		"a directory that becomes a file": {
			func(r *os.Root) error { _ = r.RemoveAll("d"); return r.WriteFile("d", []byte("5"), 0o600) }, map[string]string{"a": "1", "d": "5"},
		},
		"a file that becomes a directory": {
			func(r *os.Root) error {
				_, _ = r.Remove("a"), r.Mkdir("a", 0o700)
				return r.WriteFile("a/b", []byte("6"), 0o600)
			}, map[string]string{"a": "d---------", "a/b": "6", "d": "d---------", "d/x*": "2", "d/y": "3"},
		},
		"a file that becomes a link": {
			func(r *os.Root) error { _ = r.Remove("a"); return r.Symlink("d/y", "a") }, map[string]string{"d": "d---------", "d/x*": "2", "d/y": "3"},
		},
		"files that cannot be read": {
			func(r *os.Root) error { return errorsOf(r.WriteFile("d/z", []byte("7"), 0o000), r.Chmod("d", 0o000)) },
			map[string]string{"a": "1", "d": "d---------", "d/x*": "2", "d/y": "3", "d/z": "7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"a": "1", "d/x*": "2", "d/y": "3"}
			original, working := tree(t, files), tree(t, files)
			base := look(t, working)
			if err := tc.change(working); err != nil {
				t.Fatal(err)
			}
			data := pack(t, working, base)
			if err := archive.Check(bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			if err := archive.Apply(original, bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, contents(t, original)); d != "" {
				t.Error(d)
			}
		})
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// made returns an archive of any headers, each with as many bytes as it says up to 1 KiB.
func made(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	for _, h := range headers {
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(make([]byte, min(h.Size, 1<<10))); err != nil {
			t.Fatal(err)
		}
	}
	_ = out.Close() // contents may be missing
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func regular(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 1, Mode: 0o700, Format: tar.FormatPAX}
}

func gone(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Format: tar.FormatPAX, PAXRecords: map[string]string{"BDK.removed": "1"}}
}

// TestStrangeArchivesAreRefused: before anything is done, and nothing outside of the directory is touched without a check either.
func TestStrangeArchivesAreRefused(t *testing.T) {
	t.Parallel()
	many := make([]*tar.Header, archive.MaxFiles+1)
	for i := range many {
		many[i] = gone(fmt.Sprint("f", i))
	}
	big := regular("big")
	big.Size = archive.MaxBytes + 1
	heavy := gone("a")
	heavy.Size = 1
	for name, data := range map[string][]byte{
		"nothing":                  nil,
		"no archive":               []byte("hello"),
		"a path above":             made(t, regular("../a")),
		"a path above in the end":  made(t, regular("a/../../b")),
		"a path that goes around":  made(t, regular("a/../b")),
		"an absolute path":         made(t, regular("/etc/passwd")),
		"a path of another system": made(t, regular(`a\b`)),
		"no path":                  made(t, regular("")),
		"the directory itself":     made(t, regular(".")),
		"a dot":                    made(t, regular("a/./b")),
		"two slashes":              made(t, regular("a//b")),
		"bytes that are no text":   made(t, regular("a\xff")),
		"a long path":              made(t, regular(strings.Repeat("a/", 600)+"a")),
		"a long name":              made(t, regular(strings.Repeat("a", 256))),
		"a link":                   made(t, &tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc"}),
		"a hard link":              made(t, regular("b"), &tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "b"}),
		"a directory":              made(t, &tar.Header{Typeflag: tar.TypeDir, Name: "a"}),
		"a pipe":                   made(t, &tar.Header{Typeflag: tar.TypeFifo, Name: "a"}),
		"a device":                 made(t, &tar.Header{Typeflag: tar.TypeChar, Name: "a"}),
		"a file twice":             made(t, regular("a"), regular("a")),
		"a file that is removed":   made(t, gone("a"), regular("a")),
		"a late removal":           made(t, regular("a"), gone("b")),
		"a removal twice":          made(t, gone("a"), gone("a")),
		"a removal with contents":  made(t, heavy),
		"a removal above":          made(t, gone("../a")),
		"a file below a file":      made(t, regular("a"), regular("a/b")),
		"a file above a file":      made(t, regular("a/b/c"), regular("a")),
		"too many files":           made(t, many...),
		"too many bytes":           made(t, big),
		"an end too early":         made(t, regular("a"))[:60],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := archive.Check(bytes.NewReader(data)); err == nil {
				t.Error("it was accepted")
			}
			if err := archive.Apply(tree(t, nil), bytes.NewReader(data)); err == nil {
				t.Error("it was applied")
			}
		})
	}
}

// TestLinksAreNotFollowed: a link in the directory leads no write, and no removal, out of it.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "a"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"a write":   made(t, regular("dir/a")),
		"a removal": made(t, gone("dir/a")),
		"the link":  made(t, regular("file")),
	} {
		root := tree(t, nil)
		for link, target := range map[string]string{"dir": outside, "file": filepath.Join(outside, "a")} {
			if err := root.Symlink(target, link); err != nil {
				t.Fatal(err)
			}
		}
		err := archive.Apply(root, bytes.NewReader(data))
		if text, _ := os.ReadFile(filepath.Join(outside, "a")); string(text) != "kept" {
			t.Errorf("%s: outside is %q", name, text)
		}
		if (err != nil) != (name == "a write") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTooMuchIsNotSent: what the other side would refuse is refused here.
func TestTooMuchIsNotSent(t *testing.T) {
	t.Parallel()
	large, many, named := tree(t, nil), tree(t, nil), tree(t, map[string]string{`a\b`: ""})
	write(t, large, "a", "")
	f, err := large.OpenFile("a", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errorsOf(f.Truncate(archive.MaxBytes+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	for i := range archive.MaxFiles + 1 {
		write(t, many, fmt.Sprint(i), "")
	}
	for root, want := range map[*os.Root]bdkerr.Code{large: bdkerr.PayloadTooLarge, many: bdkerr.PayloadTooLarge, named: bdkerr.InvalidRequest} {
		if _, err := archive.Pack(&bytes.Buffer{}, root, nil); bdkerr.CodeOf(err) != want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

// FuzzApply: what Check accepts is applied, within the directory, and travels on.
func FuzzApply(f *testing.F) {
	f.Add(made(f, gone("x"), regular("a"), regular("b/c")))
	f.Add(made(f, regular("../a")))
	f.Add(made(f, &tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc"}))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root := tree(t, nil)
		checked := archive.Check(bytes.NewReader(data))
		applied := archive.Apply(root, bytes.NewReader(data))
		if (checked == nil) != (applied == nil) {
			t.Fatalf("checked: %v, applied: %v", checked, applied)
		}
		if applied != nil {
			return
		}
		again := tree(t, nil)
		if err := archive.Apply(again, bytes.NewReader(pack(t, root, nil))); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(contents(t, root), contents(t, again)); d != "" {
			t.Error(d)
		}
	})
}
