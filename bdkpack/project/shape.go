package project

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// A shape is a walk through the type of a tool's input or output. For an input it finds what package schema refuses when the
// host starts, for an output what encoding/json cannot write when the tool has run.
type shape struct {
	input  bool
	path   []*types.Var // the fields that lead to where the walk is
	open   []types.Type // the types around it
	done   map[types.Type]bool
	tagged map[types.Type]bool
	fields int
	faults []misfit
}

// A misfit is what is wrong with a type. The last of the fields that lead to it is the one to mend, none for the type itself.
type misfit struct {
	path       []*types.Var
	severity   diag.Severity
	what, help string
}

// maxFields bounds a walk. Types that grow without end are an error of the compiler.
const maxFields = 10_000

// misfits returns what is wrong with t, which is not the bytes of an input.
func misfits(t types.Type, input bool) []misfit {
	s := shape{input: input, done: map[types.Type]bool{}, tagged: map[types.Type]bool{}}
	s.tags(t)
	s.visit(t)
	return s.faults
}

func (s *shape) add(severity diag.Severity, help, format string, args ...any) {
	s.faults = append(s.faults, misfit{slices.Clone(s.path), severity, fmt.Sprintf(format, args...), help})
}

// at runs a part of the walk below a field.
func (s *shape) at(f *types.Var, walk func()) {
	if s.fields++; s.fields > maxFields {
		return
	}
	s.path = append(s.path, f)
	walk()
	s.path = s.path[:len(s.path)-1]
}

// tags looks at the tags of the fields below t.
func (s *shape) tags(t types.Type) {
	t = types.Unalias(t)
	if s.tagged[t] || s.ownForm(t) {
		return
	}
	s.tagged[t] = true
	if elem := element(t); elem != nil {
		s.tags(elem)
	}
	if st, ok := t.Underlying().(*types.Struct); ok {
		for i := range st.NumFields() {
			s.at(st.Field(i), func() { s.tag(st.Field(i), reflect.StructTag(st.Tag(i)).Get("json")) })
		}
	}
}

func (s *shape) tag(f *types.Var, tag string) {
	name, options, _ := strings.Cut(tag, ",")
	_, isStruct := deref(f.Type()).Underlying().(*types.Struct)
	switch {
	case tag == "-":
		return
	case !f.Exported() && !f.Embedded():
		if tag != "" {
			s.add(diag.Warning, "begin its name with a capital letter: "+strings.ToUpper(f.Name()[:1])+f.Name()[1:],
				"the field %s has a json tag but is not exported, so it is not part of the JSON", f.Name())
		}
		return
	case s.input && slices.Contains(strings.Split(options, ","), "string"):
		s.add(diag.Error, "leave it out, or make the field a string", "the option string of the json tag of field %s is not supported", f.Name())
	case s.input && f.Embedded() && (name != "" || !isStruct):
		s.add(diag.Error, "give the field a name", "the embedded field %s must be a struct without a json name", f.Name())
	default:
		s.tags(f.Type())
	}
}

// visit looks at the types below t.
func (s *shape) visit(t types.Type) {
	t = types.Unalias(t)
	if slices.ContainsFunc(s.open, func(around types.Type) bool { return types.Identical(around, t) }) {
		if s.input {
			s.add(diag.Error, "set InputSchema of bdk.ToolSpec, where $ref can say so, or make the field a json.RawMessage",
				"the type %s contains itself, so its JSON Schema cannot be inferred", typeName(t))
		}
		return
	}
	if s.done[t] || s.ownForm(t) {
		return
	}
	if help := unfit(t, s.input); help != "" {
		s.add(diag.Error, help, "%s, which JSON cannot hold", s.subject(t))
		return
	}
	s.open = append(s.open, t)
	if elem := element(t); elem != nil {
		s.visit(elem)
	}
	if st, ok := t.Underlying().(*types.Struct); ok {
		for _, f := range visible(t, st, nil) {
			s.at(f.v, func() { s.field(f) })
		}
	}
	s.open = s.open[:len(s.open)-1]
	s.done[t] = true
}

// subject says where t is.
func (s *shape) subject(t types.Type) string {
	what, whole := "the result", ""
	if s.input {
		what = "the input"
	}
	if len(s.path) > 0 {
		f := s.path[len(s.path)-1]
		what, whole = "the field "+f.Name(), typeName(f.Type())
	}
	if is := typeName(t); whole != "" && whole != is {
		return fmt.Sprintf("%s is a %s, with a %s inside", what, whole, is)
	}
	return what + " is a " + typeName(t)
}

func (s *shape) field(f structField) {
	switch tag := f.tag.Get("json"); {
	case f.v.Embedded():
		if s.input && s.ownForm(types.Unalias(f.v.Type())) {
			s.add(diag.Error, "give the field a name", "the embedded field %s is no object in JSON", f.v.Name())
		}
		return // its fields are visible themselves
	case !f.v.Exported() || tag == "-":
		return
	case !s.input && (strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero")):
		return // it may never be written
	}
	if text, ok := f.tag.Lookup("jsonschema"); s.input && ok && (text == "" || regexp.MustCompile("^[^ \t\n]*=").MatchString(text)) {
		s.add(diag.Error, "describe the field in words: the tag jsonschema has no options", "the jsonschema tag of the field %s is %q", f.v.Name(), text)
	}
	s.visit(f.v.Type())
}

// unfit says what to do if there is no JSON of t's kind, whatever is below it; nothing if there is.
func unfit(t types.Type, input bool) string {
	const help = "give it a type that JSON has, or leave it out with the tag `json:\"-\"`"
	switch u := t.Underlying().(type) {
	case *types.Chan, *types.Signature:
		return help
	case *types.Basic:
		if u.Info()&types.IsComplex != 0 || u.Kind() == types.UnsafePointer {
			return help
		}
	case *types.Map:
		key, ok := u.Key().Underlying().(*types.Basic)
		known := ok && (key.Info()&types.IsString != 0 || !input && key.Info()&types.IsInteger != 0)
		if !known && !hasMethod(u.Key(), "MarshalText") {
			return "make the keys strings, or the map a slice of structs"
		}
	}
	return ""
}

// ownForm says whether JSON of t is not that of its kind.
func (s *shape) ownForm(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Interface, *types.TypeParam:
		return false
	case *types.Slice:
		if isByte(u.Elem()) {
			return true
		}
	}
	p := types.NewPointer(t)
	if s.input {
		return hasMethod(p, "UnmarshalJSON") || hasMethod(p, "UnmarshalText")
	}
	return hasMethod(p, "MarshalJSON") || hasMethod(p, "MarshalText")
}

