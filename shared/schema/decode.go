package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

const dateTime = "date-time"

// Decode returns input, which Validate has accepted, as a T. There are integers and times that satisfy a schema and that
// their Go type cannot hold; the error names the field and says what to send.
func Decode[T any](s *Schema, input json.RawMessage) (T, error) {
	var v T
	err := json.Unmarshal(input, &v)
	if err == nil {
		return v, nil
	}
	if fault, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		value, path := strings.TrimPrefix(fault.Value, "number "), at(fault.Field, ": ")
		if value == fault.Value {
			return v, fmt.Errorf("%smust be what a %s reads, but is a JSON %s", path, fault.Type, value)
		}
		return v, fmt.Errorf("%smust be a number that fits %s%s, but is %s", path, fault.Type, plainInteger(fault.Type), value)
	}
	if where := s.wrongTime(input); where != nil {
		return v, where
	}
	return v, fmt.Errorf("reading the input: %w", err)
}

func plainInteger(t reflect.Type) string {
	if t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64 {
		return ""
	}
	return ", written without a decimal point or exponent"
}

// wrongTime names a date-time of input that a time.Time cannot hold, nil if there is none.
func (s *Schema) wrongTime(input json.RawMessage) (fault error) {
	var doc any
	if json.Unmarshal(input, &doc) != nil {
		return nil
	}
	w := s.walk(func(n node) {
		text, ok := n.value.(string)
		if !ok || n.schema.Format != dateTime || fault != nil {
			return
		}
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			fault = fmt.Errorf("%smust be a date and time with a time zone, such as 2030-01-31T15:04:05Z, but is %s", at(n.path, ": "), show(text))
		}
	})
	w.visit(node{schema: s.resolved.Schema(), value: doc})
	return fault
}
