package project

import (
	"strings"
	"unicode"

	"github.com/bdk-lambda/bdk/shared/schema"
)

// nearest returns the one of the known names that name is a slip of, "" if it is none of them.
func nearest(name string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		d := schema.Distance(fold(name), fold(k))
		if limit := min(2, len(k)/4); name != k && d <= limit && d < at {
			best, at = k, d
		}
	}
	return best
}

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// snake returns a file's name in the form of a tool's name.
func snake(name string) string {
	var b strings.Builder
	previous := '_'
	for i, r := range name {
		switch {
		case unicode.IsUpper(r):
			if previous != '_' && (!unicode.IsUpper(previous) || lowerFollows(name[i+len(string(r)):])) {
				b.WriteByte('_')
			}
			b.WriteRune(unicode.ToLower(r))
		case r == '-' || r == '.' || r == ' ':
			if previous != '_' {
				b.WriteByte('_')
			}
			r = '_'
		default:
			b.WriteRune(r)
		}
		previous = r
	}
	return b.String()
}

func lowerFollows(rest string) bool {
	for _, r := range rest {
		return unicode.IsLower(r)
	}
	return false
}
