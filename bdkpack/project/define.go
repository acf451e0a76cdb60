package project

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// define fills in the definitions of an agent.
func (l *loader) define(f *folder, g graph, checked map[string]*packages.Package) {
	for _, s := range f.files {
		p := g.at(filepath.Dir(s.path))
		if p == nil {
			l.outside(filepath.Dir(s.path))
			continue
		}
		if checked[p.ImportPath] == nil {
			continue // there is an error that says why
		}
		if slices.Contains(p.IgnoredGoFiles, filepath.Base(s.path)) {
			l.fail(codeConstrained, diag.Pos{File: s.path}, "rename the file, or remove the constraint",
				"Go leaves this file out on this system, because of its name's ending or a go:build line")
			continue
		}
		v := &view{l: l, pkg: checked[p.ImportPath], src: s, checked: checked}
		if def := v.definition(f); def != nil {
			v.take(f, def)
		}
	}
	sortNamed(f.agent.Tools)
	for _, s := range slots() {
		if s.into != nil {
			sortNamed(*s.into(f.agent))
		}
	}
	l.checkTwins(f)
	l.sortSchedules(f)
	l.sortSkills(f)
	l.checkOwnNames(f)
}

func sortNamed(all []Named) {
	slices.SortFunc(all, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
}

// take puts a definition where it belongs.
func (v *view) take(f *folder, def *Definition) {
	s := v.src.sub
	switch kind := v.src.kind; {
	case kind == "Tool":
		f.agent.Tools = append(f.agent.Tools, Named{Name: v.src.name, Definition: *def})
	case kind == "Schedule":
		f.agent.Schedules = append(f.agent.Schedules, Schedule{Name: v.src.name, File: def.File, Cron: v.cron, Definition: def})
	case v.src.slot != nil:
		list := v.src.slot.into(f.agent)
		*list = append(*list, Named{Name: v.src.name, Definition: *def, Events: v.events})
	case kind == "ArtifactKinds":
		f.agent.ArtifactKinds = def
	case kind == "Skill":
		f.agent.Skills = append(f.agent.Skills, Skill{Name: v.src.name, File: def.File, Definition: def})
	case kind == "Agent" && s != nil:
		s.Config, s.inline = *def, v.inline("Instructions")
		s.Models, s.Computed = v.models()
	case kind == "Agent":
		f.agent.Config = def
		f.inline, f.model, f.allow = v.inline("Instructions"), v.inline("Model"), v.inline("Tools")
		f.agent.Models, f.agent.Computed = v.models()
	case s != nil:
		s.Instructions.Definition = def
	default:
		f.agent.Instructions.Definition = def
	}
}

// outside complains about a folder of which the go command knows no package.
func (l *loader) outside(dir string) {
	if inner := moduleDir(dir); inner != l.ws.Module.Dir {
		l.fail(codeFolder, diag.Pos{File: filepath.Join(inner, "go.mod")}, "remove this go.mod: an agent is part of one module",
			"the folder is a module of its own, so the agent cannot import it")
		return
	}
	l.fail(codeFolder, diag.Pos{File: dir}, "rename the folders between it and go.mod: letters, digits, - and _", "Go cannot import from this folder")
}

// view is a source file after type-checking.
type view struct {
	l   *loader
	pkg *packages.Package
	src source

	cron    string                       // of a schedule
	checked map[string]*packages.Package // all of the author's, by path
	events  []string                     // that the hook handles
}

// variable is a package-level variable with its initial value, if it has one of its own.
type variable struct {
	obj    types.Object
	value  ast.Expr
	shared bool // its value is one of several that a call returns
}

// variables returns the package-level variables of the file.
func (v *view) variables() []variable {
	var all []variable
	for _, file := range v.pkg.Syntax {
		if v.pkg.Fset.Position(file.Package).Filename != v.src.path {
			continue
		}
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.VAR {
				for _, spec := range gen.Specs {
					all = v.appendVariables(all, spec)
				}
			}
		}
	}
	return all
}

func (v *view) appendVariables(all []variable, spec ast.Spec) []variable {
	values, ok := spec.(*ast.ValueSpec)
	if !ok {
		return all
	}
	for i, id := range values.Names {
		one := variable{obj: v.pkg.TypesInfo.Defs[id], shared: len(values.Values) > 0}
		if len(values.Values) == len(values.Names) {
			one.value, one.shared = values.Values[i], false
		}
		if one.obj != nil && id.Name != "_" {
			all = append(all, one)
		}
	}
	return all
}

