package fileblob_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/blobtest"
	"github.com/bdk-lambda/bdk/shared/blob/fileblob"
)

func open(t *testing.T, dir string, now time.Time) *fileblob.Driver {
	t.Helper()
	d, err := fileblob.Open(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blobtest.Harness {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "blobs")
		return blobtest.Harness{
			Open: func(t *testing.T) blob.Driver { t.Helper(); return open(t, dir, time.Now()) },
			Damage: func(t *testing.T, ref blob.Ref, data []byte) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, string(ref[:2]), string(ref[2:])), data, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestFilesArePrivateAndNothingElseIsLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "blobs")
	s := blob.New(open(t, dir, time.Now()))
	for range 2 {
		if _, err := s.Put(t.Context(), []byte("hello\n")); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]fs.FileMode{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		got[path] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{
		".": fs.ModeDir | 0o700, "tmp": fs.ModeDir | 0o700, "58": fs.ModeDir | 0o700,
		"58/91b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03": 0o600,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOpenRemovesOldTemporaryFilesOnly(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	open(t, dir, now)
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "young": time.Minute} {
		path := filepath.Join(dir, "tmp", name)
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir, now)
	left, err := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "tmp", "young")}, left); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLinksDoNotLeadOutOfTheDirectory(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	data := []byte("secret")
	ref := blob.RefOf(data)
	if err := os.WriteFile(filepath.Join(outside, string(ref[2:])), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, string(ref[:2]))); err != nil {
		t.Fatal(err)
	}
	s := blob.New(open(t, dir, time.Now()))
	if _, err := s.Get(t.Context(), ref); err == nil {
		t.Error("Get followed the link")
	}
	if _, err := s.Put(t.Context(), data); err == nil {
		t.Error("Put followed the link")
	}
}

func TestOpenReportsWhatIsNoDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fileblob.Open(path, time.Now()); err == nil {
		t.Error("got no error")
	}
}
