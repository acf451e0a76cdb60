package project_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/bdk-lambda/bdk/bdkpack/project"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

// TestMistakesAreToldPrecisely loads the files of each case and compares what an author is told with its section want.
// The environment names a model unless the comment says "without BDK_MODEL". A case is the agent my-agent, or the folder that
// the line "load:" of its comment names, in a module that uses this repository.
func TestMistakesAreToldPrecisely(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) < 12 {
		t.Fatalf("got %d cases and error %v", len(cases), err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, want := extract(t, archive)
			env := append(os.Environ(), "BDK_MODEL=openai:any", "GOFLAGS=")
			if strings.Contains(string(archive.Comment), "with GOFLAGS=-mod=readonly") { // in which the go command has other words
				env = append(env, "GOFLAGS=-mod=readonly")
			}
			if strings.Contains(string(archive.Comment), "without BDK_MODEL") {
				env = append(env, "BDK_MODEL=")
			}
			_, diags, err := project.Load(t.Context(), dir, &project.Options{Env: env})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(diags.Relative(dir).String(), dir, "$DIR")
			if *update {
				setWant(t, name, archive, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

// extract writes a case's files and returns the folder to load and what is wanted.
func extract(t *testing.T, archive *txtar.Archive) (dir, want string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "my-agent")
	files := module(t)
	for _, f := range archive.Files {
		switch f.Name {
		case "want":
			want = string(f.Data)
		case "no go.mod":
			delete(files, "go.mod")
			delete(files, "go.sum")
		default:
			files[f.Name] = f.Data
		}
	}
	write(t, root, files)
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if sub, ok := strings.CutPrefix(strings.TrimSpace(line), "load: "); ok {
			return filepath.Join(root, sub), want
		}
	}
	return root, want
}

// module returns the go.mod of an author's module that uses this repository, and its go.sum.
func module(t *testing.T) map[string][]byte {
	t.Helper()
	const bdk = "github.com/bdk-lambda/bdk"
	repo := repository(t)
	sum, err := os.ReadFile(filepath.Join(repo, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module "+bdk, "module my-agent", 1)
	text += "\nrequire " + bdk + " v0.0.0\n\nreplace " + bdk + " => " + repo + "\n"
	return map[string][]byte{"go.mod": []byte(text), "go.sum": sum}
}

func write(t *testing.T, root string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func setWant(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	var files []txtar.File
	for _, f := range archive.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	archive.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}
