package localhost

import (
	"os"
	"path/filepath"
	"testing"
)

// A process is known to live while it holds its file, whether or not the file is there.
func TestHolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enter := func(name string) *holders {
		t.Helper()
		h, err := join(root, name)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	one, two := enter("one"), enter("two")
	for _, tc := range []struct {
		of   *holders
		name string
		want bool
	}{{one, "one", true}, {one, "two", true}, {two, "one", true}, {two, "nobody", false}} {
		if got := tc.of.alive(tc.name); got != tc.want {
			t.Errorf("%s says that %s lives: %t", tc.of.self, tc.name, got)
		}
	}
	if n := one.others(); n != 1 {
		t.Errorf("%d others live; want one", n)
	}
	if _, err := join(root, "one"); err == nil {
		t.Error("a name was taken twice")
	}

	if err := two.lock.Close(); err != nil { // what the system does for a process that is killed
		t.Fatal(err)
	}
	file := filepath.Join(root, "hosts", "two.lock")
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file of a killed process: %v", err)
	}
	for range 2 { // with its file, and without
		if one.alive("two") {
			t.Error("a killed process lives")
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of a dead process stays: %v", err)
	}

	if n := one.others(); n != 0 {
		t.Errorf("%d others live; want none", n)
	}

	three := enter("three")
	if err := one.leave(); err != nil {
		t.Error(err)
	}
	if three.alive("one") {
		t.Error("a process lives that has left")
	}
	if err := three.leave(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "hosts")); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
