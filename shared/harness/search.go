package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Bounds of searches.
const (
	maxFound    = 1000      // files or entries that are listed
	maxMatches  = 500       // lines that grep shows, at most
	fewMatches  = 100       // and if it is not told how many
	maxShown    = 300       // bytes of a line that grep shows
	maxSearched = 8 << 20   // bytes of a file that grep reads
	maxTotal    = 256 << 20 // bytes of all files together
	maxWidth    = 64 << 10  // bytes of a line that grep looks at
	maxRegexp   = 1024      // bytes of a regular expression
	maxProgram  = 5000      // instructions of a regular expression: each may be looked at for each byte
	chunk       = 8         // files that are read at the same time
)

type listInput struct {
	Path string `json:"path,omitempty" jsonschema:"the folder, relative to the workspace; default: the workspace itself"`
}

func listTool() bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Lists what is in a folder of the workspace: files with their sizes, and folders, which end in a slash, with the number of files in them.",
		Effect:      bdk.Read,
	}, func(ctx context.Context, call *bdk.Call, in listInput) (string, error) {
		folder, err := folderPath(in.Path)
		if err != nil {
			return "", err
		}
		files, err := listFiles(ctx, call)
		if err != nil {
			return "", err
		}
		if files, err = under(files, folder); err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "(the workspace has no files)", nil
		}
		return bounded(entries(files, folder)), nil
	})
}

// entries describes what is in a folder: files are all that are below it, in order.
func entries(files []bdk.File, folder string) []string {
	var lines []string
	for i := 0; i < len(files); {
		rest := relative(files[i].Path, folder)
		name, _, deeper := strings.Cut(rest, "/")
		if !deeper {
			lines = append(lines, fmt.Sprintf("%s (%s)", rest, describe(files[i])))
			i++
			continue
		}
		dir := strings.TrimSuffix(files[i].Path, rest) + name + "/"
		n := 0
		for ; i < len(files) && strings.HasPrefix(files[i].Path, dir); i++ {
			n++
		}
		lines = append(lines, fmt.Sprintf("%s/ (%d files)", name, n))
	}
	return lines
}

// bounded joins lines, but not too many.
func bounded(lines []string) string {
	size := 0
	for i, line := range lines {
		if size += len(line) + 1; i == maxFound || size > maxAnswer {
			lines = append(slices.Clone(lines[:i]), fmt.Sprintf("(and %d more: narrow it down)", len(lines)-i))
			break
		}
	}
	return strings.Join(lines, "\n")
}

