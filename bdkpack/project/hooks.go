package project

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// checkHook looks for mistakes in the definition of a hook.
func (v *view) checkHook(one variable) {
	v.events = []string{"*"}
	const noHandler, write = "the hook has no handler, so it does nothing", "add a handler, such as bdk.On(func(ctx context.Context, h *bdk.HookContext, e bdk.Event, data bdk.TurnCompleted) error { … })"
	if _, literal := v.literal(one.value); literal || one.value == nil && !one.shared {
		v.warnAt(codeNoHandler, one.obj.Pos(), write, noHandler)
		return
	}
	call, ok := ast.Unparen(one.value).(*ast.CallExpr)
	if !ok || len(call.Args) == 0 || v.definer(call, "DefineHook") == "" {
		return
	}
	if spec, ok := v.literal(call.Args[0]); ok {
		v.checkLimits(spec, "Timeout")
	}
	if len(call.Args) == 1 {
		v.warnAt(codeNoHandler, call.Pos(), write, noHandler)
	}
	v.events = nil
	for _, arg := range call.Args[1:] {
		name := cmp.Or(v.handled(arg), "*")
		if slices.Contains(v.events, name) && v.handled(arg) != "" {
			v.fail(codeTwoHandlers, arg.Pos(), "make them one function", "the hook has two handlers for %s", strings.Replace(name, "*", "all events", 1))
		}
		v.events = append(v.events, name)
	}
	slices.Sort(v.events)
	v.events = slices.Compact(v.events)
}

// handled returns the type of the events that an expression handles, * for all, "" if that cannot be said.
func (v *view) handled(e ast.Expr) string {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch v.definer(call, "On", "OnAny") {
	case "OnAny":
		return "*"
	case "On":
		var sel *ast.SelectorExpr
		switch fun := ast.Unparen(call.Fun).(type) {
		case *ast.SelectorExpr:
			sel = fun
		case *ast.IndexExpr:
			sel, _ = fun.X.(*ast.SelectorExpr)
		}
		if sel != nil {
			if args := v.pkg.TypesInfo.Instances[sel.Sel].TypeArgs; args.Len() == 1 {
				return v.eventType(args.At(0))
			}
		}
	}
	return ""
}

// eventType returns the type of the events that have data of a type, "" if it is not one of package bdk.
func (v *view) eventType(data types.Type) string {
	name := types.TypeString(data, func(*types.Package) string { return "" })
	if scope := bdkScope(v.pkg.Types); scope != nil {
		if c, ok := scope.Lookup("Event" + name).(*types.Const); ok {
			return constant.StringVal(c.Val())
		}
	}
	return ""
}

func (v *view) warnAt(code string, at token.Pos, help, what string) {
	p := v.pkg.Fset.Position(at)
	v.l.warn(code, diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}, help, "%s", what)
}
