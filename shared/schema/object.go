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
	var s scanner
	for {
		token, err := dec.Token()
		if err != nil {
			return syntax(raw, err)
		}
		if err := s.take(token); err != nil {
			return err
		}
		if len(s.open) == 0 {
			return syntax(raw, nil)
		}
	}
}

// A scanner knows where in a document it is.
type scanner struct {
	open []scope // outermost first
}

func (s *scanner) take(token json.Token) error {
	switch token := token.(type) {
	case json.Delim:
		if token == '}' || token == ']' {
			s.open = s.open[:len(s.open)-1]
			return nil
		}
		return s.enter(token == '{')
	case string:
		if n := len(s.open); n > 0 && s.open[n-1].keys != nil && !s.open[n-1].next {
			return s.key(token)
		}
	case json.Number:
		s.value()
		if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
			return fmt.Errorf("%sthe number %s is too large", at(pathOf(s.open), ": "), shorten(token.String()))
		}
		return nil
	}
	s.value()
	return nil
}

// value notes that a value begins in the innermost scope.
func (s *scanner) value() {
	if n := len(s.open); n > 0 {
		s.open[n-1].next = false
		s.open[n-1].n++
	}
}

func (s *scanner) enter(object bool) error {
	s.value()
	if len(s.open) == MaxDepth {
		return fmt.Errorf("%sthe input is nested more than %d levels deep", at(pathOf(s.open[:3]), "… "), MaxDepth)
	}
	inner := scope{}
	if object {
		inner.keys = map[string]bool{}
	}
	s.open = append(s.open, inner)
	return nil
}

func (s *scanner) key(key string) error {
	outer, top := s.open[:len(s.open)-1], &s.open[len(s.open)-1]
	if top.keys[key] {
		return fmt.Errorf("%sthe key %q appears twice: send it once", at(pathOf(outer), ": "), shorten(key))
	}
	top.keys[key], top.key, top.next = true, key, true
	return nil
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
