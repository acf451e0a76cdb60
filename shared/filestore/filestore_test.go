package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/filestore"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
)

// counted is a driver of blobs that knows how many there are.
type counted struct {
	blob.Driver

	mu  sync.Mutex
	all map[blob.Ref]bool
}

func (c *counted) Put(ctx context.Context, ref blob.Ref, data []byte) error {
	c.mu.Lock()
	c.all[ref] = true
	c.mu.Unlock()
	return c.Driver.Put(ctx, ref, data)
}

func (c *counted) Delete(ctx context.Context, ref blob.Ref) error {
	c.mu.Lock()
	delete(c.all, ref)
	c.mu.Unlock()
	return c.Driver.Delete(ctx, ref)
}

func newStore() (*filestore.Store, *counted) {
	blobs := &counted{Driver: memblob.New(), all: map[blob.Ref]bool{}}
	return filestore.New(kv.New(memkv.New(), kv.Options{}), blob.New(blobs), nil, "a"), blobs
}

func mustRead(t *testing.T, f bdk.Files, name, want string) {
	t.Helper()
	got, err := f.Read(t.Context(), name)
	if err != nil || string(got) != want {
		t.Errorf("%s is %.40q, %v; want %.40q", name, got, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s, blobs := newStore()
	one, two, all := s.Session("1", false), s.Session("2", false), s.Deployment()
	if _, err := one.Read(t.Context(), "a.txt"); !errors.Is(err, bdk.ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	must(t, one.Write(t.Context(), "a.txt", []byte("one")))
	must(t, two.Write(t.Context(), "a.txt", []byte("two")))
	must(t, two.Deployment().Write(t.Context(), "a.txt", []byte("all")))
	mustRead(t, one, "a.txt", "one")
	mustRead(t, two, "a.txt", "two")
	mustRead(t, all, "a.txt", "all")
	must(t, one.Write(t.Context(), "a.txt", nil))
	mustRead(t, one, "a.txt", "")
	must(t, one.Append(t.Context(), "a.txt", []byte("x\n")))
	must(t, one.Append(t.Context(), "a.txt", nil))
	must(t, one.Append(t.Context(), "a.txt", []byte("y\n")))
	mustRead(t, one, "a.txt", "x\ny\n")
	must(t, one.Append(t.Context(), "b/new.txt", []byte("z")))
	must(t, one.Write(t.Context(), "c.bin", bytes.Repeat([]byte{0, 1}, 100_000)))
	list, err := one.List(t.Context(), "", "", 0)
	var names []string
	for _, f := range list {
		if f.UpdatedAt.IsZero() {
			t.Errorf("%s has no time", f.Name)
		}
		names = append(names, fmt.Sprint(f.Name, " ", f.Size))
	}
	if diff := cmp.Diff([]string{"a.txt 4", "b/new.txt 1", "c.bin 200000"}, names); diff != "" || err != nil {
		t.Errorf("list: %v\n%s", err, diff)
	}
	if list, err := one.List(t.Context(), "", "a.txt", 1); err != nil || len(list) != 1 || list[0].Name != "b/new.txt" {
		t.Errorf("a page: %v, %v", list, err)
	}
	for _, name := range []string{"a.txt", "b/new.txt", "c.bin", "never.txt"} {
		must(t, one.Remove(t.Context(), name))
	}
	must(t, two.Remove(t.Context(), "a.txt"))
	must(t, all.Remove(t.Context(), "a.txt"))
	if len(blobs.all) != 0 {
		t.Errorf("%d blobs are left of files that were removed", len(blobs.all))
	}
}

// Of many who append at once none is lost and none is cut, whatever has been written; readers see whole lines.
func TestManyAppend(t *testing.T) {
	t.Parallel()
	s, blobs := newStore()
	const writers, each = 8, 40
	line := strings.Repeat("x", 1000) + "\n"
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			f := s.Session("1", false).Deployment()
			for range each {
				if err := f.Append(t.Context(), "log", []byte(line)); err != nil {
					t.Error(err)
				}
				if data, err := f.Read(t.Context(), "log"); err != nil || len(data)%len(line) != 0 {
					t.Errorf("read %d bytes, %v", len(data), err)
				}
			}
		})
	}
	group.Wait()
	mustRead(t, s.Deployment(), "log", strings.Repeat(line, writers*each))
	if n := len(blobs.all); n > 6 {
		t.Errorf("%d blobs for %d bytes", n, writers*each*len(line))
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s, blobs := newStore()
	f := s.Session("1", false)
	for _, name := range []string{"", "/a", "../a", "a/../b", "a\\b", "a\x00", strings.Repeat("x", 201)} {
		_, readErr := f.Read(t.Context(), name)
		for what, err := range map[string]error{
			"Read": readErr, "Write": f.Write(t.Context(), name, nil), "Append": f.Append(t.Context(), name, []byte("x")), "Remove": f.Remove(t.Context(), name),
		} {
			if bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	large := make([]byte, filestore.MaxSize)
	must(t, f.Write(t.Context(), "large", large))
	before := len(blobs.all)
	for what, err := range map[string]error{"Write": f.Write(t.Context(), "other", bytes.Repeat([]byte{0}, filestore.MaxSize+1)), "Append": f.Append(t.Context(), "large", []byte{0})} {
		if bdkerr.CodeOf(err) != bdkerr.PayloadTooLarge {
			t.Errorf("%s beyond the limit: %v", what, err)
		}
	}
	if len(blobs.all) != before {
		t.Errorf("%d blobs are left of what was refused", len(blobs.all)-before)
	}
	dry := s.Session("1", true)
	for what, err := range map[string]error{
		"Write": dry.Write(t.Context(), "a", nil), "Append": dry.Append(t.Context(), "a", nil), "Remove": dry.Remove(t.Context(), "large"), "of all": dry.Deployment().Write(t.Context(), "a", nil),
	} {
		if !errors.Is(err, bdk.ErrDryRun) {
			t.Errorf("%s in a dry run: %v", what, err)
		}
	}
}

// What the model is shown is bounded: the end of what was written last.
func TestMemory(t *testing.T) {
	t.Parallel()
	entries, blobs := kv.New(memkv.New(), kv.Options{}), blob.New(memblob.New())
	begin := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	at := func(minute int) *filestore.Store {
		return filestore.New(entries, blobs, clock.Fixed(begin.Add(time.Duration(minute)*time.Minute)), "a")
	}
	if shown, err := at(0).Memory(t.Context()); err != nil || shown != nil {
		t.Errorf("got %v, %v", shown, err)
	}
	must(t, at(0).Deployment().Write(t.Context(), "memory/old", []byte("old\n")))
	must(t, at(1).Deployment().Write(t.Context(), "other", []byte("not shown")))
	must(t, at(2).Deployment().Write(t.Context(), "memory/journal", []byte(strings.Repeat("first\n", 200_000)+"last\n")))
	must(t, at(3).Deployment().Write(t.Context(), "memory/new", []byte("new\n")))
	shown, err := at(4).Memory(t.Context())
	total := 0
	for _, data := range shown {
		total += len(data)
	}
	if err != nil || string(shown["memory/new"]) != "new\n" || !strings.HasPrefix(string(shown["memory/journal"]), "first\n") || !strings.HasSuffix(string(shown["memory/journal"]), "\nlast\n") || total > 1<<20 || len(shown["other"]) > 0 {
		t.Errorf("%d files of %d bytes are shown, %v", len(shown), total, err)
	}
}
