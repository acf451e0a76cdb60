package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/schema"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// filesOf returns the files of the session of a call.
func filesOf(call *bdk.Call) (bdk.Workspace, error) {
	if call.Workspace == nil {
		return nil, errors.New("this call has no workspace: nothing was done")
	}
	return call.Workspace, nil
}

// listFiles returns all files of the session of a call.
func listFiles(ctx context.Context, call *bdk.Call) ([]bdk.File, error) {
	w, err := filesOf(call)
	if err != nil {
		return nil, err
	}
	return w.Files(ctx)
}

// filePath returns the path of a file as a workspace has it.
func filePath(p string) (string, error) {
	p = strings.TrimPrefix(p, "./")
	return p, workspace.CheckPath(p)
}

// folderPath returns the path of a folder, or of a file, as a workspace has it, "" for the workspace itself.
func folderPath(p string) (string, error) {
	if p == "" || p == "." || p == "./" {
		return "", nil
	}
	return filePath(strings.TrimSuffix(p, "/"))
}

// under returns the files in a folder, or the file of that name.
func under(files []bdk.File, folder string) ([]bdk.File, error) {
	if folder == "" {
		return files, nil
	}
	var found []bdk.File
	for _, f := range files {
		if f.Path == folder || strings.HasPrefix(f.Path, folder+"/") {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil, missing(files, folder)
	}
	return found, nil
}

// missing returns the error for a path at which there is nothing, which names up to three that may have been meant.
func missing(files []bdk.File, name string) error {
	near := nearest(files, name)
	switch {
	case len(files) == 0:
		return fmt.Errorf("there is no %q: the workspace has no files", name)
	case len(near) == 0:
		return fmt.Errorf("there is no %q: look for it with ls or glob", name)
	}
	return fmt.Errorf("there is no %q: did you mean %s?", name, strings.Join(near, ", "))
}

// nearest returns the paths that are most like name: by their last names, then by themselves.
func nearest(files []bdk.File, name string) []string {
	type candidate struct {
		path string
		last int
		all  int
	}
	var near []candidate
	base := strings.ToLower(path.Base(name))
	for _, f := range files {
		last := schema.Distance(strings.ToLower(path.Base(f.Path)), base)
		if last <= min(len(base)/3, 3) {
			near = append(near, candidate{f.Path, last, schema.Distance(f.Path, name)})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.all, b.all)) })
	var paths []string
	for _, c := range near[:min(len(near), 3)] {
		paths = append(paths, c.path)
	}
	return paths
}

// load returns the content of a file.
func load(ctx context.Context, call *bdk.Call, name string) ([]byte, error) {
	w, err := filesOf(call)
	if err != nil {
		return nil, err
	}
	data, err := w.ReadFile(ctx, name)
	if err == nil {
		return data, nil
	}
	files, listErr := w.Files(ctx)
	switch _, folderErr := under(files, name); {
	case listErr != nil:
		return nil, err
	case folderErr == nil && !slices.ContainsFunc(files, func(f bdk.File) bool { return f.Path == name }):
		return nil, fmt.Errorf("%q is a folder: list it with ls", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing(files, name)
	}
	return nil, err
}

// describe says what a file is, without reading it.
func describe(f bdk.File) string {
	if f.Exec {
		return fmt.Sprintf("%d bytes, executable", f.Size)
	}
	return fmt.Sprintf("%d bytes", f.Size)
}

// binary returns the type of data that is no text, "" for text.
func binary(data []byte) string {
	kind := http.DetectContentType(data)
	switch {
	case !strings.HasPrefix(kind, "text/") || strings.Contains(kind, "utf-16"):
		return kind
	case bytes.Contains(data[:min(len(data), 8000)], []byte{0}):
		return "application/octet-stream"
	}
	return ""
}

// text returns bytes as a string, with U+FFFD for what is not UTF-8.
func text(data []byte) string { return strings.ToValidUTF8(string(data), "\uFFFD") }

// cut returns the first limit bytes of a long line in whole characters, with a note of how much is missing.
func cut(line []byte, limit int) string {
	if len(line) <= limit {
		return text(line)
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d more bytes)", text(line[:end]), len(line)-end)
}
