package workspace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
)

// file is a file of a session: in the blob ref; or, as long as it is not stored, in data or in a layer.
type file struct {
	size    int64
	exec    bool
	ref     blob.Ref // "" for a file of a layer
	data    []byte   // never changed
	layer   *layerFile
	pending bool // data is not stored yet
}

// same reports whether two files are known to have the same content and mode.
func (f file) same(g file) bool {
	return f.size == g.size && f.exec == g.exec && f.ref == g.ref && f.layer == g.layer
}

// tree is a session's own files. A tree that a Workspace has is changed under its mutex only.
type tree struct {
	files map[string]file
	names names

	total   int64 // bytes
	pending int64 // bytes that are not stored
}

func newTree() *tree { return &tree{files: map[string]file{}, names: names{}} }

func (t *tree) clone() *tree {
	return &tree{files: maps.Clone(t.files), names: maps.Clone(t.names), total: t.total, pending: t.pending}
}

// put adds or replaces a file, unless its path clashes with others.
func (t *tree) put(p string, f file) error {
	if err := t.names.check(p); err != nil {
		return err
	}
	if old, ok := t.files[p]; ok {
		t.count(old, -1)
	} else {
		t.names.add(p)
	}
	t.files[p] = f
	t.count(f, 1)
	return nil
}

// remove removes a file that is there.
func (t *tree) remove(p string) {
	t.count(t.files[p], -1)
	delete(t.files, p)
	t.names.remove(p)
}

// count adds (1) a file to the sums, or takes it from them (-1).
func (t *tree) count(f file, sign int64) {
	t.total += sign * f.size
	if f.pending {
		t.pending += sign * f.size
	}
}

// hides reports whether the session's own files hide the file p of a layer below them.
func (t *tree) hides(p string) bool {
	_, ok := t.files[p]
	return ok || t.names.check(p) != nil
}

func (t *tree) same(o *tree) bool { return maps.EqualFunc(t.files, o.files, file.same) }

// Limits bound the session's own files; those of the agent do not count. The zero value of each field is its default.
type Limits struct {
	Files    int   // how many; default 10,000
	FileSize int64 // bytes of a file; default, and at most, [blob.MaxSize], 64 MiB
	Total    int64 // bytes of all files together; default 512 MiB
}

func (l Limits) withDefaults() Limits {
	l.Files = cmp.Or(l.Files, 10_000)
	l.FileSize = min(cmp.Or(l.FileSize, blob.MaxSize), blob.MaxSize)
	l.Total = cmp.Or(l.Total, 512<<20)
	return l
}

// check returns a bdkerr.PayloadTooLarge error if t is over the limits, and has more files or bytes than before: what was over a
// limit already may become smaller step by step.
func (l Limits) check(t *tree, filesBefore int, totalBefore int64) error {
	if n := len(t.files); n > l.Files && n > filesBefore {
		return bdkerr.New(bdkerr.PayloadTooLarge, "the workspace would have %d files: at most %d are allowed. Most are in %s", n, l.Files, t.crowded())
	}
	if t.total > l.Total && t.total > totalBefore {
		return bdkerr.New(bdkerr.PayloadTooLarge, "the files of the workspace would have %d bytes together: at most %d are allowed. The largest are %s",
			t.total, l.Total, t.largest())
	}
	return nil
}

// checkGrowth is check for t with a file of size bytes at p.
func (l Limits) checkGrowth(t *tree, p string, size int64) error {
	old, ok := t.files[p]
	if (ok || len(t.files) < l.Files) && t.total-old.size+size <= l.Total {
		return nil
	}
	grown := t.clone()
	if err := grown.put(p, file{size: size}); err != nil {
		return err
	}
	return l.check(grown, len(t.files), t.total)
}

// checkSize returns a bdkerr.PayloadTooLarge error if a file of this size is too large.
func (l Limits) checkSize(p string, size int64) error {
	if size <= l.FileSize {
		return nil
	}
	return bdkerr.New(bdkerr.PayloadTooLarge, "the file %q has %d bytes: at most %d are allowed", p, size, l.FileSize)
}

// largest names the largest files.
func (t *tree) largest() string {
	sizes := make(map[string]int64, len(t.files))
	for p, f := range t.files {
		sizes[p] = f.size
	}
	return most(sizes, "bytes")
}

// crowded names the folders with the most files.
func (t *tree) crowded() string {
	counts := map[string]int64{}
	for p := range t.files {
		counts[top(p)]++
	}
	return most(counts, "files")
}

// most names the three entries with the greatest values.
func most(values map[string]int64, unit string) string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys[:min(len(keys), 3)] {
		parts = append(parts, fmt.Sprintf("%q (%d %s)", k, values[k], unit))
	}
	return strings.Join(parts, ", ")
}
