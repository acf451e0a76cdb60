package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxFaults bounds the lines of an error.
const maxFaults = 10

// explain words the verdict that v does not match s.
func (s *Schema) explain(v any, verdict error) error {
	var faults []string
	w := s.walk(func(n node) {
		for _, fault := range s.faults(n) {
			if !slices.Contains(faults, fault) {
				faults = append(faults, fault)
			}
		}
	})
	w.visit(node{schema: s.resolved.Schema(), value: v})
	if len(faults) == 0 {
		return fmt.Errorf("the input does not match its schema: %s", shortenTo(innermost(verdict.Error()), 300))
	}
	if n := len(faults) - maxFaults; n > 0 {
		faults = append(faults[:maxFaults], fmt.Sprintf("and %d more", n))
	}
	return errors.New(strings.Join(faults, "\n"))
}

// innermost returns the words of the library without those for the schemas around the one that failed.
func innermost(verdict string) string {
	for strings.HasPrefix(verdict, "validating ") {
		_, rest, found := strings.Cut(verdict, ": ")
		if !found {
			break
		}
		verdict = rest
	}
	return verdict
}

// faults says what is wrong with the value of n itself.
func (s *Schema) faults(n node) []string {
	var faults []string
	add := func(format string, args ...any) {
		faults = append(faults, at(n.path, ": ")+fmt.Sprintf(format, args...))
	}
	if isFalse(n.schema) {
		return nil // the object it is in says that the property is unknown
	}
	if fails(&jsonschema.Schema{Type: n.schema.Type, Types: n.schema.Types}, n.value) {
		remedy := ""
		if n.value == nil && n.optional {
			remedy = ": leave it out instead"
		}
		add("must be %s, but is %s%s", typeNames(n.schema), typeOf(n.value), remedy)
		return faults
	}
	for _, r := range rules(n.schema, n.value) {
		if fails(&r.schema, n.value) {
			add("%s", r.text)
		}
	}
	faults = append(faults, objectFaults(n)...)
	for _, r := range s.choices(n.schema) {
		if fails(&r.schema, n.value) {
			add("%s", r.text)
		}
	}
	return faults
}

