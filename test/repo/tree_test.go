package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/test/need"
)

const (
	module = "github.com/bdk-lambda/bdk"
	root   = "../.."
)

var readTree = sync.OnceValues(func() (fstest.MapFS, error) {
	// A clone that belongs to another user is still a clone: reading it is all this does.
	out, err := exec.Command("git", "-C", root, "-c", "safe.directory=*", "ls-files", "-z").Output()
	if err != nil {
		return nil, err
	}
	tree := fstest.MapFS{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) { // removed, not yet committed
			continue
		}
		if err != nil {
			return nil, err
		}
		tree[name] = &fstest.MapFile{Data: data}
	}
	return tree, nil
})

// tracked returns the files of the repository that git knows, as they are in the working tree.
func tracked(t *testing.T) fstest.MapFS {
	t.Helper()
	need.Tool(t, "git")
	tree, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// plant returns a tree with the given files.
func plant(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

// names returns the sorted names of the files for which keep is true.
func names(tree fstest.MapFS, keep func(name string) bool) []string {
	var list []string
	for name := range tree {
		if keep(name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// noProblems fails the test with every problem.
func noProblems(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// wantProblems fails the test unless exactly the wanted problems were found.
func wantProblems(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems found (-want +got):\n%s", diff)
	}
}
