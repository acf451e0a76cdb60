package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// Bounds of the files of a new workspace.
const (
	maxFiles     = 1000
	maxFileBytes = 1 << 20 // all contents together
)

// manifest is the form in which the files of a new workspace are stored, in one blob.
type manifest struct {
	Version int               `json:"version"`
	Files   map[string]string `json:"files"` // content by path
}

// store keeps files and returns the reference to them.
func (x *exchange) store(ctx context.Context, files map[string]string) (string, error) {
	if x.opts.Blobs == nil {
		return "", invalid("this host keeps no workspace files: leave out \"workspaceFiles\"")
	}
	raw, err := json.Marshal(manifest{Version: 1, Files: files})
	if err != nil {
		return "", fmt.Errorf("encoding workspace files: %w", err)
	}
	ref, err := x.opts.Blobs.Put(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("storing workspace files: %w", err)
	}
	return string(ref), nil
}

// files returns a field that holds the content of files by their path.
func (o object) files(name string) (map[string]string, error) {
	raw, ok := o[name]
	if !ok {
		return nil, nil
	}
	var contents object
	if kind := kindOf(raw); kind != "an object" || json.Unmarshal(raw, &contents) != nil {
		return nil, invalid("field %q must be an object of path to text, not %s", name, kind)
	}
	if len(contents) > maxFiles {
		return nil, tooLarge("field %q has %d files: the limit is %d", name, len(contents), maxFiles)
	}
	files := make(map[string]string, len(contents))
	total := 0
	for _, p := range slices.Sorted(maps.Keys(contents)) {
		if err := workspace.CheckPath(p); err != nil {
			return nil, invalid("field %q: %s", name, err)
		}
		var text string
		if kind := kindOf(contents[p]); kind != "a string" || json.Unmarshal(contents[p], &text) != nil {
			return nil, invalid("field %q: the content of %.80q must be a string, not %s", name, p, kind)
		}
		if total += len(text); total > maxFileBytes {
			return nil, tooLarge("field %q has over %d bytes of text", name, maxFileBytes)
		}
		files[p] = text
	}
	return files, checkClash(name, files)
}

// checkClash refuses paths that cannot stand beside each other in every file system.
func checkClash(field string, files map[string]string) error {
	taken := make(map[string]string, len(files)) // by path in lower case
	for p := range files {
		if other, ok := taken[strings.ToLower(p)]; ok {
			return invalid("field %q: the paths %.80q and %.80q differ in case only", field, min(p, other), max(p, other))
		}
		taken[strings.ToLower(p)] = p
	}
	for p := range files {
		for dir := path.Dir(strings.ToLower(p)); dir != "."; dir = path.Dir(dir) {
			if file, ok := taken[dir]; ok {
				return invalid("field %q: %.80q is a file, so %.80q cannot be in it", field, file, p)
			}
		}
	}
	return nil
}

// faultOf returns the fault in err that is meant for the client.
func faultOf(err error) (*bdkerr.Error, bool) {
	var e *bdkerr.Error
	ok := errors.As(err, &e)
	return e, ok
}
