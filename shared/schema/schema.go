// Package schema infers JSON Schemas from Go types and checks JSON against them, with errors that name the field.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a JSON Schema of type object, ready to validate. It is immutable and safe for concurrent use.
type Schema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
}

// For returns the schema of T, which must be a struct or a map, or the given schema if it is not empty.
func For[T any](given json.RawMessage) (*Schema, error) {
	if len(given) > 0 {
		return Parse(given)
	}
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("inferring the input schema: %w", err)
	}
	return compile(s)
}

// Parse reads a JSON Schema of type object.
func Parse(raw json.RawMessage) (*Schema, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	return compile(&s)
}

// CheckObject reports what keeps raw from being a JSON Schema of type object.
func CheckObject(raw json.RawMessage) error {
	_, err := Parse(raw)
	return err
}

func compile(s *jsonschema.Schema) (*Schema, error) {
	if s.Type != "object" {
		return nil, errors.New(`the input of a tool is a JSON object: use a struct, or a schema with "type": "object"`)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolving the schema: %w", err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the schema: %w", err)
	}
	return &Schema{raw: raw, resolved: resolved}, nil
}

// JSON returns the schema as JSON. Do not change the bytes.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Validate reports what is wrong with input, a JSON document, naming the field; nil if nothing is.
func (s *Schema) Validate(input json.RawMessage) error {
	var v any
	if err := json.Unmarshal(input, &v); err != nil {
		return fmt.Errorf("the input is not JSON: %w", err)
	}
	return s.resolved.Validate(v)
}
