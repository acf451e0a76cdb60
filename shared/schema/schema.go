// Package schema infers JSON Schemas from Go types and checks JSON against them, with errors that a model can act on: they
// name each field that is wrong and say what to send instead.
//
// Validity is decided by the JSON Schema library alone. This package words the library's verdict, and adds to inference what
// encoding/json reads and the library does not know.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a JSON Schema of type object, ready to validate. It is immutable and safe for concurrent use.
type Schema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
}

// For returns the schema of T, a struct or a map or a pointer to one, or the given schema if it is not empty.
//
// Properties are in the order of the fields and described by the tag jsonschema. A field is optional if it is a pointer or
// has omitempty or omitzero; other properties than those of the fields are refused. A time is a date-time, []byte is base64,
// a time.Duration counts nanoseconds, a json.RawMessage or a type with UnmarshalJSON is any JSON, a type with UnmarshalText
// is a string. A type that contains itself, and field tags that encoding/json and JSON Schema read differently, are errors.
func For[T any](given json.RawMessage) (*Schema, error) {
	if len(given) > 0 {
		return Parse(given)
	}
	s, err := infer(reflect.TypeFor[T]())
	if err != nil {
		return nil, fmt.Errorf("inferring the schema of %s: %w", reflect.TypeFor[T](), err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the schema: %w", err)
	}
	return compile(s, raw)
}

// Parse reads a JSON Schema of type object, of draft 2020-12 (the default) or draft 7. Its defaults are not applied, and
// its formats are not checked.
func Parse(raw json.RawMessage) (*Schema, error) {
	if err := Object(raw); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if err := checkRefs(&s); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	return compile(&s, compact.Bytes())
}

// CheckObject reports what keeps raw from being a JSON Schema of type object.
func CheckObject(raw json.RawMessage) error {
	_, err := Parse(raw)
	return err
}

func compile(s *jsonschema.Schema, raw json.RawMessage) (*Schema, error) {
	if s.Type != "object" {
		return nil, errors.New(`the schema is not of a JSON object: use a struct, or a schema with "type": "object"`)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolving the schema: %w", err)
	}
	// The library refuses an unknown $schema only when it validates.
	if err := resolved.Validate(map[string]any{}); err != nil && strings.HasPrefix(err.Error(), "cannot validate version") {
		return nil, fmt.Errorf("resolving the schema: %w", err)
	}
	return &Schema{raw: raw, resolved: resolved}, nil
}

// JSON returns the schema as JSON. Do not change the bytes.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Validate reports what is wrong with input, a JSON document; nil if nothing is. The error has one line for each fault, ten
// at most, that names the field and what it must be.
func (s *Schema) Validate(input json.RawMessage) error {
	var v any
	if err := json.Unmarshal(input, &v); err != nil {
		return syntax(input, err)
	}
	if err := s.resolved.Validate(v); err != nil {
		return s.explain(v, err)
	}
	return nil
}
