package maingen_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// functions builds the functions of the agent in a copy of the world.
func functions(t *testing.T, more map[string]string) string {
	t.Helper()
	ws, diags, err := project.Load(t.Context(), filepath.Join(world(t, more), "agent"), nil)
	if err != nil || diags.HasErrors() {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	env := append(os.Environ(), "GOOS=linux", "GOARCH="+runtime.GOARCH, "CGO_ENABLED=0", "GOFLAGS=-tags=author")
	path, diags, err := maingen.Functions(t.Context(), ws, ws.Agents[0], t.TempDir(), &maingen.Options{Env: env})
	if err != nil || path == "" {
		t.Fatalf("got error %v and diagnostics\n%s", err, diags)
	}
	return path
}

func TestFunctionsAreTheSameProgramWhereverTheyAreBuilt(t *testing.T) {
	t.Parallel()
	var programs [][]byte
	for _, mod := range []string{complete, tidy} { // of the second one go.mod has to be completed
		path := functions(t, map[string]string{"agent/go.mod": mod})
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, data)
		out := run(t, t.TempDir(), "go", "version", "-m", path)
		for _, want := range []string{"-tags=lambda.norpc,author\n", "-trimpath=true\n", "CGO_ENABLED=0\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("the program was not built with %q:\n%s", want, out)
			}
		}
		if runtime.GOOS == "linux" {
			if got, want := run(t, t.TempDir(), path), "- agent on linux\n"; got != want {
				t.Errorf("the program says %q, want %q", got, want)
			}
		}
	}
	if !slices.EqualFunc(programs[:1], programs[1:], bytes.Equal) {
		t.Error("the programs differ")
	}
}

func TestMistakesThatOnlyTheBuildOfFunctionsFindsAreTold(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/go.mod": complete, "bdk/functions/functions.go": "package functions\n"})
	ws, _, err := project.Load(t.Context(), filepath.Join(root, "agent"), nil)
	if err != nil {
		t.Fatal(err)
	}
	path, diags, err := maingen.Functions(t.Context(), ws, ws.Agents[0], t.TempDir(), &maingen.Options{})
	if path != "" || err != nil || len(diags) != 1 || diags[0].Code != "BDK161" || !strings.Contains(diags[0].Message, "undefined: functions.Main") {
		t.Errorf("got program %q, error %v and diagnostics\n%s", path, err, diags)
	}
}
