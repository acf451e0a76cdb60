package bdkerr_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// Clients compare codes and statuses: neither may change.
func TestCodesAndStatusesStay(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"invalid_request":    400,
		"payload_too_large":  413,
		"unauthenticated":    401,
		"forbidden":          403,
		"not_found":          404,
		"method_not_allowed": 405,
		"stale_token":        409,
		"session_closed":     409,
		"turn_mismatch":      409,
		"idempotency_key":    409,
		"conflict":           409,
		"unavailable":        503,
		"internal":           500,

		"unknown_tool":               404,
		"tool_not_callable":          400,
		"invalid_tool_input":         400,
		"invalid_continuation_token": 400,
		"session_not_found":          404,
		"schedule_failed":            500,
		"session_busy":               409,
		"already_decided":            409,
		"workspace_unavailable":      500,
	}
	got := map[string]int{}
	for _, code := range declared(t) {
		got[string(code)] = code.Status()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := bdkerr.Code("new_one").Status(); got != 500 {
		t.Errorf("a code outside of the list has status %d, want 500", got)
	}
}

// declared returns the codes that the package declares.
func declared(t *testing.T) []bdkerr.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "bdkerr.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []bdkerr.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, bdkerr.Code(code))
		}
		return true
	})
	return codes
}

func TestErrorShowsMessageAndCause(t *testing.T) {
	t.Parallel()
	err := bdkerr.New(bdkerr.NotFound, "no session %q", "ses_1")
	if got, want := err.Error(), `no session "ses_1"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err.Err = fs.ErrNotExist
	if got, want := err.Error(), `no session "ses_1": file does not exist`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause is not found in it")
	}
}

func TestErrorsMatchByCode(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("following up: %w", bdkerr.New(bdkerr.StaleToken, "the token was used"))
	if !errors.Is(err, bdkerr.New(bdkerr.StaleToken, "")) {
		t.Error("it does not match its own code")
	}
	if errors.Is(err, bdkerr.New(bdkerr.Conflict, "the token was used")) {
		t.Error("it matches another code")
	}
	if plain := errors.New("plain"); errors.Is(plain, bdkerr.New(bdkerr.Internal, "")) {
		t.Error("an error without code matches one with")
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	inner := bdkerr.New(bdkerr.NotFound, "no")
	for name, test := range map[string]struct {
		err  error
		want bdkerr.Code
	}{
		"nil":                 {nil, ""},
		"without code":        {fs.ErrNotExist, bdkerr.Internal},
		"with code":           {inner, bdkerr.NotFound},
		"wrapped":             {fmt.Errorf("reading: %w", inner), bdkerr.NotFound},
		"joined":              {errors.Join(fs.ErrNotExist, inner), bdkerr.NotFound},
		"outermost code wins": {&bdkerr.Error{Code: bdkerr.Unavailable, Err: inner}, bdkerr.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := bdkerr.CodeOf(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
