package harness

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Bounds of what one read shows.
const (
	maxLines  = 2000
	maxLine   = 2000     // bytes
	maxAnswer = 48 << 10 // bytes; less than the model reads of all results of a step by default
)

type readInput struct {
	Path   string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line to show; default 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to show; default 2000"`
}

func readTool() bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Reads a text file of the workspace. Each line is shown after its number and a tab, which are not part of the file. " +
			"A long file is shown in parts: the end of the answer says how to go on. Of a file that is no text only the type and the size are shown.",
		Effect: bdk.Read,
	}, read)
}

func read(ctx context.Context, call *bdk.Call, in readInput) (string, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return "", fmt.Errorf("offset is %d and limit is %d: they are numbers of lines, from 1, or left out", in.Offset, in.Limit)
	}
	name, err := filePath(in.Path)
	if err != nil {
		return "", err
	}
	data, err := load(ctx, call, name)
	if err != nil {
		return "", err
	}
	if kind := binary(data); kind != "" {
		return fmt.Sprintf("%s is no text: %s, %d bytes", name, kind, len(data)), nil
	}
	return show(name, data, max(in.Offset, 1), in.Limit)
}

// show returns the lines of a file from first on, limit of them (0: as many as there may be).
func show(name string, data []byte, first, limit int) (string, error) {
	if len(data) == 0 {
		return name + " is empty", nil
	}
	if limit == 0 || limit > maxLines {
		limit = maxLines
	}
	total := bytes.Count(data, []byte("\n"))
	if !bytes.HasSuffix(data, []byte("\n")) {
		total++
	}
	if first > total {
		return "", fmt.Errorf("%s has %d lines: there is no line %d", name, total, first)
	}
	var b strings.Builder
	n := 0 // the number of the last line that was looked at
	for line := range bytes.Lines(data) {
		if n++; n < first {
			continue
		}
		shown := fmt.Sprintf("%d\t%s\n", n, cut(bytes.TrimRight(line, "\r\n"), maxLine))
		if n == first+limit || b.Len()+len(shown) > maxAnswer {
			fmt.Fprintf(&b, "(the file has %d lines: go on with offset %d)\n", total, n)
			break
		}
		b.WriteString(shown)
	}
	if crlf(data) {
		b.WriteString("(the lines of the file end in CR LF)\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// crlf reports whether all lines end in CR LF.
func crlf(data []byte) bool {
	n := bytes.Count(data, []byte("\r\n"))
	return n > 0 && n == bytes.Count(data, []byte("\n"))
}
