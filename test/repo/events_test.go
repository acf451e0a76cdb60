package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestEveryEventTypeHasDataThatIsRoundTripped(t *testing.T) {
	t.Parallel()
	problems, types := eventProblems(t, tracked(t))
	noProblems(t, problems)
	if types < 20 {
		t.Errorf("only %d event types were found: the rule looks in the wrong place", types)
	}
}

func TestEventRuleSeesPlantedFaults(t *testing.T) {
	t.Parallel()
	problems, types := eventProblems(t, plant(map[string]string{
		"shared/event/data.go": `package event

const (
	TypeA Type = "a"
	TypeB Type = "b"
	TypeC Type = "c"
	other      = "d"
)

type A struct{}
func (A) Type() Type { return TypeA }
type B struct{}
func (*B) Type() Type { return TypeB }
func (C) Other() Type { return TypeC }
`,
		"shared/event/event_test.go": `package event_test

func TestEverythingRoundTrips(t *testing.T) { use(cases()) }
func cases() []event.Data { return []event.Data{event.A{}} }
`,
		"shared/event/mend_test.go":  "package event_test\nfunc TestSomethingElse(t *testing.T) { use(event.B{}) }",
		"shared/other/other_test.go": "package other_test\nfunc TestOtherRoundTrip(t *testing.T) { use(event.B{}) }",
	}))
	wantProblems(t, problems,
		"TypeB: its data event.B is in no round-trip test of shared/event",
		"TypeC: no data type returns it from its method Type",
	)
	if types != 3 {
		t.Errorf("found %d event types, want 3", types)
	}
}

// eventProblems checks that each event type has a data type, and that a test file of shared/event with a test named
// *RoundTrip* has a literal of it. It also returns how many types there are.
func eventProblems(t *testing.T, tree fstest.MapFS) (problems []string, types int) {
	t.Helper()
	dataOf := map[string]string{} // event type to data type, both by their Go names
	tested := map[string]bool{}
	for _, name := range names(tree, func(name string) bool { return path.Dir(name) == "shared/event" && path.Ext(name) == ".go" }) {
		file := parse(t, tree, name, parser.SkipObjectResolution)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				collectTypes(decl, dataOf)
			case *ast.FuncDecl:
				collectData(decl, dataOf)
				if strings.HasPrefix(decl.Name.Name, "Test") && strings.Contains(decl.Name.Name, "RoundTrip") {
					collectLiterals(file, tested)
				}
			}
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(dataOf)) {
		switch data := dataOf[typ]; {
		case data == "":
			problems = append(problems, typ+": no data type returns it from its method Type")
		case !tested[data]:
			problems = append(problems, fmt.Sprintf("%s: its data event.%s is in no round-trip test of shared/event", typ, data))
		}
	}
	return problems, len(dataOf)
}

// collectTypes adds the constants that are declared with the type Type.
func collectTypes(decl *ast.GenDecl, dataOf map[string]string) {
	for _, spec := range decl.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if typ, ok := value.Type.(*ast.Ident); ok && typ.Name == "Type" {
			for _, id := range value.Names {
				dataOf[id.Name] += ""
			}
		}
	}
}

// collectData adds the receiver of a method Type whose body is a single return of a name.
func collectData(decl *ast.FuncDecl, dataOf map[string]string) {
	if decl.Name.Name != "Type" || decl.Recv == nil || len(decl.Body.List) != 1 {
		return
	}
	if ret, ok := decl.Body.List[0].(*ast.ReturnStmt); ok && len(ret.Results) == 1 {
		if id, ok := ret.Results[0].(*ast.Ident); ok {
			dataOf[id.Name] = receiver(decl)
		}
	}
}

// collectLiterals adds the types of another package of which file has literals.
func collectLiterals(file *ast.File, tested map[string]bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
				tested[sel.Sel.Name] = true
			}
		}
		return true
	})
}
