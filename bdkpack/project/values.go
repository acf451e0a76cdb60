package project

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// sortSkills puts the skills in order and complains about two of one name.
func (l *loader) sortSkills(f *folder) {
	slices.SortStableFunc(f.agent.Skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	for i, s := range f.agent.Skills {
		if i > 0 && f.agent.Skills[i-1].Name == s.Name {
			l.fail(codeSkillName, diag.Pos{File: f.agent.path(s.File)}, "rename one of them", "%s defines the skill %s, too", f.agent.Skills[i-1].File, s.Name)
		}
	}
}

// checkSkill looks for mistakes in a bdk.Skill, as far as it is written out.
func (v *view) checkSkill(one variable) {
	lit, ok := v.literal(one.value)
	if !ok {
		return
	}
	for name, help := range map[string]string{"Description": "say when to use the skill: the model decides by it", "Markdown": "write what to do, step by step"} {
		value := field(lit, name)
		if text, known := v.constant(value); value == nil || known && strings.TrimSpace(text) == "" {
			code := codeNoDescription
			if name == "Markdown" {
				code = codeEmpty
			}
			v.fail(code, orPos(value, lit), help, "the skill has no %s", name)
		}
	}
	files, _ := v.literal(field(lit, "Files"))
	if files == nil {
		return
	}
	for _, e := range files.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name, known := v.constant(kv.Key)
		switch err := workspace.CheckPath(name); {
		case !known:
		case err != nil:
			v.fail(codeWorkspaceFile, kv.Pos(), "write a path relative to the skill, such as references/checklist.md", "%v", err)
		case name == "SKILL.md":
			v.fail(codeWorkspaceFile, kv.Pos(), "leave it out: it is made of Description and Markdown", "Files has SKILL.md")
		}
	}
}

// checkResult looks at the type of an agent's result.
func (v *view) checkResult(e ast.Expr) {
	call, ok := e.(*ast.CallExpr)
	if !ok || v.definer(call, "ResultOf") == "" {
		return
	}
	index, ok := ast.Unparen(call.Fun).(*ast.IndexExpr)
	if !ok {
		return
	}
	t := v.pkg.TypesInfo.TypeOf(index.Index)
	switch {
	case t == nil || t == types.Typ[types.Invalid]: // the type-checker has said why
		return
	case !isObject(t, true):
		v.fail(codeInput, index.Index.Pos(), "make it a struct, with a field for each part of the result", "a result is an object, but this one is a %s", typeName(t))
		return
	}
	faults := misfits(t, true)
	for i := range faults {
		if strings.Contains(faults[i].help, "InputSchema") {
			faults[i].help = "write the schema out with bdk.RawResult, or make the field a json.RawMessage"
		}
	}
	v.report(index.Index.Pos(), faults, true)
}

// checkSubagent looks for mistakes in the configuration of a subagent.
func (v *view) checkSubagent(one variable) {
	if v.src.sub == nil {
		return
	}
	lit, ok := v.literal(one.value)
	if !ok {
		return
	}
	value := field(lit, "Description")
	if text, known := v.constant(value); value == nil || known && strings.TrimSpace(text) == "" {
		v.fail(codeNoDescription, orPos(value, lit), "set Description to when to delegate to it: the model decides by it", "the subagent has no description")
	}
	for _, name := range []string{"Name", "Tools", "Result", "MaxOutputTokens", "ContextTokens", "Limits"} {
		if e := field(lit, name); e != nil {
			p := v.pkg.Fset.Position(e.Pos())
			v.l.warn(codeSubagent, diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}, "remove it: a subagent has what its agent has", "%s has no effect in a subagent", name)
		}
	}
}

// checkOwnNames complains about tools of the agent that have the names of those that come with skills and subagents.
func (l *loader) checkOwnNames(f *folder) {
	if f.allow != no {
		return
	}
	with := map[string]string{}
	if len(f.agent.Skills) > 0 {
		with[bdk.ToolSkill] = "skills"
	}
	if len(f.subs) > 0 {
		with[bdk.ToolTask] = "subagents"
	}
	for _, t := range f.agent.Tools {
		if with[t.Name] != "" {
			l.fail(codeHarness, diag.Pos{File: f.agent.path(t.File), Line: t.Line}, "rename the file, or set Tools in agent.go without it",
				"the tool %s of the harness, which comes with %s, has the name of the agent's own", t.Name, with[t.Name])
		}
	}
}

// checkHarness complains about tools of the harness that are not there, or that have the names of the agent's own.
func (v *view) checkHarness(e ast.Expr, f *folder) {
	list, ok := v.literal(e)
	if !ok {
		return
	}
	own := map[string]string{}
	for _, s := range f.files {
		if s.kind == "Tool" {
			own[s.name] = f.rel(s.path)
		}
	}
	for _, e := range list.Elts {
		name, known := v.constant(e)
		switch {
		case !known:
		case !slices.Contains(bdk.HarnessTools(), name):
			help := "those of the harness are " + strings.Join(bdk.HarnessTools(), ", ") + "; the agent's own need not be named"
			if meant := nearest(name, bdk.HarnessTools()); meant != "" {
				help = "did you mean " + meant + "?"
			}
			v.fail(codeHarness, e.Pos(), help, "the harness has no tool %q", name)
		case own[name] != "":
			v.fail(codeHarness, e.Pos(), "rename "+own[name]+", or do not offer the one of the harness", "the tool %s of the harness has the name of the agent's own", name)
		}
	}
}

// maxApproval is how long a call can wait on AWS.
const maxApproval = 7 * 24 * time.Hour

