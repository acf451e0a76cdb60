package schema

import (
	"strconv"
	"unicode"
)

// join names a property of the value at path: a.b, or a["odd key"].
func join(path, key string) string {
	switch {
	case !plain(key):
		return path + "[" + strconv.Quote(shorten(key)) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

// at returns path and sep, or "" for the top.
func at(path, sep string) string {
	if path == "" {
		return ""
	}
	return path + sep
}

func plain(key string) bool {
	for _, r := range key {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '$' {
			return false
		}
	}
	return key != "" && len(key) <= 60
}

// shorten cuts what would fill an error message.
func shorten(s string) string { return shortenTo(s, 60) }

func shortenTo(s string, characters int) string {
	runes := []rune(s)
	if len(runes) <= characters {
		return s
	}
	return string(runes[:characters]) + "…"
}
