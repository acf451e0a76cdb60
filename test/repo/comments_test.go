package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// authoring is the package that agents are written with. There the fields of structs are explained as well: their
// zero values are the defaults an author gets.
const authoring = "bdkpack/bdk"

// documented lists the packages that others build on: every exported name in them says what it is.
var documented = []string{
	authoring, "shared/event", "shared/bdkerr", "shared/clock", "shared/schema",
	"shared/session", "shared/kv", "shared/blob", "shared/turn", "shared/model",
}

func TestEveryPackageHasExactlyOneComment(t *testing.T) {
	t.Parallel()
	noProblems(t, packageComments(t, tracked(t)))
}

func TestPackageCommentRuleSeesPlantedFaults(t *testing.T) {
	t.Parallel()
	wantProblems(t, packageComments(t, plant(map[string]string{
		"good/a.go":                              "// Package good is documented.\npackage good",
		"good/b.go":                              "package good",
		"good/b_test.go":                         "// Package good is documented again, in a test, where nobody reads it.\npackage good",
		"none/a.go":                              "package none",
		"two/a.go":                               "// Package two is here.\npackage two",
		"two/b.go":                               "// Package two is there.\npackage two",
		"odd/a.go":                               "// This one does not say its name.\npackage odd",
		"cmd/tool/main.go":                       "// Command tool does it.\npackage main",
		"cmd/bad/main.go":                        "// Package main does it.\npackage main",
		"x/testdata/a.go":                        "package skipped",
		"bdkpack/templates/a.go":                 "package templates",
		"bdkpack/templates/pr-approver/bot/a.go": "package bot",
	})),
		"bdkpack/templates: package templates has 0 package comments, want one",
		`cmd/bad: the comment of package main begins "Package main does it.", want "Command bad "`,
		"none: package none has 0 package comments, want one",
		`odd: the comment of package odd begins "This one does not say its name.", want "Package odd "`,
		"two: package two has 2 package comments, want one",
	)
}

func TestExportedNamesAreDocumented(t *testing.T) {
	t.Parallel()
	noProblems(t, undocumented(t, tracked(t), documented))
}

func TestDocumentationRuleSeesPlantedFaults(t *testing.T) {
	t.Parallel()
	wantProblems(t, undocumented(t, plant(map[string]string{
		"bdkpack/bdk/a.go": `package bdk

// T is a type.
type T struct {
	A int // an A
	// B is a B.
	B int
	C, D int
	hidden int
}

// Alias is documented.
type Alias = T

// An I does things.
type I interface {
	// Do does it.
	Do()
	Undone()
}

type U struct{}

// Good is documented.
func (T) Good() {}
func (*T) Bad() {}
func (hidden) Whatever() {}
func F() {}

// The constants.
const (
	K1 = 1
	K2 = 2
)

const K3 = 3
var V int
`,
		"bdkpack/bdk/a_test.go": "package bdk\nfunc Helper() {}",
		"shared/kv/a.go":        "package kv\n// O is documented.\ntype O struct { F int }\nfunc (O) M() {}",
		"other/a.go":            "package other\nfunc Free() {}",
	}), []string{authoring, "shared/kv"}),
		"bdkpack/bdk/a.go:8: C has no comment",
		"bdkpack/bdk/a.go:8: D has no comment",
		"bdkpack/bdk/a.go:19: Undone has no comment",
		"bdkpack/bdk/a.go:22: U has no comment",
		"bdkpack/bdk/a.go:26: Bad has no comment",
		"bdkpack/bdk/a.go:28: F has no comment",
		"bdkpack/bdk/a.go:36: K3 has no comment",
		"bdkpack/bdk/a.go:37: V has no comment",
		"shared/kv/a.go:4: M has no comment",
	)
}

// product says whether a file is Go code of the product: no test, no test data, not an author's agent.
func product(name string) bool {
	agent := strings.HasPrefix(name, "bdkpack/templates/") && strings.Count(name, "/") > 2 || strings.HasPrefix(name, "test/agents/")
	return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !fixture(name) && !agent
}

// packageComments checks that each package is explained once and by name.
func packageComments(t *testing.T, tree fstest.MapFS) []string {
	t.Helper()
	type pkg struct{ dir, name string }
	docs := map[pkg][]string{}
	for _, name := range names(tree, product) {
		file := parse(t, tree, name, parser.PackageClauseOnly|parser.ParseComments)
		p := pkg{path.Dir(name), file.Name.Name}
		docs[p] = append(docs[p], file.Doc.Text())
	}
	var problems []string
	for p := range maps.Keys(docs) {
		texts := slices.DeleteFunc(docs[p], func(text string) bool { return text == "" })
		if len(texts) != 1 {
			problems = append(problems, fmt.Sprintf("%s: package %s has %d package comments, want one", p.dir, p.name, len(texts)))
			continue
		}
		want := "Package " + p.name + " "
		if p.name == "main" {
			want = "Command " + path.Base(p.dir) + " "
		}
		if first, _, _ := strings.Cut(texts[0], "\n"); !strings.HasPrefix(first+" ", want) {
			problems = append(problems, fmt.Sprintf("%s: the comment of package %s begins %q, want %q", p.dir, p.name, first, want))
		}
	}
	slices.Sort(problems)
	return problems
}

// undocumented lists the exported names of the given packages, with the methods of their interfaces, that no comment
// explains. A group's comment stands for its members.
func undocumented(t *testing.T, tree fstest.MapFS, dirs []string) []string {
	t.Helper()
	var problems []string
	for _, name := range names(tree, func(name string) bool { return product(name) && slices.Contains(dirs, path.Dir(name)) }) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, tree[name].Data, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		check := func(id *ast.Ident, comments ...*ast.CommentGroup) {
			bare := !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" })
			if id.IsExported() && bare {
				problems = append(problems, fmt.Sprintf("%s:%d: %s has no comment", name, fset.Position(id.Pos()).Line, id.Name))
			}
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if receiver(decl) == "" || ast.IsExported(receiver(decl)) {
					check(decl.Name, decl.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					checkSpec(spec, decl.Doc, path.Dir(name) == authoring, check)
				}
			}
		}
	}
	return problems
}

func checkSpec(spec ast.Spec, group *ast.CommentGroup, fields bool, check func(*ast.Ident, ...*ast.CommentGroup)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, id := range spec.Names {
			check(id, group, spec.Doc, spec.Comment)
		}
	case *ast.TypeSpec:
		check(spec.Name, group, spec.Doc, spec.Comment)
		if !spec.Name.IsExported() {
			return
		}
		for _, member := range members(spec.Type, fields) {
			for _, id := range member.Names {
				check(id, member.Doc, member.Comment)
			}
		}
	}
}

// members returns the methods of an interface and, if asked for, the fields of a struct.
func members(typ ast.Expr, fields bool) []*ast.Field {
	switch typ := typ.(type) {
	case *ast.InterfaceType:
		return typ.Methods.List
	case *ast.StructType:
		if fields {
			return typ.Fields.List
		}
	}
	return nil
}

// receiver returns the name of the type decl is a method of, or "".
func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	name := ""
	ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func parse(t *testing.T, tree fstest.MapFS, name string, mode parser.Mode) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, tree[name].Data, mode)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