// kind returns which definition of package bdk a type is, "" if it is none.
func kind(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != bdkPackage {
		return ""
	}
	switch name := named.Obj().Name(); name {
	case "Tool", "Agent", "Instructions", "Skill", "Hook", "Channel", "Schedule", "Connection", "ArtifactKinds":
		return name
	}
	return ""
}

// definition returns the one definition of the file. Whatever else is in the place of one is a diagnostic.
func (v *view) definition(f *folder) *Definition {
	var found, texts, hidden, others []variable
	for _, one := range v.variables() {
		switch t := one.obj.Type(); {
		case t == types.Typ[types.Invalid]:
			return nil // the type-checker has said why
		case kind(t) == v.src.kind && one.obj.Exported():
			found = append(found, one)
		case kind(t) == v.src.kind:
			hidden = append(hidden, one)
		case !one.obj.Exported():
		case v.src.kind == "Instructions" && types.Identical(t, types.Typ[types.String]):
			texts = append(texts, one)
		default:
			others = append(others, one)
		}
	}
	if len(found) == 0 {
		found = texts
	}
	for _, one := range others {
		if k := kind(one.obj.Type()); k != "" && len(found) > 0 {
			v.fail(codeWrongType, one.obj.Pos(), whereTo,
				"%s is a bdk.%s, but this file defines %s", one.obj.Name(), k, v.what())
		}
	}
	switch {
	case len(found) == 1:
		v.checkValue(found[0], f)
		p := v.pkg.Fset.Position(found[0].obj.Pos())
		return &Definition{Package: v.pkg.PkgPath, Var: found[0].obj.Name(), File: f.rel(v.src.path), Line: p.Line}
	case len(found) > 1:
		help := "keep one of them: an agent has one, or begin the name of the other with a lower-case letter if it is a helper"
		if v.src.kind == "Tool" || v.src.slot != nil {
			help = "move one of them into a file of its own, or begin its name with a lower-case letter if it is a helper"
		}
		v.fail(codeTwo, found[1].obj.Pos(), help,
			"%s and %s are both a bdk.%s: a file has one definition", found[0].obj.Name(), found[1].obj.Name(), v.src.kind)
	case v.broken():
	case len(others) > 0 && strings.Contains(typeName(others[0].obj.Type()), "bdk."):
		v.wrongType(others[0])
	case len(hidden) > 0:
		name := hidden[0].obj.Name()
		v.fail(codeUnexported, hidden[0].obj.Pos(), "begin its name with a capital letter: "+strings.ToUpper(name[:1])+name[1:],
			"%s is not exported, so it defines nothing", name)
	case len(others) > 0:
		v.wrongType(others[0])
	default:
		v.none()
	}
	return nil
}

// whereTo says where definitions belong.
const whereTo = "move it: a tool into tools/<name>.go, a skill into skills/<name>.go, a hook into hooks/<name>.go and so on, the configuration into agent.go, instructions into instructions.go"

// what names what the file should define.
func (v *view) what() string {
	switch {
	case v.src.kind == "Tool":
		return "the tool " + v.src.name
	case v.src.kind == "Skill":
		return "the skill " + v.src.name
	case v.src.slot != nil:
		return "the " + v.src.slot.what + " " + v.src.name
	}
	return v.src.name
}

func (v *view) wrongType(one variable) {
	t := typeName(one.obj.Type())
	help := "give it the type bdk." + v.src.kind
	switch {
	case t == "bdk.ToolSpec":
		help = "wrap it: bdk.DefineTool(spec, function)"
	case t == "*bdk."+v.src.kind:
		help = "make it a value instead of a pointer"
	case kind(one.obj.Type()) != "":
		help = whereTo
	case v.src.kind == "Tool":
		help = "define the tool with bdk.DefineTool(spec, function)"
	}
	v.fail(codeWrongType, one.obj.Pos(), help, "%s is a %s, not a bdk.%s", one.obj.Name(), t, v.src.kind)
}

func (v *view) none() {
	help := map[string]string{
		"Tool":         "write: var Name = bdk.DefineTool(bdk.ToolSpec{…}, function), or move helpers into lib/",
		"Agent":        "write: var Agent = bdk.Agent{Model: \"…\"}, or remove the file",
		"Instructions": "write: var Instructions = bdk.Instructions(\"…\")",
		"Skill":        "write: var Skill = bdk.Skill{Description: \"Use when …\", Markdown: \"…\"}, or move helpers into lib/",

		"ArtifactKinds": "write: var Artifacts = bdk.ArtifactKinds{…}, or remove the file",
	}[v.src.kind]
	if v.src.slot != nil {
		help = "write: var Name = " + v.src.slot.define + ", or move helpers into lib/"
	}
	v.l.fail(codeNone, diag.Pos{File: v.src.path}, help, "no exported variable of type bdk.%s in this file, which should define %s", v.src.kind, v.what())
}