// checkApproval looks for mistakes in what a tool says of approvals.
func (v *view) checkApproval(spec *ast.CompositeLit) {
	approvers, timeout := field(spec, "Approvers"), field(spec, "ApprovalTimeout")
	for _, e := range []ast.Expr{approvers, timeout} {
		if e != nil && field(spec, "NeedsApproval") == nil {
			v.fail(codeApproval, e.Pos(), "set NeedsApproval, such as to bdk.Always", "no call of the tool would wait for approval")
			return
		}
	}
	if list, ok := v.literal(approvers); ok {
		for _, e := range list.Elts {
			if who, known := v.constant(e); known && !isPrincipal(who) {
				v.fail(codeApproval, e.Pos(), "write a principal such as bearer:ops, bdk.SessionOwner or bdk.Anybody", "%q is no principal", who)
			}
		}
	}
	switch n, known := v.integer(timeout); {
	case !known:
	case n < 0:
		v.fail(codeApproval, timeout.Pos(), "leave it out for 7 days", "the ApprovalTimeout is below zero")
	case time.Duration(n) > maxApproval:
		p := v.pkg.Fset.Position(timeout.Pos())
		v.l.warn(codeApproval, diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}, "make it 7 days at most if the agent is to be deployed", "on AWS no call waits longer than 7 days")
	}
}

// isPrincipal says whether a text may name who approves.
func isPrincipal(who string) bool {
	spec := bdk.ToolSpec{Description: "any", NeedsApproval: bdk.Always, Approvers: []string{who}}
	return bdk.DefineScript[struct{}](spec, "#!/").Err() == nil
}

// checkTimeArgs complains about time arguments that the input of a tool does not have.
func (v *view) checkTimeArgs(spec *ast.CompositeLit, in types.Type) {
	list, ok := v.literal(field(spec, "TimeArgs"))
	if !ok {
		return
	}
	names, open := v.inputNames(spec, in)
	var seen []string
	for _, e := range list.Elts {
		name, known := v.constant(e)
		switch {
		case !known:
			continue
		case name == "":
			v.fail(codeTimeArg, e.Pos(), "name a property of the input, or leave it out", "a name in TimeArgs is empty")
		case slices.Contains(seen, name):
			v.fail(codeTimeArg, e.Pos(), "leave it out", "%q is in TimeArgs twice", name)
		case !open && !slices.Contains(names, name):
			help := "the input has " + cmp.Or(strings.Join(names, ", "), "no properties")
			if meant := nearest(name, names); meant != "" {
				help = "did you mean " + meant + "?"
			}
			v.fail(codeTimeArg, e.Pos(), help, "the input of the tool has no %q, so no session could be started at a frozen instant", name)
		}
		seen = append(seen, name)
	}
}

// inputNames returns the properties of a tool's input; open says that there may be others.
func (v *view) inputNames(spec *ast.CompositeLit, in types.Type) (names []string, open bool) {
	if in == nil || field(spec, "InputSchema") != nil {
		return nil, true
	}
	st, ok := deref(types.Unalias(in)).Underlying().(*types.Struct)
	if !ok {
		return nil, true
	}
	return jsonNames(st)
}

// jsonNames returns the names of a struct's fields in JSON; open says that embedded ones may add others.
func jsonNames(st *types.Struct) (names []string, open bool) {
	for i := range st.NumFields() {
		f := st.Field(i)
		name, _, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("json"), ",")
		switch {
		case name == "-":
		case f.Embedded() && name == "":
			open = true
		case f.Exported():
			names = append(names, cmp.Or(name, f.Name()))
		}
	}
	return names, open
}

// inputOf returns the type of a tool's input, nil if it is not known.
func (v *view) inputOf(call *ast.CallExpr) types.Type {
	if sig, ok := types.Unalias(v.pkg.TypesInfo.TypeOf(call.Args[1])).Underlying().(*types.Signature); ok && sig.Params().Len() == 3 {
		return sig.Params().At(2).Type()
	}
	if index, ok := ast.Unparen(call.Fun).(*ast.IndexExpr); ok {
		return v.pkg.TypesInfo.TypeOf(index.Index)
	}
	return nil
}

// maxScriptTime is the most that hosts give a script.
const maxScriptTime = 10 * time.Minute

// checkScriptTool looks for mistakes in an agent tool.
func (v *view) checkScriptTool(call *ast.CallExpr) {
	if spec, ok := v.literal(call.Args[0]); ok {
		e := field(spec, "Timeout")
		if n, known := v.integer(e); known && time.Duration(n) > maxScriptTime {
			v.fail(codeLimit, e.Pos(), "make it 10 minutes at most", "a script has no more than 10 minutes")
		}
	}
	if in := v.inputOf(call); in != nil && in != types.Typ[types.Invalid] {
		v.checkInputType(call, in)
	}
	e := call.Args[1]
	if text, known := v.constant(e); known && !strings.HasPrefix(text, "#!/") {
		v.fail(codeWrongType, e.Pos(), "begin it with a line such as #!/usr/bin/env bash", "the script does not begin with #!/ and its interpreter")
	}
}

// integer returns the value of a constant integer.
func (v *view) integer(e ast.Expr) (int64, bool) {
	if e == nil {
		return 0, false
	}
	value := v.pkg.TypesInfo.Types[e].Value
	if value == nil || value.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(value)
}

// orPos returns where an expression is, or else a literal that lacks it.
func orPos(e ast.Expr, lit *ast.CompositeLit) token.Pos {
	if e != nil {
		return e.Pos()
	}
	return lit.Pos()
}
