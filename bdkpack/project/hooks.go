package project

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// checkHook looks for mistakes in the definition of a hook.
func (v *view) checkHook(one variable) {
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
	seen := map[string]bool{}
	for _, arg := range call.Args[1:] {
		name := v.handled(arg)
		if name != "" && seen[name] {
			v.fail(codeTwoHandlers, arg.Pos(), "make them one function", "the hook has two handlers for %s", name)
		}
		seen[name] = true
	}
}

// handled returns which events an expression handles, "" if that cannot be said.
func (v *view) handled(e ast.Expr) string {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch v.definer(call, "On", "OnAny") {
	case "OnAny":
		return "all events"
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
				return types.TypeString(args.At(0), func(*types.Package) string { return "" })
			}
		}
	}
	return ""
}

func (v *view) warnAt(code string, at token.Pos, help, what string) {
	p := v.pkg.Fset.Position(at)
	v.l.warn(code, diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}, help, "%s", what)
}
