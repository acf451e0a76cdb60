package project

import (
	"strings"
	"unicode"
)

// nearest returns the one of the known names that name is a slip of, "" if it is none of them.
func nearest(name string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		d := distance(fold(name), fold(k), at)
		if limit := min(2, len(k)/4); name != k && d <= limit && d < at {
			best, at = k, d
		}
	}
	return best
}

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// distance counts the bytes to insert, remove or replace to get from a to b. It is at most limit.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}

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