func isByte(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Byte
}

// hasMethod says whether t has a method, one of those by which encoding/json knows a type.
func hasMethod(t types.Type, name string) bool {
	bytes := types.NewVar(token.NoPos, nil, "", types.NewSlice(types.Typ[types.Byte]))
	err := types.NewVar(token.NoPos, nil, "", types.Universe.Lookup("error").Type())
	in, out := types.NewTuple(), types.NewTuple(bytes, err)
	if strings.HasPrefix(name, "Unmarshal") {
		in, out = types.NewTuple(bytes), types.NewTuple(err)
	}
	method := types.NewFunc(token.NoPos, nil, name, types.NewSignatureType(nil, nil, nil, in, out, false))
	return types.Implements(t, types.NewInterfaceType([]*types.Func{method}, nil).Complete())
}

// element returns what t holds of one type, nil if it holds no such.
func element(t types.Type) types.Type {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return u.Elem()
	case *types.Slice:
		return u.Elem()
	case *types.Array:
		return u.Elem()
	case *types.Map:
		return u.Elem()
	}
	return nil
}

// deref returns what t points to, t if it is no pointer.
func deref(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

type structField struct {
	v   *types.Var
	tag reflect.StructTag
}

// visible returns the fields of st and those promoted to the struct outer, as [reflect.VisibleFields] does.
func visible(outer types.Type, st *types.Struct, open []*types.Struct) []structField {
	var all []structField
	for i := range st.NumFields() {
		f := st.Field(i)
		if obj, _, _ := types.LookupFieldOrMethod(outer, true, f.Pkg(), f.Name()); obj != f {
			continue
		}
		all = append(all, structField{f, reflect.StructTag(st.Tag(i))})
		inner, ok := deref(f.Type()).Underlying().(*types.Struct)
		if f.Embedded() && ok && !slices.Contains(open, inner) {
			all = append(all, visible(outer, inner, append(slices.Clone(open), st))...)
		}
	}
	return all
}

// checkTypes looks at the types of a tool's input and output. A schema that is given takes the place of the input's own.
func (v *view) checkTypes(call *ast.CallExpr) {
	sig, ok := v.pkg.TypesInfo.TypeOf(call.Args[1]).Underlying().(*types.Signature)
	if !ok || sig.Params().Len() != 3 || sig.Results().Len() != 2 {
		return
	}
	v.checkInputType(call, sig.Params().At(2).Type())
	v.report(call.Args[1].Pos(), misfits(sig.Results().At(0).Type(), false), true)
}

// checkInputType looks at the type of a tool's input.
func (v *view) checkInputType(call *ast.CallExpr, in types.Type) {
	spec, ok := v.literal(call.Args[0])
	inferred := ok && field(spec, "InputSchema") == nil
	if at := call.Args[1].Pos(); !isBytes(in) && v.checkInput(at, in, inferred) {
		v.report(at, misfits(in, true), inferred)
	}
}

// report tells what is wrong with a type at the last field on the way to it that is the author's, or at the tool.
func (v *view) report(at token.Pos, faults []misfit, wrong bool) {
	for _, m := range faults {
		pos, own := at, false
		for i := len(m.path) - 1; i >= 0 && !own; i-- {
			if own = m.path[i].Pkg() != nil && v.checked[m.path[i].Pkg().Path()] != nil; own {
				pos = m.path[i].Pos()
			}
		}
		switch {
		case m.severity == diag.Warning && own:
			p := v.pkg.Fset.Position(pos)
			v.l.warn(codeTag, diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}, m.help, "%s", m.what)
		case m.severity == diag.Error && wrong:
			v.fail(codeShape, pos, m.help, "%s", m.what)
		}
	}
}

// isBytes says whether an input arrives as the model sent it.
func isBytes(t types.Type) bool {
	s, ok := t.Underlying().(*types.Slice)
	return ok && isByte(s.Elem())
}

// checkInput looks at what kind of JSON a tool's input is, and says whether it is an object.
func (v *view) checkInput(at token.Pos, in types.Type, inferred bool) bool {
	if isObject(in, inferred) {
		return true
	}
	v.fail(codeInput, at, "make the input a struct, with a field for each parameter, or a json.RawMessage",
		"the model gives a tool an object, but the input of this one is a %s", typeName(in))
	return false
}

// isObject says whether the JSON of a type is an object. One whose schema is not inferred may be.
func isObject(t types.Type, inferred bool) bool {
	for range 8 { // more pointers nobody writes
		t = types.Unalias(deref(t))
	}
	switch t.Underlying().(type) {
	case *types.Struct, *types.Map:
		return !inferred || !(&shape{input: true}).ownForm(t)
	case *types.Interface:
		return !inferred
	}
	return false
}
