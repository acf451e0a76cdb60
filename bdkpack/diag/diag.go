// Package diag is how an author learns of a mistake: a code, a place, what is wrong and how to mend it.
//
// Whoever finds mistakes appends them to a [List] and goes on, so that an author sees all of them at once. Each package
// declares its codes in a file diags.go; a code is never given another meaning.
package diag

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// Severity says whether a diagnostic prevents a build. The zero Severity counts as [Error].
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the agent cannot be built
	Warning Severity = "warning" // the agent can be built, but may not do what its author expects
)

// Pos is a place in a file. The zero Pos is no place; a Line of 0 is the file as a whole, a Col of 0 the whole line.
type Pos struct {
	File string `json:"file,omitempty"` // as given by who made it; see [List.Relative]
	Line int    `json:"line,omitempty"` // from 1
	Col  int    `json:"col,omitempty"`  // in bytes, from 1
}

// Diagnostic is one mistake. Its JSON form is its fields in this order; those that are empty are left out, code, severity
// and message never are.
type Diagnostic struct {
	Code     string   `json:"code"` // BDK and three digits
	Severity Severity `json:"severity"`
	Pos
	Message string `json:"message"`           // what is wrong, without a full stop at the end
	Help    string `json:"help,omitempty"`    // how to mend it
	Excerpt string `json:"excerpt,omitempty"` // the line of source at Pos, see [SourceLine]
}

// List is diagnostics in the order they are shown, see [List.Sort]. A nil List marshals to an empty JSON array.
type List []Diagnostic

// HasErrors says whether a diagnostic prevents a build.
func (l List) HasErrors() bool { return l.Errors() > 0 }

// Errors returns how many diagnostics prevent a build.
func (l List) Errors() int {
	n := 0
	for _, d := range l {
		if d.Severity != Warning {
			n++
		}
	}
	return n
}

// Sort returns the diagnostics ordered by file, line, column, code and message, each once.
func (l List) Sort() List {
	sorted := slices.Clone(l)
	slices.SortFunc(sorted, compare)
	return slices.CompactFunc(sorted, func(a, b Diagnostic) bool { return compare(a, b) == 0 })
}

func compare(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message),
	)
}

// Relative returns the diagnostics with the files below dir, an absolute path, named relative to it.
func (l List) Relative(dir string) List {
	out := slices.Clone(l)
	for i, d := range out {
		if rel, err := filepath.Rel(dir, d.File); err == nil && filepath.IsLocal(rel) {
			out[i].File = rel
		}
	}
	return out
}

// maxExcerpt bounds what is shown of a line of source, in bytes.
const maxExcerpt = 400

// SourceLine returns line number line of a source text, counted from 1: without its line end, cut where it is overlong and
// with U+FFFD in place of invalid UTF-8. It is empty if there is no such line.
func SourceLine(src []byte, line int) string {
	for n := 1; n < line && len(src) > 0; n++ {
		_, src, _ = bytes.Cut(src, []byte("\n"))
	}
	if line < 1 {
		return ""
	}
	text, _, _ := bytes.Cut(src, []byte("\n"))
	return strings.ToValidUTF8(strings.TrimSuffix(string(text[:min(len(text), maxExcerpt)]), "\r"), "\uFFFD")
}