// broken says whether the file, or the package as a whole, does not compile.
func (v *view) broken() bool {
	return slices.ContainsFunc(v.pkg.Errors, func(e packages.Error) bool {
		return e.Kind != packages.TypeError || strings.HasPrefix(e.Pos, v.src.path+":") || strings.HasPrefix(e.Msg, "could not import")
	})
}

func (v *view) fail(code string, at token.Pos, help, format string, args ...any) {
	p := v.pkg.Fset.Position(at)
	v.l.fail(code, diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}, help, format, args...)
}

// checkValue looks for mistakes in the value of a definition, as far as it is written out.
func (v *view) checkValue(one variable, f *folder) {
	switch v.src.kind {
	case "Tool":
		v.checkTool(one)
	case "Agent":
		v.checkAgent(one, f)
		v.checkSubagent(one)
	case "Skill":
		v.checkSkill(one)
	case "Hook":
		v.checkHook(one)
	case "ArtifactKinds":
		if lit, ok := v.literal(one.value); ok {
			v.checkLimits(lit, "Max")
		}
	case "Connection":
		v.checkConnection(one, f)
	case "Schedule":
		v.cron = v.checkSchedule(one)
	case "Instructions":
		if text, ok := v.constant(one.value); ok && strings.TrimSpace(text) == "" {
			v.fail(codeEmpty, one.value.Pos(), "say who the agent is, when to use which tool and what to answer", "the instructions are empty")
		}
	}
}

func (v *view) checkTool(one variable) {
	if _, literal := v.literal(one.value); literal || one.value == nil && !one.shared {
		v.fail(codeWrongType, one.obj.Pos(), "define the tool with bdk.DefineTool(spec, function)", "%s is an empty bdk.Tool", one.obj.Name())
		return
	}
	call, ok := ast.Unparen(one.value).(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return
	}
	definer := v.definer(call, "DefineTool", "DefineScript")
	if definer == "" {
		return
	}
	if spec, ok := v.literal(call.Args[0]); ok {
		v.checkApproval(spec)
		v.checkTimeArgs(spec, v.inputOf(call))
		v.checkLimits(spec, "Timeout", "MaxParallel")
		value := field(spec, "Description")
		text, known := v.constant(value)
		if value == nil || known && strings.TrimSpace(text) == "" {
			at := spec.Pos()
			if value != nil {
				at = value.Pos()
			}
			v.fail(codeNoDescription, at, "set Description to what the tool does and when the model should use it", "the tool has no description")
		}
	}
	if definer == "DefineScript" {
		v.checkScriptTool(call)
		return
	}
	if v.isNil(call.Args[1]) {
		v.fail(codeWrongType, call.Args[1].Pos(), "give the tool a function: func(ctx context.Context, call *bdk.Call, input Struct) (Result, error)",
			"%s has no function", one.obj.Name())
		return
	}
	v.checkTypes(call)
}

// definer returns which of some functions of package bdk is called, with or without type arguments, "" if none is.
func (v *view) definer(call *ast.CallExpr, names ...string) string {
	obj := typeutil.Callee(v.pkg.TypesInfo, call)
	if obj == nil || obj.Pkg() == nil || obj.Pkg().Path() != bdkPackage || !slices.Contains(names, obj.Name()) {
		return ""
	}
	return obj.Name()
}

// isNil says whether an expression is nil, converted or not.
func (v *view) isNil(e ast.Expr) bool {
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 && v.pkg.TypesInfo.Types[call.Fun].IsType() {
		return v.isNil(call.Args[0])
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	_, isNil := v.pkg.TypesInfo.Uses[id].(*types.Nil)
	return isNil
}

// typeName returns a type as an author writes it.
func typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}

