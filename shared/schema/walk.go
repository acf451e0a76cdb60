package schema

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A node is a schema and a value that it applies to.
type node struct {
	schema   *jsonschema.Schema
	value    any
	path     string
	optional bool // the property may be left out
}

// A walker visits each value of an input with every schema that applies to it without condition.
type walker struct {
	doc    any // the root schema, for refs
	draft7 bool
	see    func(node)
}

func (s *Schema) walk(see func(node)) *walker {
	w := &walker{see: see, draft7: strings.Contains(s.resolved.Schema().Schema, "draft-07")}
	if raw, err := json.Marshal(s.resolved.Schema()); err == nil { // as checkRefs has seen it
		_ = json.Unmarshal(raw, &w.doc)
	}
	return w
}

// visit ends because checkRefs has refused the schemas on which it would not, and inputs are finite.
func (w *walker) visit(n node) {
	if target := w.target(n.schema.Ref); target != nil {
		w.visit(n.with(target))
	}
	if n.schema.Ref != "" && w.draft7 {
		return // it replaces its siblings
	}
	w.see(n)
	for _, s := range n.schema.AllOf {
		w.visit(n.with(s))
	}
	switch value := n.value.(type) {
	case []any:
		for i, item := range value {
			s := n.schema.Items
			if i < len(n.schema.PrefixItems) {
				s = n.schema.PrefixItems[i]
			}
			if s != nil {
				w.visit(node{schema: s, value: item, path: index(n.path, i)})
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			for _, s := range property(n.schema, name) {
				w.visit(node{schema: s, value: value[name], path: join(n.path, name), optional: !slices.Contains(n.schema.Required, name)})
			}
		}
	}
}

func (n node) with(s *jsonschema.Schema) node {
	n.schema = s
	return n
}

func (w *walker) target(ref string) *jsonschema.Schema {
	found := lookup(w.doc, ref)
	if found == nil {
		return nil
	}
	raw, err := json.Marshal(found)
	if err != nil {
		return nil
	}
	var s jsonschema.Schema
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return &s
}

// property returns the schemas of a property of an object, none if it is unknown and nothing is said of such.
func property(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	var list []*jsonschema.Schema
	if p := s.Properties[name]; p != nil {
		list = append(list, p)
	}
	for pattern, p := range s.PatternProperties {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
			list = append(list, p)
		}
	}
	if len(list) == 0 && s.AdditionalProperties != nil {
		list = append(list, s.AdditionalProperties)
	}
	return list
}
