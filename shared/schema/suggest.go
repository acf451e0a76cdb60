package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// suggest says what to write instead of an unknown property. Names that are missing are preferred.
func suggest(s *jsonschema.Schema, name string, missing []string) string {
	known := slices.Sorted(maps.Keys(s.Properties))
	known = slices.DeleteFunc(known, func(k string) bool { return isFalse(s.Properties[k]) })
	best, least := "", 1+min(len(name)/2, 3) // a slip in a short name, up to three in a long one
	for _, candidate := range append(slices.Clone(missing), known...) {
		if d := Distance(fold(name), fold(candidate)); d < least {
			best, least = candidate, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) == 0:
		return "there are none: leave it out"
	default:
		return shortenTo("the properties are "+strings.Join(known, ", "), 600)
	}
}

func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// Distance counts the single-byte edits that make b of a, comparing their first 60 bytes: how far a name is from one that was
// meant.
func Distance(a, b string) int {
	a, b = a[:min(len(a), 60)], b[:min(len(b), 60)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