func objectFaults(n node) []string {
	object, ok := n.value.(map[string]any)
	if !ok {
		return nil
	}
	var faults, missing []string
	for _, name := range n.schema.Required {
		if _, ok := object[name]; !ok {
			missing = append(missing, name)
			faults = append(faults, join(n.path, name)+": required, but missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if slices.ContainsFunc(property(n.schema, name), isFalse) {
			faults = append(faults, fmt.Sprintf("%sunknown property %q; %s", at(n.path, ": "), shorten(name), suggest(n.schema, name, missing)))
		}
	}
	return faults
}

// A rule is a part of a schema and what to say if a value breaks it.
type rule struct {
	schema jsonschema.Schema
	text   string
}

// rules returns the rules of s that stand for themselves.
func rules(s *jsonschema.Schema, value any) []rule {
	var list []rule
	add := func(part jsonschema.Schema, format string, args ...any) {
		list = append(list, rule{part, fmt.Sprintf(format, args...) + ", but is " + show(value)})
	}
	size := func(part jsonschema.Schema, format string, limit, is int) {
		list = append(list, rule{part, fmt.Sprintf(format+", but has %d", limit, is)})
	}
	if s.Enum != nil {
		add(jsonschema.Schema{Enum: s.Enum}, "must be %s", oneOf(s.Enum))
	}
	if s.Const != nil {
		add(jsonschema.Schema{Const: s.Const}, "must be %s", show(*s.Const))
	}
	if s.MultipleOf != nil {
		add(jsonschema.Schema{MultipleOf: s.MultipleOf}, "must be a multiple of %v", *s.MultipleOf)
	}
	if s.Minimum != nil {
		add(jsonschema.Schema{Minimum: s.Minimum}, "must be at least %v", *s.Minimum)
	}
	if s.Maximum != nil {
		add(jsonschema.Schema{Maximum: s.Maximum}, "must be at most %v", *s.Maximum)
	}
	if s.ExclusiveMinimum != nil {
		add(jsonschema.Schema{ExclusiveMinimum: s.ExclusiveMinimum}, "must be greater than %v", *s.ExclusiveMinimum)
	}
	if s.ExclusiveMaximum != nil {
		add(jsonschema.Schema{ExclusiveMaximum: s.ExclusiveMaximum}, "must be less than %v", *s.ExclusiveMaximum)
	}
	if s.Pattern != "" {
		add(jsonschema.Schema{Pattern: s.Pattern}, "must match the regular expression %s", s.Pattern)
	}
	if s.MinLength != nil {
		size(jsonschema.Schema{MinLength: s.MinLength}, "must have at least %d characters", *s.MinLength, length(value))
	}
	if s.MaxLength != nil {
		size(jsonschema.Schema{MaxLength: s.MaxLength}, "must have at most %d characters", *s.MaxLength, length(value))
	}
	if s.MinItems != nil {
		size(jsonschema.Schema{MinItems: s.MinItems}, "must have at least %d items", *s.MinItems, length(value))
	}
	if s.MaxItems != nil {
		size(jsonschema.Schema{MaxItems: s.MaxItems}, "must have at most %d items", *s.MaxItems, length(value))
	}
	if s.MinProperties != nil {
		size(jsonschema.Schema{MinProperties: s.MinProperties}, "must have at least %d properties", *s.MinProperties, length(value))
	}
	if s.MaxProperties != nil {
		size(jsonschema.Schema{MaxProperties: s.MaxProperties}, "must have at most %d properties", *s.MaxProperties, length(value))
	}
	if s.UniqueItems {
		list = append(list, rule{jsonschema.Schema{UniqueItems: true}, "must not have the same item twice"})
	}
	return list
}

// choices returns the rules of s that are made of other schemas.
func (s *Schema) choices(of *jsonschema.Schema) []rule {
	root := s.resolved.Schema()
	base := jsonschema.Schema{Schema: root.Schema, Defs: root.Defs, Definitions: root.Definitions} // for refs
	var list []rule
	if of.AnyOf != nil {
		part := base
		part.AnyOf = of.AnyOf
		list = append(list, rule{part, "must match one of " + forms(of.AnyOf)})
	}
	if of.OneOf != nil {
		part := base
		part.OneOf = of.OneOf
		list = append(list, rule{part, "must match exactly one of " + forms(of.OneOf)})
	}
	return list
}

// fails asks the library. A part that cannot stand alone, because of its refs, counts as kept.
func fails(part *jsonschema.Schema, value any) bool {
	resolved, err := part.Resolve(nil)
	return err == nil && resolved.Validate(value) != nil
}

// isFalse says whether s accepts nothing, which is how additionalProperties: false is read.
func isFalse(s *jsonschema.Schema) bool {
	if s.Not == nil {
		return false
	}
	raw, err := json.Marshal(s)
	return err == nil && string(raw) == "false"
}

func forms(list []*jsonschema.Schema) string {
	raw, err := json.Marshal(list)
	if err != nil {
		return strconv.Itoa(len(list)) + " schemas"
	}
	return "the schemas " + shortenTo(string(raw), 200)
}

func typeNames(s *jsonschema.Schema) string {
	names := slices.Clone(s.Types)
	if s.Type != "" {
		names = []string{s.Type}
	}
	slices.SortStableFunc(names, func(a, b string) int { return strings.Count(a, "null") - strings.Count(b, "null") }) // last
	for i, name := range names {
		names[i] = article(name)
	}
	return strings.Join(names, " or ")
}

func article(name string) string {
	switch name {
	case "null":
		return name
	case "array", "integer", "object":
		return "an " + name
	default:
		return "a " + name
	}
}

func typeOf(v any) string {
	if _, ok := v.(float64); ok {
		return show(v)
	}
	raw, _ := json.Marshal(v) //nolint:errchkjson // it was decoded from JSON
	return kindOf(raw)
}

func oneOf(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = show(v)
	}
	return shortenTo("one of "+strings.Join(words, ", "), 600)
}

// show returns a value as JSON, cut if it is long.
func show(v any) string {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) //nolint:errchkjson // it was decoded from JSON
	return shorten(strings.TrimSuffix(text.String(), "\n"))
}

func length(v any) int {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	default:
		return 0
	}
}
