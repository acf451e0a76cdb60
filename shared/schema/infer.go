package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// infer returns the schema of t as encoding/json reads it.
func infer(t reflect.Type) (*jsonschema.Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := kinds{seen: map[reflect.Type]bool{}, own: map[reflect.Type]*jsonschema.Schema{}}
	if err := k.visit(t); err != nil {
		return nil, err
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: k.own})
	switch {
	case err != nil && strings.Contains(err.Error(), "cycle detected"):
		return nil, fmt.Errorf("the type contains itself; give the schema, where $ref can say so: %w", err)
	case err != nil:
		return nil, err
	}
	k.relax(s, t)
	if s.Type == "object" && s.Properties == nil && t.Kind() == reflect.Struct {
		s.Properties = map[string]*jsonschema.Schema{} // some providers insist on the keyword
	}
	return s, nil
}

// kinds are the types below an input type that do not have the JSON form of their Go kind.
type kinds struct {
	seen map[reflect.Type]bool
	own  map[reflect.Type]*jsonschema.Schema
}

// visit collects the types below t, and reports what encoding/json would read otherwise than the schema says.
func (k *kinds) visit(t reflect.Type) error {
	if k.seen[t] {
		return nil
	}
	k.seen[t] = true
	if s := ownForm(t); s != nil {
		k.own[t] = s
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // the others have nothing below them
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return k.visit(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if err := k.field(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *kinds) field(f reflect.StructField) error {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if slices.Contains(strings.Split(options, ","), "string") {
		return fmt.Errorf("field %s: the option string of its json tag is not supported: leave it out, or make the field a string", f.Name)
	}
	inner := f.Type
	if inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	if f.Anonymous && (name != "" || inner.Kind() != reflect.Struct) {
		return fmt.Errorf("field %s: an embedded field must be a struct without a json name: give the field a name", f.Name)
	}
	return k.visit(f.Type)
}

// ownForm returns the schema of a type whose JSON is not that of its kind, nil for others.
func ownForm(t reflect.Type) *jsonschema.Schema {
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: dateTime}
	case t == reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "integer", Description: "in nanoseconds"}
	case t == reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}
	case t == reflect.TypeFor[big.Int]():
		return &jsonschema.Schema{Type: "integer"}
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface:
		return nil // what it points to is asked instead
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return &jsonschema.Schema{Types: []string{"null", "boolean", "object", "array", "number", "string"}}
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	}
	return nil
}

// relax makes fields that are pointers optional: encoding/json leaves them nil.
func (k *kinds) relax(s *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s == nil || k.own[t] != nil {
		return
	}
	switch t.Kind() { //nolint:exhaustive // the others have no fields below them
	case reflect.Slice, reflect.Array:
		k.relax(s.Items, t.Elem())
	case reflect.Map:
		k.relax(s.AdditionalProperties, t.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous || !f.IsExported() || f.Tag.Get("json") == "-" {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			k.relax(s.Properties[name], f.Type)
			if f.Type.Kind() == reflect.Pointer {
				s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
			}
		}
	}
}
