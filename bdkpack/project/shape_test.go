package project_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/schema"
)

func refused[T any]() bool {
	_, err := schema.For[T](nil)
	return err != nil
}

func TestInputsAreRefusedAsBySchema(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"chanIn": refused[chanIn](), "funcIn": refused[funcIn](), "complexIn": refused[complexIn](), "unsafeIn": refused[unsafeIn](),
		"intKeyIn": refused[intKeyIn](), "nameKeyIn": refused[nameKeyIn](), "textKeyIn": refused[textKeyIn](), "timeKeyIn": refused[timeKeyIn](),
		"selfIn": refused[selfIn](), "selfListIn": refused[selfListIn](), "mutualIn": refused[mutualIn](), "twiceIn": refused[twiceIn](),
		"skippedIn": refused[skippedIn](), "dashIn": refused[dashIn](), "omittedIn": refused[omittedIn](), "ownIn": refused[ownIn](),
		"ownValueIn": refused[ownValueIn](), "writerIn": refused[writerIn](), "textIn": refused[textIn](),
		"stdIn": refused[stdIn](), "embedIn": refused[embedIn](), "embedPtrIn": refused[embedPtrIn](), "embedChanIn": refused[embedChanIn](),
		"embedDashIn": refused[embedDashIn](), "shadowedIn": refused[shadowedIn](), "ambiguousIn": refused[ambiguousIn](),
		"embedNamedIn": refused[embedNamedIn](), "embedTextIn": refused[embedTextIn](), "embedTimeIn": refused[embedTimeIn](), "embedTimesIn": refused[embedTimesIn](),
		"embedSelfIn": refused[embedSelfIn](), "stringIn": refused[stringIn](), "stringOwnIn": refused[stringOwnIn](), "tagIn": refused[tagIn](),
		"badTagIn": refused[badTagIn](), "emptyTagIn": refused[emptyTagIn](), "genericIn": refused[genericIn](), "fitIn": refused[fitIn](),
		"arrayIn": refused[arrayIn](),
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "shapes_test.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	pkg, err := conf.Check("project_test", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, want := range want {
		if got := project.Refused(pkg.Scope().Lookup(name).Type()); got != want {
			t.Errorf("%s: refused %t, but package schema %t", name, got, want)
		}
		if want {
			count++
		}
	}
	if count < 15 || count > len(want)-10 {
		t.Errorf("%d of %d types are refused", count, len(want))
	}
}
