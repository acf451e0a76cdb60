package schema

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// checkRefs reports a $ref that leads back to itself without looking at a smaller part of the input: validation would
// never end. It does not see through anchors and ids.
func checkRefs(s *jsonschema.Schema) error {
	raw, err := json.Marshal(s) // as the library has understood it
	if err != nil {
		return err
	}
	c := refs{done: map[string]bool{}}
	if err := json.Unmarshal(raw, &c.root); err != nil {
		return err
	}
	return c.check(c.root)
}

type refs struct {
	root any
	done map[string]bool // refs that were followed; false while it happens
}

// check follows the refs of a schema and of all below it.
func (c *refs) check(node any) error {
	if err := c.follow(node); err != nil {
		return err
	}
	switch node := node.(type) {
	case map[string]any:
		for _, child := range node {
			if err := c.check(child); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range node {
			if err := c.check(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow follows what a schema applies to the same value.
func (c *refs) follow(node any) error {
	s, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		done, seen := c.done[ref]
		if seen && !done {
			return fmt.Errorf("$ref %q leads back to itself", ref)
		}
		if !seen {
			c.done[ref] = false
			if err := c.follow(lookup(c.root, ref)); err != nil {
				return err
			}
			c.done[ref] = true
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"} {
		for _, child := range children(s[keyword]) {
			if err := c.follow(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// children returns the schemas that the value of a keyword may be or hold.
func children(value any) []any {
	switch value := value.(type) {
	case []any:
		return value
	case map[string]any:
		list := []any{value}
		for _, child := range value {
			list = append(list, child)
		}
		return list
	default:
		return nil
	}
}

// lookup returns what a ref of the form #/a/b points at, nil if it has another form or points at nothing.
func lookup(root any, ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil
	}
	for _, key := range strings.Split(pointer, "/")[1:] {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch node := root.(type) {
		case map[string]any:
			root = node[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			root = node[i]
		default:
			return nil
		}
	}
	return root
}
