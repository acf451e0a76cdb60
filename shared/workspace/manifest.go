package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/bdk-lambda/bdk/shared/blob"
)

// manifestVersion is that of the format, changed when older programs cannot read it.
const manifestVersion = 1

// manifest is the stored form of a session's own files. The same files have the same bytes, and so the same reference.
type manifest struct {
	Version int            `json:"version"`
	Files   []manifestFile `json:"files"` // in the order of their paths
}

type manifestFile struct {
	Path string   `json:"path"`
	Blob blob.Ref `json:"blob"`
	Size int64    `json:"size"`
	Exec bool     `json:"exec,omitempty"`
}

// encodeManifest returns the bytes of a tree whose files all have references.
func encodeManifest(t *tree) ([]byte, error) {
	m := manifest{Version: manifestVersion, Files: make([]manifestFile, 0, len(t.files))}
	for _, p := range slices.Sorted(maps.Keys(t.files)) {
		f := t.files[p]
		m.Files = append(m.Files, manifestFile{Path: p, Blob: f.ref, Size: f.size, Exec: f.exec})
	}
	return json.Marshal(m)
}

// decodeManifest returns the tree that data stands for. It accepts nothing but what encodeManifest returns.
func decodeManifest(data []byte) (*tree, error) {
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("its version is %d, want %d", m.Version, manifestVersion)
	}
	t := newTree()
	for _, f := range m.Files {
		if err := errors.Join(CheckPath(f.Path), f.Blob.Check()); err != nil {
			return nil, err
		}
		if f.Size < 0 || f.Size > blob.MaxSize {
			return nil, fmt.Errorf("the file %q has %d bytes", f.Path, f.Size)
		}
		if err := t.put(f.Path, file{size: f.Size, exec: f.Exec, ref: f.Blob}); err != nil {
			return nil, err
		}
	}
	if again, err := encodeManifest(t); err != nil || !bytes.Equal(again, data) {
		return nil, errors.New("it is not in the form that is written")
	}
	return t, nil
}
