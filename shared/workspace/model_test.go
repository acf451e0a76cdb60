package workspace_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// FuzzCollect does what the bytes say, to a workspace and to a map: both must have the same files at the end, and again
// when the workspace is opened by its reference.
func FuzzCollect(f *testing.F) {
	for _, s := range []string{
		"", "a1b2c3", "\x00\x21\x42\x13\x54\x35\x66", "dddwwwrrrccc",
		"\x03\x10\x21\x04\x12\x05\x23\x04\x11\x00\x05", "\x03\x05\x02\x04\x03\x12\x01\x04",
	} {
		f.Add([]byte(s))
	}
	base := map[string]string{"p0": "base", "p1": "base"}
	f.Fuzz(func(t *testing.T, ops []byte) {
		files := fixture{Store: workspace.New(blob.New(memblob.New()), workspace.Options{Base: layer(t, base), TempDir: t.TempDir()})}
		w := files.open(t, "", nil)
		own := map[string]string{}
		for i, op := range ops[:min(len(ops), 64)] {
			p, data := fmt.Sprintf("p%d", op>>3&3), strings.Repeat("x", int(op>>5)&1)+string('a'+rune(op>>6))
			switch op & 7 {
			case 0, 1:
				write(t, w, p, data)
				own[p] = data
			case 2:
				if _, ok := own[p]; ok && w.Remove(t.Context(), p) != nil {
					t.Fatalf("step %d: %s was not removed", i, p)
				}
				delete(own, p)
			case 3:
				dir(t, w)
			case 4:
				put(t, dir(t, w), p, data, 0o600)
				own[p] = data
			case 5:
				if err := os.RemoveAll(filepath.Join(dir(t, w), p)); err != nil {
					t.Fatal(err)
				}
				delete(own, p)
			case 6:
				commit(t, w)
			case 7:
				ref, _ := commit(t, w)
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				w = files.open(t, ref, nil)
			}
		}
		want := maps.Clone(base)
		maps.Copy(want, own)
		wantContent(t, w, want)
		ref, _ := commit(t, w)
		wantContent(t, w, want)
		wantContent(t, files.open(t, ref, nil), want)
	})
}

// BenchmarkManyFiles is what a workspace of 10,000 files costs.
func BenchmarkManyFiles(b *testing.B) {
	first := map[string]string{}
	for i := range 9_999 {
		first[fmt.Sprintf("folder%d/sub%d/file%d.txt", i%10, i%100, i)] = strings.Repeat("x", i%1000)
	}
	f := setup(b, workspace.Options{})
	w := f.open(b, "", first)
	write(b, w, "one", "more")
	ref, _ := commit(b, w)
	b.Run("read one", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.open(b, ref, nil).ReadFile(b.Context(), "one"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("change one", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			w := f.open(b, ref, nil)
			write(b, w, "one", fmt.Sprint(i))
			commit(b, w)
		}
	})
	b.Run("materialise", func(b *testing.B) {
		for b.Loop() {
			w := f.open(b, ref, nil)
			dir(b, w)
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("collect one", func(b *testing.B) {
		w := f.open(b, ref, nil)
		d := dir(b, w)
		for i := 0; b.Loop(); i++ {
			put(b, d, "one", fmt.Sprint(i), 0o600)
			commit(b, w)
		}
	})
}