type globInput struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.go, docs/*.{md,txt} or *_test.go"`
	Path    string `json:"path,omitempty" jsonschema:"the folder to look in; default: the workspace itself"`
}

func globTool() bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Finds files of the workspace by a pattern, which is relative to path: * and ? stand for characters of a name, ** for any number of folders, " +
			"[a-z] for a character, {a,b} for alternatives. A pattern without a slash finds files of that name in all folders.",
		Effect: bdk.Read,
	}, func(ctx context.Context, call *bdk.Call, in globInput) (string, error) {
		found, err := glob(ctx, call, in.Path, in.Pattern)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "(no files match)", nil
		}
		lines := make([]string, len(found))
		for i, f := range found {
			lines[i] = f.Path
		}
		return bounded(lines), nil
	})
}

// glob returns the files in a folder that match a pattern.
func glob(ctx context.Context, call *bdk.Call, in, match string) ([]bdk.File, error) {
	folder, err := folderPath(in)
	if err != nil {
		return nil, err
	}
	p, err := compile(match)
	if err != nil {
		return nil, err
	}
	files, err := listFiles(ctx, call)
	if err != nil {
		return nil, err
	}
	if files, err = under(files, folder); err != nil {
		return nil, err
	}
	var found []bdk.File
	for _, f := range files {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if p.match(relative(f.Path, folder)) {
			found = append(found, f)
		}
	}
	return found, nil
}

// relative returns what a path in a folder has below it, or its last name if the folder is that file.
func relative(name, folder string) string {
	if name == folder {
		return path.Base(name)
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, folder), "/")
}

type grepInput struct {
	Pattern    string `json:"pattern" jsonschema:"a regular expression of RE2 for one line; (?i) at its beginning ignores case"`
	Path       string `json:"path,omitempty" jsonschema:"the folder or file to look in; default: the workspace itself"`
	Glob       string `json:"glob,omitempty" jsonschema:"look only in files that match this pattern, as of the tool glob"`
	MaxResults int    `json:"maxResults,omitempty" jsonschema:"how many lines to show; default 100, at most 500"`
}

func grepTool() bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Finds lines in the text files of the workspace by a regular expression. Each is shown as path:number:line.",
		Effect:      bdk.Read,
	}, func(ctx context.Context, call *bdk.Call, in grepInput) (string, error) {
		if in.MaxResults < 0 {
			return "", fmt.Errorf("maxResults is %d: leave it out for %d", in.MaxResults, fewMatches)
		}
		re, err := expression(in.Pattern)
		if err != nil {
			return "", fmt.Errorf("the pattern: %w", err)
		}
		files, err := glob(ctx, call, in.Path, cmp.Or(in.Glob, "**"))
		if err != nil {
			return "", err
		}
		s := search{re: re, limit: min(cmp.Or(in.MaxResults, fewMatches), maxMatches)}
		if err := s.run(ctx, call.Workspace, files); err != nil {
			return "", err
		}
		return s.answer(), nil
	})
}

// expression compiles a regular expression that does not take long for a line, whatever is in it.
func expression(s string) (*regexp.Regexp, error) {
	if s == "" || len(s) > maxRegexp {
		return nil, fmt.Errorf("it has %d bytes: it must have from 1 to %d", len(s), maxRegexp)
	}
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w; put a backslash before what has to be taken literally", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxProgram {
		return nil, errors.New("it repeats too much: write it with smaller numbers in braces")
	}
	return regexp.Compile(s)
}

// search is a grep on its way.
type search struct {
	re      *regexp.Regexp
	limit   int
	matches int
	out     strings.Builder
	full    bool     // there are more matches
	skipped []string // files that were not looked at
	bytes   int64    // that were read
}

// run looks at files in their order.
func (s *search) run(ctx context.Context, w bdk.Workspace, files []bdk.File) error {
	for part := range slices.Chunk(files, chunk) {
		contents := make([][]byte, len(part))
		g, gctx := errgroup.WithContext(ctx)
		for i, f := range part {
			if f.Size > maxSearched || s.bytes+f.Size > maxTotal {
				s.skipped = append(s.skipped, f.Path)
				continue
			}
			s.bytes += f.Size
			g.Go(func() (err error) {
				if contents[i], err = w.ReadFile(gctx, f.Path); errors.Is(err, fs.ErrNotExist) {
					return nil // somebody removed it meanwhile
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i, f := range part {
			if err := s.file(ctx, f.Path, contents[i]); err != nil || s.full {
				return err
			}
		}
	}
	return nil
}

// file looks at one file.
func (s *search) file(ctx context.Context, name string, data []byte) error {
	if binary(data) != "" {
		return nil
	}
	n := 0
	for line := range bytes.Lines(data) {
		if n++; ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line = bytes.TrimRight(line, "\r\n")
		at := s.re.FindIndex(line[:min(len(line), maxWidth)])
		if at == nil {
			continue
		}
		shown := fmt.Sprintf("%s:%d:%s\n", name, n, around(line, at[0]))
		if s.matches == s.limit || s.out.Len()+len(shown) > maxAnswer {
			s.full = true
			return nil
		}
		s.matches++
		s.out.WriteString(shown)
	}
	return nil
}

// around returns a line, or of a long one the part with the match at the byte at.
func around(line []byte, at int) string {
	if len(line) <= maxShown || at < maxShown/2 {
		return cut(line, maxShown)
	}
	start := at - maxShown/4
	for start < at && !utf8.RuneStart(line[start]) {
		start++
	}
	return "…" + cut(line[start:], maxShown)
}

// answer returns what was found.
func (s *search) answer() string {
	if s.matches == 0 {
		s.out.WriteString("(no lines match)\n")
	}
	if s.full {
		fmt.Fprintf(&s.out, "(there are more: %d lines are shown; narrow it down)\n", s.matches)
	}
	if n := len(s.skipped); n > 0 {
		fmt.Fprintf(&s.out, "(not looked at, too large: %s)\n", strings.Join(s.skipped[:min(n, 10)], ", "))
	}
	return strings.TrimSuffix(s.out.String(), "\n")
}
