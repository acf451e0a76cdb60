package sfntest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// A path is a reference path: $ or $$ (the context object), then names and indexes.
type path struct {
	text    string
	context bool
	parts   []any // string or int
}

var (
	validPath = regexp.MustCompile(`^\$\$?(\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,6}\])*$`)
	pathPart  = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*|[0-9]+`)
)

func parsePath(text string) (path, error) {
	if !validPath.MatchString(text) {
		return path{}, fmt.Errorf("path %q is not known here", text)
	}
	p := path{text: text, context: strings.HasPrefix(text, "$$")}
	for _, part := range pathPart.FindAllString(text, -1) {
		if n, err := strconv.Atoi(part); err == nil {
			p.parts = append(p.parts, n)
		} else {
			p.parts = append(p.parts, part)
		}
	}
	return p, nil
}

// get returns what the path leads to in data, or in the context object.
func (p path) get(data any, context map[string]any) (any, bool) {
	if p.context {
		data = context
	}
	for _, part := range p.parts {
		var ok bool
		switch part := part.(type) {
		case string:
			var m map[string]any
			if m, ok = data.(map[string]any); ok {
				data, ok = m[part]
			}
		case int:
			var list []any
			if list, ok = data.([]any); ok && part < len(list) {
				data = list[part]
			} else {
				ok = false
			}
		}
		if !ok {
			return nil, false
		}
	}
	return data, true
}

// set returns data with value where the path leads to, and makes the objects on the way. Data is not changed.
func (p path) set(data, value any) (any, *Fault) {
	if len(p.parts) == 0 {
		return value, nil
	}
	name, ok := p.parts[0].(string)
	old, isObject := data.(map[string]any)
	if !ok || !isObject && data != nil {
		return nil, &Fault{Name: "States.ResultPathMatchFailure", Cause: "cannot apply " + p.text}
	}
	inner, fault := path{text: p.text, parts: p.parts[1:]}.set(old[name], value)
	if fault != nil {
		return nil, fault
	}
	next := maps.Clone(old)
	if next == nil {
		next = make(map[string]any)
	}
	next[name] = inner
	return next, nil
}

// A template makes a value from data: fields whose names end in .$ are paths.
type template func(data any, context map[string]any) (any, *Fault)

// parseTemplate returns nil for no template.
func parseTemplate(raw json.RawMessage) (template, error) {
	if raw == nil {
		return nil, nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return compile(v)
}

func compile(v any) (template, error) {
	switch v := v.(type) {
	case map[string]any:
		return compileObject(v)
	case []any:
		return nil, fmt.Errorf("a list in a template is not known here: %v", v)
	}
	return func(any, map[string]any) (any, *Fault) { return v, nil }, nil
}

func compileObject(v map[string]any) (template, error) {
	fields := make(map[string]template, len(v))
	for name, value := range v {
		field, dynamic := strings.CutSuffix(name, ".$")
		if _, twice := fields[field]; twice {
			return nil, fmt.Errorf("field %q is there twice", field)
		}
		var err error
		if dynamic {
			fields[field], err = compilePath(value)
		} else {
			fields[field], err = compile(value)
		}
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
	}
	return func(data any, context map[string]any) (any, *Fault) {
		out := make(map[string]any, len(fields))
		for name, field := range fields {
			var fault *Fault
			if out[name], fault = field(data, context); fault != nil {
				return nil, fault
			}
		}
		return out, nil
	}, nil
}

func compilePath(v any) (template, error) {
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%v is no path", v)
	}
	p, err := parsePath(text)
	if err != nil {
		return nil, err
	}
	return func(data any, context map[string]any) (any, *Fault) {
		got, ok := p.get(data, context)
		if !ok {
			return nil, runtimeFault("the path " + text + " leads nowhere")
		}
		return got, nil
	}, nil
}
