package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxSize = 64 << 10 // bytes of a version

// decode reads one version. Its errors show keys and never values, so they do not wrap those of the JSON decoder.
func decode(text string) (Values, error) {
	switch {
	case len(text) > maxSize:
		return nil, fmt.Errorf("it has %d bytes, %d are allowed", len(text), maxSize)
	case !utf8.ValidString(text):
		return nil, errors.New("it is not UTF-8")
	}
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		at := ""
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = fmt.Sprintf(" (at byte %d)", e.Offset)
		}
		return nil, errors.New("it is not JSON" + at + `: write {"bearer:<name>":"<token>","<VARIABLE>":"<value>"}`)
	}
	values, err := members(json.NewDecoder(strings.NewReader(text)))
	switch {
	case err != nil:
		return nil, err
	case len(values) == 0:
		return nil, errors.New("it has no keys")
	}
	return values, distinct(values)
}

// members reads the members of an object in valid JSON.
func members(dec *json.Decoder) (Values, error) {
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	values := make(Values)
	for dec.More() {
		k, _ := dec.Token() // valid: see decode
		v, _ := dec.Token()
		key, _ := k.(string)
		value, isText := v.(string)
		if !isText {
			return nil, fmt.Errorf("key %.80q: its value is not a string", key)
		}
		if _, again := values[key]; again {
			return nil, fmt.Errorf("key %.80q: it is there twice", key)
		}
		if err := check(key, value); err != nil {
			return nil, err
		}
		values[key] = value
	}
	return values, nil
}

func check(key, value string) error {
	name, isToken := strings.CutPrefix(key, BearerPrefix)
	switch {
	case !isToken && !isVariable(key):
		return fmt.Errorf("key %.80q: a key is bearer:<name> or the name of a variable (letters, digits and _, not beginning with a digit)", key)
	case !isToken:
		return nil
	case !isName(name):
		return fmt.Errorf("key %.80q: the name of a principal is a lower-case letter followed by lower-case letters, digits, _ or -", key)
	case value == "" || strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' }):
		return fmt.Errorf("key %.80q: a token has at least one character, all of them printable ASCII without spaces", key)
	}
	return nil
}

func isVariable(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_'
	})
}

func isName(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
}

// distinct checks that no token belongs to two principals.
func distinct(values Values) error {
	owners := make(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(key, BearerPrefix) {
			continue
		}
		if other, taken := owners[values[key]]; taken {
			return fmt.Errorf("key %.80q: its token is that of key %.80q too", key, other)
		}
		owners[values[key]] = key
	}
	return nil
}
