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
	if timeout == nil {
		return
	}
	if value := v.pkg.TypesInfo.Types[timeout].Value; value != nil && value.Kind() == constant.Int {
		switch n, _ := constant.Int64Val(value); {
		case n < 0:
			v.fail(codeApproval, timeout.Pos(), "leave it out for 7 days", "the ApprovalTimeout is below zero")
		case time.Duration(n) > maxApproval:
			p := v.pkg.Fset.Position(timeout.Pos())
			v.l.warn(codeApproval, diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}, "make it 7 days at most if the agent is to be deployed", "on AWS no call waits longer than 7 days")
		}
	}
}

// isPrincipal says whether a text may name who approves. The host knows more.
func isPrincipal(who string) bool {
	switch who {
	case bdk.SessionOwner, bdk.Anybody, "local", "anonymous":
		return true
	}
	kind, name, ok := strings.Cut(who, ":")
	return ok && kind != "" && strings.TrimSpace(name) == name && name != ""
}

// checkTimeArgs complains about time arguments that the input of a tool does not have.
func (v *view) checkTimeArgs(spec *ast.CompositeLit, in types.Type) {
	list, ok := v.literal(field(spec, "TimeArgs"))
	if !ok || in == nil || field(spec, "InputSchema") != nil {
		return
	}
	st, ok := deref(types.Unalias(in)).Underlying().(*types.Struct)
	if !ok {
		return
	}
	names, open := jsonNames(st)
	for _, e := range list.Elts {
		name, known := v.constant(e)
		if !known || open || slices.Contains(names, name) {
			continue
		}
		help := "the input has " + strings.Join(names, ", ")
		if meant := nearest(name, names); meant != "" {
			help = "did you mean " + meant + "?"
		}
		v.fail(codeTimeArg, e.Pos(), help, "the input of the tool has no %q, so no session could be started at a frozen instant", name)
	}
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

// checkScriptText complains about a script without an interpreter.
func (v *view) checkScriptText(e ast.Expr) {
	if text, known := v.constant(e); known && !strings.HasPrefix(text, "#!/") {
		v.fail(codeWrongType, e.Pos(), "begin it with a line such as #!/usr/bin/env bash", "the script does not begin with #!/ and its interpreter")
	}
}

// orPos returns where an expression is, or else a literal that lacks it.
func orPos(e ast.Expr, lit *ast.CompositeLit) token.Pos {
	if e != nil {
		return e.Pos()
	}
	return lit.Pos()
}
