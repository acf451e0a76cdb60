package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// MarshalJSON returns the diagnostics as an array; see [Diagnostic] for its elements.
func (l List) MarshalJSON() ([]byte, error) {
	all := make([]Diagnostic, 0, len(l))
	for _, d := range l {
		if d.Severity == "" {
			d.Severity = Error
		}
		all = append(all, d)
	}
	return json.Marshal(all)
}

// Render writes the diagnostics for people, with terminal colours if color is set: code and place, the line of source
// with a mark under the place, what is wrong and how to mend it.
func (l List) Render(w io.Writer, color bool) error {
	var b strings.Builder
	for i, d := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		d.render(&b, palette(color))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String returns the diagnostics as Render writes them without colours.
func (l List) String() string {
	var b strings.Builder
	_ = l.Render(&b, false) // a Builder never fails
	return b.String()
}

type colors struct{ bold, red, yellow, dim, reset string }

func palette(color bool) colors {
	if !color {
		return colors{}
	}
	return colors{bold: "\x1b[1m", red: "\x1b[1;31m", yellow: "\x1b[1;33m", dim: "\x1b[2m", reset: "\x1b[0m"}
}

func (d Diagnostic) render(b *strings.Builder, c colors) {
	name, tint := "error", c.red
	if d.Severity == Warning {
		name, tint = "warning", c.yellow
	}
	fmt.Fprintf(b, "%s%s[%s]%s%s: %s%s\n", tint, name, d.Code, c.reset, c.bold, clean(d.Message), c.reset)
	if place := d.String(); place != "" {
		fmt.Fprintf(b, "  %s-->%s %s\n", c.dim, c.reset, place)
	}
	if d.Excerpt != "" && d.Line > 0 {
		gutter := fmt.Sprintf("%5d", d.Line)
		fmt.Fprintf(b, "%s%s |%s %s\n", c.dim, gutter, c.reset, clean(d.Excerpt))
		if d.Col > 0 {
			fmt.Fprintf(b, "%s%s |%s %s%s^%s\n", c.dim, strings.Repeat(" ", len(gutter)), c.reset, indent(d.Excerpt, d.Col), tint, c.reset)
		}
	}
	if d.Help != "" {
		fmt.Fprintf(b, "  help: %s\n", strings.ReplaceAll(clean(d.Help), "\n", "\n        "))
	}
}

// String returns file:line:col, without the parts that are not known.
func (p Pos) String() string {
	switch {
	case p.File == "" || p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// indent returns white space as wide as the first col-1 bytes of line, whose tabs it keeps.
func indent(line string, col int) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, clean(line[:min(col-1, len(line))]))
}

// clean keeps control characters of an author's source away from the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			return '\uFFFD'
		}
		return r
	}, s)
}
