package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of [Object].
const (
	MaxBytes = 1 << 20 // size of the document
	MaxDepth = 64      // objects and arrays inside each other
)

// Object reports what keeps raw, which a stranger wrote, from being one JSON object that all readers read alike: it is
// valid JSON and UTF-8, no key appears twice in an object, numbers fit a float64, and it keeps to [MaxBytes] and [MaxDepth].
// The error says where the fault is and is written for the author of raw, who may be a model.
func Object(raw []byte) error {
	return ObjectWithin(raw, MaxBytes)
}

// ObjectWithin is [Object] with another bound than [MaxBytes].
func ObjectWithin(raw []byte, maxBytes int) error {
	if len(raw) > maxBytes {
		return fmt.Errorf("the input has %d bytes: send at most %d", len(raw), maxBytes)
	}
	if i := invalidUTF8(raw); i >= 0 {
		return fmt.Errorf("the input is not UTF-8: byte %d is 0x%02x", i, raw[i])
	}
	if err := scan(raw); err != nil {
		return err
	}
	if kind := kindOf(raw); kind != "an object" {
		return fmt.Errorf("the input must be a JSON object, but is %s", kind)
	}
	return nil
}

func invalidUTF8(raw []byte) int {
	if utf8.Valid(raw) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
}

// A scope is an object or array that is being read.
type scope struct {
	keys map[string]bool // nil in an array
	key  string          // the key read last
	next bool            // in an object: a value comes next
	n    int             // in an array: how many values were read
}

// scan reports the first fault of raw, whatever its top-level value is.
func scan(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var open []scope
	for {
		token, err := dec.Token()
		if err != nil {
			return syntax(raw, err)
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '}' || token == ']' {
				open = open[:len(open)-1]
				break
			}
			if enter(open); len(open) == MaxDepth {
				return fmt.Errorf("%sthe input is nested more than %d levels deep", at(pathOf(open[:3]), "… "), MaxDepth)
			}
			open = append(open, scope{})
			if token == '{' {
				open[len(open)-1].keys = map[string]bool{}
			}
		case string:
			if isKey(open) {
				top := &open[len(open)-1]
				if top.keys[token] {
					return fmt.Errorf("%sthe key %q appears twice: send it once", at(pathOf(open[:len(open)-1]), ": "), token)
				}
				top.keys[token], top.key, top.next = true, token, true
				break
			}
			enter(open)
		case json.Number:
			enter(open)
			if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
				return fmt.Errorf("%sthe number %s is too large", at(pathOf(open), ": "), shorten(token.String()))
			}
		default:
			enter(open)
		}
		if len(open) == 0 {
			return syntax(raw, nil)
		}
	}
}

func isKey(open []scope) bool {
	return len(open) > 0 && open[len(open)-1].keys != nil && !open[len(open)-1].next
}

// enter notes that a value begins in the innermost scope.
func enter(open []scope) {
	if len(open) == 0 {
		return
	}
	open[len(open)-1].next = false
	open[len(open)-1].n++
}

// pathOf names the value that is being read, "" for the top.
func pathOf(open []scope) string {
	path := ""
	for _, s := range open {
		if s.keys == nil {
			path = index(path, s.n-1)
		} else {
			path = join(path, s.key)
		}
	}
	return path
}

// syntax says what is wrong with raw, whose reading ended with err, nil if it is valid JSON.
func syntax(raw []byte, err error) error {
	if json.Valid(raw) { // decides, also about what follows the first value
		return nil
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return errors.New("the input is empty: send a JSON object, {} if there is nothing to say")
	}
	err = errors.Join(json.Unmarshal(raw, new(json.RawMessage)), err)
	var fault *json.SyntaxError
	if !errors.As(err, &fault) {
		return fmt.Errorf("the input is not valid JSON: %w", err)
	}
	if fault.Offset >= int64(len(raw)) && (errors.Is(err, io.ErrUnexpectedEOF) || strings.HasPrefix(fault.Error(), "unexpected end")) {
		return fmt.Errorf("the input is not valid JSON: it breaks off after %d bytes", len(raw))
	}
	return fmt.Errorf("the input is not valid JSON: byte %d: %w", fault.Offset, fault)
}

// kindOf returns what a JSON value is, in words.
func kindOf(raw []byte) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