func (v *view) checkAgent(one variable, f *folder) {
	lit, ok := v.literal(one.value)
	if !ok {
		return
	}
	if v.src.sub == nil { // those of subagents are the agent's
		v.checkHarness(field(lit, "Tools"), f)
	}
	v.checkResult(field(lit, "Result"))
	v.checkModel(field(lit, "Model"), f)
	if list, ok := field(lit, "Fallbacks").(*ast.CompositeLit); ok {
		for _, e := range list.Elts {
			v.checkModel(e, f)
		}
	}
	v.checkLimits(lit, "MaxOutputTokens", "ContextTokens", "SessionTTL")
	if limits, ok := v.literal(field(lit, "Limits")); ok {
		v.checkLimits(limits, "StepsPerTurn", "TurnTime", "RunningTurns", "ParallelTools", "ToolOutput", "TokensPerSession", "USDPerSession")
	}
}

// checkLimits complains about constants below zero.
func (v *view) checkLimits(lit *ast.CompositeLit, names ...string) {
	for _, name := range names {
		e := field(lit, name)
		if e == nil {
			continue
		}
		if value := v.pkg.TypesInfo.Types[e].Value; value != nil && value.Kind() != constant.Unknown && constant.Sign(value) < 0 {
			v.fail(codeLimit, e.Pos(), "leave it out for the default, or give a number above zero", "%s is below zero", name)
		}
	}
}

// literal returns the composite literal that an expression is.
func (v *view) literal(e ast.Expr) (*ast.CompositeLit, bool) {
	if e == nil {
		return nil, false
	}
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	return lit, ok
}

// checkModel complains about a model whose provider is not known, and about what is wrong with a script.
func (v *view) checkModel(e ast.Expr, f *folder) {
	text, ok := v.constant(e)
	if !ok || text == "" {
		return
	}
	providers := []string{"anthropic", "bedrock", "openai", "scripted"}
	provider, name, _ := strings.Cut(text, ":")
	if provider == "scripted" && name != "" {
		v.checkScript(e, f, name)
		return
	}
	if slices.Contains(providers, provider) && name != "" {
		return
	}
	help := "write provider:name, where the provider is anthropic, bedrock, openai or scripted"
	if meant := nearest(provider, providers); meant != "" && name != "" {
		help += "; did you mean " + meant + ":" + name + "?"
	}
	v.fail(codeModel, e.Pos(), help, "the model %q has no known provider", text)
}

// checkNoModel warns if nothing names a model.
func (l *loader) checkNoModel(f *folder) {
	if f.model != no || ModelGiven(l.opts.Env) {
		return
	}
	pos, help := diag.Pos{File: f.root}, "set Model in "+f.agent.Root+"/agent.go"
	if c := f.agent.Config; c != nil {
		pos = diag.Pos{File: filepath.Join(f.agent.Dir, filepath.FromSlash(c.File)), Line: c.Line}
	} else {
		help = "write " + f.agent.Root + "/agent.go with: var Agent = bdk.Agent{Model: \"provider:name\"}"
	}
	l.warn(codeNoModel, pos, help+", or BDK_MODEL in the environment of each start", "the agent has no model")
}

// models returns the models that the agent's configuration names, and whether it has some that are no constants.
func (v *view) models() (ids []string, computed bool) {
	for _, one := range v.variables() {
		if kind(one.obj.Type()) != "Agent" || !one.obj.Exported() {
			continue
		}
		lit, ok := v.literal(one.value)
		if !ok {
			return nil, one.value != nil || one.shared
		}
		var named []ast.Expr
		if e := field(lit, "Model"); e != nil {
			named = append(named, e)
		}
		if e := field(lit, "Fallbacks"); e != nil {
			list, known := v.literal(e)
			if !known {
				list, computed = &ast.CompositeLit{}, true
			}
			named = append(named, list.Elts...)
		}
		for _, e := range named {
			id, known := v.constant(e)
			computed = computed || !known
			if id != "" {
				ids = append(ids, id)
			}
		}
		return ids, computed
	}
	return nil, false
}

// inline says whether the agent's configuration has a field that is neither "" nor nil.
func (v *view) inline(name string) answer {
	for _, one := range v.variables() {
		if kind(one.obj.Type()) != "Agent" || !one.obj.Exported() {
			continue
		}
		if one.value == nil && !one.shared {
			return no
		}
		lit, ok := v.literal(one.value)
		if !ok {
			break
		}
		value := field(lit, name)
		if value == nil {
			return no
		}
		if text, known := v.constant(value); known && text == "" || v.isNil(value) {
			return no
		}
		return yes
	}
	return maybe
}

// constant returns the value of a constant string.
func (v *view) constant(e ast.Expr) (string, bool) {
	if e == nil {
		return "", false
	}
	value := v.pkg.TypesInfo.Types[e].Value
	if value == nil || value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(value), true
}

// field returns the value of a field in a composite literal with keys, nil if it is not set.
func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}
