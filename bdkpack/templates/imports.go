package templates

import (
	"bytes"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// moveImports returns the Go file src with its imports of from, and of what lies below, replaced by those of to.
func moveImports(name string, src []byte, from, to string) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	for _, spec := range file.Imports {
		old, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		below, found := strings.CutPrefix(old, from)
		if !found || below != "" && below[0] != '/' {
			continue
		}
		start := files.Position(spec.Path.Pos()).Offset
		out.Write(src[done:start])
		out.WriteString(strconv.Quote(to + below))
		done = start + len(spec.Path.Value)
	}
	out.Write(src[done:])
	return format.Source(out.Bytes()) // the order of the imports may be another now
}
