package harness

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// maxPattern bounds the bytes of a pattern.
const maxPattern = 256

// pattern matches paths. It is a regular expression without backtracking, so that no pattern takes long.
type pattern struct {
	re   *regexp.Regexp
	base bool // match the last name of a path
}

// compile reads a pattern: * and ? stand for characters of a name, [a-z] and [!a-z] for one, ** for any number of folders,
// {a,b} for one of these, and a backslash takes the meaning from what follows. A pattern without a slash is for the last
// names of paths.
func compile(s string) (*pattern, error) {
	s = strings.TrimPrefix(s, "./")
	switch {
	case s == "":
		return nil, errors.New("the pattern is empty: **/* matches all files")
	case len(s) > maxPattern:
		return nil, fmt.Errorf("the pattern has %d bytes: at most %d are allowed", len(s), maxPattern)
	case strings.HasPrefix(s, "/"):
		return nil, fmt.Errorf("the pattern %.80q is absolute: patterns are relative to the workspace", s)
	}
	t := translator{rest: s}
	expr, err := t.translate()
	if err != nil {
		return nil, fmt.Errorf("the pattern %.80q: %w", s, err)
	}
	re, err := regexp.Compile("^(?:" + expr + ")$")
	if err != nil {
		return nil, fmt.Errorf("the pattern %.80q: %w", s, err)
	}
	return &pattern{re: re, base: !strings.Contains(s, "/") && s != "**"}, nil
}

// match reports whether p matches a path.
func (p *pattern) match(name string) bool {
	if p.base {
		name = path.Base(name)
	}
	return p.re.MatchString(name)
}

// translator makes a regular expression of a pattern.
type translator struct {
	rest   string
	out    strings.Builder
	braces int
	inside bool // of a name: something of it was before
}

func (t *translator) translate() (string, error) {
	for t.rest != "" {
		if err := t.next(); err != nil {
			return "", err
		}
	}
	if t.braces > 0 {
		return "", errors.New("a { is not closed")
	}
	return t.out.String(), nil
}

// next translates what stands first.
func (t *translator) next() error {
	if t.stars() {
		return nil
	}
	c := t.rest[0]
	inside := t.inside
	t.inside = true
	switch {
	case c == '*':
		t.take(1, `[^/]*`)
	case c == '?':
		t.take(1, `[^/]`)
	case c == '[':
		return t.class()
	case c == '{':
		t.braces++
		t.inside = inside
		t.take(1, `(?:`)
	case c == '}' && t.braces > 0:
		t.braces--
		t.take(1, `)`)
	case c == ',' && t.braces > 0:
		t.inside = false
		t.take(1, `|`)
	case c == '/':
		t.inside = false
		t.take(1, `/`)
	case c == '\\' && len(t.rest) == 1:
		return errors.New(`it ends in a \`)
	case c == '\\':
		t.rest = t.rest[1:]
		t.literal()
	default:
		t.literal()
	}
	return nil
}

// stars translates a ** that is a name of its own: **/ is any number of folders, ** at the end anything below.
func (t *translator) stars() bool {
	after, ok := strings.CutPrefix(t.rest, "**")
	if !ok || t.inside {
		return false
	}
	switch {
	case strings.HasPrefix(after, "/"):
		t.take(3, `(?:[^/]+/)*`)
	case after == "" || t.braces > 0 && (after[0] == '}' || after[0] == ','):
		t.take(2, `.+`)
	default:
		return false
	}
	return true
}

// take translates the first n bytes as expr.
func (t *translator) take(n int, expr string) {
	t.out.WriteString(expr)
	t.rest = t.rest[n:]
}

// literal translates one character that means itself.
func (t *translator) literal() {
	for i := range t.rest {
		if i > 0 {
			t.take(i, regexp.QuoteMeta(t.rest[:i]))
			return
		}
	}
	t.take(len(t.rest), regexp.QuoteMeta(t.rest))
}

// class translates [a-z].
func (t *translator) class() error {
	body := t.rest[1:]
	not := strings.HasPrefix(body, "!") || strings.HasPrefix(body, "^")
	if not {
		body = body[1:]
	}
	var set strings.Builder
	for i, r := range body {
		switch {
		case r == ']' && i > 0:
			expr := "[" + set.String() + "]"
			if not {
				expr = "[^/" + set.String() + "]"
			}
			t.take(len(t.rest)-len(body)+i+1, expr)
			return nil
		case r == '-' && i > 0:
			set.WriteByte('-')
		case r == '/':
			return errors.New("a [ has a slash")
		case r == '\\':
			return errors.New(`a [ has a \`)
		case strings.ContainsRune(`[]^&~-`, r):
			set.WriteByte('\\')
			set.WriteRune(r)
		default:
			set.WriteRune(r)
		}
	}
	return errors.New("a [ is not closed")
}
