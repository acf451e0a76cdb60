package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// CheckTimeArgs reports the TimeArgs that the input schemas of their tools do not have: no session may be frozen at an
// instant then. The error is a *bdkerr.Error of code InvalidRequest that names each tool and argument.
func (s *Set) CheckTimeArgs() error {
	var faults []string
	for _, name := range s.names() {
		t := s.tools[name]
		var root any
		if err := json.Unmarshal(t.Tool.InputSchema(), &root); err != nil {
			return fmt.Errorf("reading the input schema of %s: %w", name, err)
		}
		for _, arg := range t.Tool.Spec().TimeArgs {
			if !declares(root, root, arg, 0) {
				faults = append(faults, fmt.Sprintf("the TimeArgs of %s (%s) name %q, which its input schema does not have", name, t.Source, arg))
			}
		}
	}
	if len(faults) > 0 {
		return bdkerr.New(bdkerr.InvalidRequest, "this agent takes no session with asOf: %s", strings.Join(faults, "; "))
	}
	return nil
}

// declares says whether a schema, or one that it is made of, has a property.
func declares(root, schema any, property string, depth int) bool {
	s, ok := schema.(map[string]any)
	if !ok || depth > 8 {
		return false
	}
	properties, _ := s["properties"].(map[string]any)
	if _, ok := properties[property]; ok {
		return true
	}
	parts := []any{s["if"], s["then"], s["else"]}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		parts = append(parts, list...)
	}
	if ref, ok := s["$ref"].(string); ok {
		parts = append(parts, lookUp(root, ref))
	}
	for _, part := range parts {
		if declares(root, part, property, depth+1) {
			return true
		}
	}
	return false
}

// lookUp returns the part of a document that a reference such as #/$defs/range leads to, nil if there is none.
func lookUp(root any, ref string) any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := root
	for key := range strings.SplitSeq(path, "/") {
		object, _ := at.(map[string]any)
		at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return at
}

// checkTimes returns what keeps the time arguments of a call from being absolute and no later than asOf; nil if nothing does. The
// error is written for the model.
func checkTimes(names []string, args json.RawMessage, asOf time.Time) error {
	if len(names) == 0 {
		return nil
	}
	var given map[string]any
	if err := json.Unmarshal(args, &given); err != nil {
		return err
	}
	latest := asOf.UTC().Format(time.RFC3339Nano)
	var faults []string
	for _, name := range names {
		if fault := timeFault(given, name, asOf); fault != "" {
			faults = append(faults, fmt.Sprintf("%s: send %q as an absolute time with a zone, such as %s, no later than %s",
				fault, name, asOf.Add(-time.Hour).UTC().Format(time.RFC3339), latest))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New("this session sees the world as of " + latest + "\n" + strings.Join(faults, "\n"))
}

// timeFault says what is wrong with a time argument, "" if nothing is.
func timeFault(given map[string]any, name string, asOf time.Time) string {
	for key := range given {
		// The author's function may read a key of other case as the same field.
		if key != name && strings.EqualFold(key, name) {
			return fmt.Sprintf("%q is not how the argument is written", key)
		}
	}
	value, ok := given[name]
	if !ok {
		return fmt.Sprintf("%q is missing", name)
	}
	sent, _ := value.(string)
	t, err := time.Parse(time.RFC3339, sent)
	if err != nil {
		raw, _ := json.Marshal(value) //nolint:errchkjson // it was decoded from JSON
		return fmt.Sprintf("%q is %.100s, which is no such time", name, raw)
	}
	if t.After(asOf) {
		return fmt.Sprintf("%q is %s, which is later", name, sent)
	}
	return ""
}
