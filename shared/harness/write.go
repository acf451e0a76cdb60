package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// locks let the calls of a session change its files one after the other: a model edits a file at several places in one step.
// A lock may serve several sessions.
type locks struct {
	seed  maphash.Seed
	locks [64]chan struct{} // full: taken
}

func newLocks() *locks {
	l := &locks{seed: maphash.MakeSeed()}
	for i := range l.locks {
		l.locks[i] = make(chan struct{}, 1)
	}
	return l
}

// take waits until the calls of a session before this one are done. The caller must call done.
func (l *locks) take(ctx context.Context, session string) (done func(), err error) {
	lock := l.locks[maphash.String(l.seed, session)%uint64(len(l.locks))]
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another change of the files: %w", context.Cause(ctx))
	}
}

// ownPath returns the path of a file that may be changed. The skills and scripts of the agent may not: what people approve, and
// what the model is told by the agent's author, is not for the model to replace.
func ownPath(p string) (string, error) {
	name, err := filePath(p)
	if err == nil && workspace.InAgentDir(name) {
		return "", bdkerr.New(bdkerr.Forbidden, "the path %q cannot be written: %s is the agent's own folder", name, workspace.AgentDir)
	}
	return name, err
}

type writeInput struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"all that is to be in the file"`
	Exec    *bool  `json:"exec,omitempty" jsonschema:"whether the file may be executed; left out, a file stays as it is and a new one may not"`
}

func writeTool(changes *locks) bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Writes a text file of the workspace: creates it, with the folders it is in, or replaces all of it. To change a part of a file use edit.",
		Effect:      bdk.Read,
	}, func(ctx context.Context, call *bdk.Call, in writeInput) (string, error) {
		name, err := ownPath(in.Path)
		if err != nil {
			return "", err
		}
		done, err := changes.take(ctx, call.Session.ID)
		if err != nil {
			return "", err
		}
		defer done()
		old, exists, err := find(ctx, call, name)
		if err != nil {
			return "", err
		}
		exec := old.Exec
		if in.Exec != nil {
			exec = *in.Exec
		}
		if err := call.Workspace.WriteFile(ctx, name, []byte(in.Content), mode(exec)); err != nil {
			return "", err
		}
		what := "created"
		if exists {
			what = "replaced"
		}
		return fmt.Sprintf("%s %s: %s", what, name, describe(bdk.File{Size: int64(len(in.Content)), Exec: exec})), nil
	})
}

// find returns the file at name, if there is one.
func find(ctx context.Context, call *bdk.Call, name string) (bdk.File, bool, error) {
	files, err := listFiles(ctx, call)
	if err != nil {
		return bdk.File{}, false, err
	}
	i := slices.IndexFunc(files, func(f bdk.File) bool { return f.Path == name })
	if i < 0 {
		return bdk.File{}, false, nil
	}
	return files[i], true, nil
}

func mode(exec bool) fs.FileMode {
	if exec {
		return 0o755
	}
	return 0o644
}

type editInput struct {
	Path string `json:"path" jsonschema:"the file, relative to the workspace"`
	Old  string `json:"old" jsonschema:"the text to replace, exactly as it is in the file, without the line numbers of read"`
	New  string `json:"new" jsonschema:"the text to put there"`
	All  bool   `json:"all,omitempty" jsonschema:"replace every occurrence; otherwise there must be exactly one"`
}

func editTool(changes *locks) bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Replaces a text in a file of the workspace by another one. The old text must occur exactly once, so give enough of what " +
			"surrounds it, or set all. Edits of one file at the same time are made one after the other.",
		Effect: bdk.Read,
	}, func(ctx context.Context, call *bdk.Call, in editInput) (string, error) {
		name, err := ownPath(in.Path)
		if err != nil {
			return "", err
		}
		done, err := changes.take(ctx, call.Session.ID)
		if err != nil {
			return "", err
		}
		defer done()
		data, err := load(ctx, call, name)
		if err != nil {
			return "", err
		}
		in = in.ending(data)
		edited, n, err := in.apply(string(data))
		if err != nil {
			return "", fmt.Errorf("%s was not changed: %w", name, err)
		}
		f, _, err := find(ctx, call, name)
		if err != nil {
			return "", err
		}
		if err := call.Workspace.WriteFile(ctx, name, []byte(edited), mode(f.Exec)); err != nil {
			return "", err
		}
		if n > 1 {
			return fmt.Sprintf("replaced %d occurrences in %s", n, name), nil
		}
		return fmt.Sprintf("edited %s at line %s", name, where(string(data), in.Old, 1)), nil
	})
}

// ending returns the edit as the file's line ends want it: a model reads and writes lines that end in CR LF as if they ended in LF.
func (in editInput) ending(data []byte) editInput {
	if crlf(data) && !strings.Contains(in.Old+in.New, "\r") {
		in.Old, in.New = strings.ReplaceAll(in.Old, "\n", "\r\n"), strings.ReplaceAll(in.New, "\n", "\r\n")
	}
	return in
}

// apply returns data after the edit, and how many occurrences it replaced.
func (in editInput) apply(data string) (string, int, error) {
	switch in.Old {
	case "":
		return "", 0, errors.New("old is empty: give the text to replace, or use write")
	case in.New:
		return "", 0, errors.New("old and new are the same")
	}
	n := strings.Count(data, in.Old)
	switch {
	case n == 0:
		return "", 0, in.notFound(data)
	case n > 1 && !in.All:
		return "", 0, fmt.Errorf("old occurs %d times, at the lines %s: give more of what surrounds the one that is meant, or set all", n, where(data, in.Old, 10))
	case len(data)+n*(len(in.New)-len(in.Old)) > blob.MaxSize:
		return "", 0, fmt.Errorf("it would have more than %d bytes", blob.MaxSize)
	}
	return strings.ReplaceAll(data, in.Old, in.New), n, nil
}

// where returns the numbers of the first lines in which old occurs.
func where(data, old string, limit int) string {
	var lines []string
	line, rest := 1, data
	for range limit {
		i := strings.Index(rest, old)
		if i < 0 {
			return strings.Join(lines, ", ")
		}
		line += strings.Count(rest[:i], "\n")
		lines = append(lines, fmt.Sprint(line))
		line += strings.Count(old, "\n")
		rest = rest[i+len(old):]
	}
	if strings.Contains(rest, old) {
		lines = append(lines, "…")
	}
	return strings.Join(lines, ", ")
}

// notFound returns the error for an old text that is not in data, which says why that may be.
func (in editInput) notFound(data string) error {
	old := squeeze(in.Old)
	switch i := strings.Index(squeeze(data), old); {
	case i >= 0 && old != "":
		return fmt.Errorf("old does not occur, but at line %d there is a text that differs from it in white space only: copy that exactly", 1+strings.Count(squeeze(data)[:i], "\n"))
	case regexp.MustCompile(`^\s*\d+\t`).MatchString(in.Old):
		return errors.New("old does not occur: it begins with a line number of read, which is not part of the file")
	case binary([]byte(data)) != "":
		return errors.New("old does not occur: the file is no text")
	}
	return errors.New("old does not occur: read the file and copy the text exactly, with its white space")
}

// squeeze returns the same lines with single spaces between their words.
func squeeze(s string) string {
	var b bytes.Buffer
	for line := range strings.Lines(s) {
		b.WriteString(oneLine(line))
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
