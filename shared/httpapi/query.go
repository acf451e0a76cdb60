package httpapi

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bdk-lambda/bdk/shared/schema"
)

// params are the query parameters of a request, each given once.
type params map[string]string

// query reads the query, which must have no other parameters than the known ones.
func (x *exchange) query(known ...string) (params, error) {
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query cannot be read: %s", err.Error())
	}
	p := make(params, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return nil, invalid("unknown query parameter %.80q: this route takes none", name)
		case !slices.Contains(known, name):
			return nil, invalid("unknown query parameter %.80q%s; the parameters are %s", name, suggest(name, known), strings.Join(known, ", "))
		case len(values[name]) > 1:
			return nil, invalid("query parameter %q is given twice", name)
		}
		p[name] = values[name][0]
	}
	return p, nil
}

// number returns a parameter that is an integer from lo to hi.
func (p params) number(name string, fallback, lo, hi int64) (int64, error) {
	v, ok := p[name]
	if !ok {
		return fallback, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, invalid("query parameter %q must be an integer from %d to %d, not %.80q", name, lo, hi, v)
	}
	return n, nil
}

// choice returns a parameter that is one of the given values; the first is its default.
func (p params) choice(name string, values ...string) (string, error) {
	v, ok := p[name]
	if !ok {
		return values[0], nil
	}
	if !slices.Contains(values, v) {
		return "", invalid("query parameter %q must be %s, not %.80q", name, strings.Join(values, " or "), v)
	}
	return v, nil
}

// suggest returns a hint at the known name that was probably meant, "" if none is near.
func suggest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := schema.Distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(k)/2 {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}
