package templates_test

import (
	"go/format"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/templates"
)

func TestListDescribesEveryTemplate(t *testing.T) {
	t.Parallel()
	var names []string
	for _, template := range templates.List() {
		names = append(names, template.Name)
		if template.Description == "" {
			t.Errorf("%s has no description", template.Name)
		}
		for _, v := range template.Vars {
			if v.Name == "" || v.Help == "" || v.Default == "" {
				t.Errorf("%s has an incomplete variable: %+v", template.Name, v)
			}
		}
	}
	if diff := cmp.Diff([]string{"pr-approver"}, names); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

// The patterns of go:embed name the parts of a template, so a new part could be forgotten.
func TestRenderedFilesAreTheFilesOfTheFolder(t *testing.T) {
	t.Parallel()
	for _, template := range templates.List() {
		var want []string
		err := fs.WalkDir(os.DirFS(template.Name), ".", func(name string, entry fs.DirEntry, err error) error {
			if entry.IsDir() && path.Base(name) == ".bdk" {
				return fs.SkipDir
			}
			if !entry.IsDir() && name != "template.yaml" {
				want = append(want, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(maps.Keys(render(t, template, nil)))
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", template.Name, diff)
		}
	}
}

func TestRenderMovesTheAgentToTheAuthorsModule(t *testing.T) {
	t.Parallel()
	for _, template := range templates.List() {
		imports := 0
		for name, file := range render(t, template, nil) {
			text := string(file.Data)
			if strings.Contains(text, "bdkpack/templates") || strings.Contains(text, "template.yaml") {
				t.Errorf("%s: %s still speaks of the template", template.Name, name)
			}
			if path.Ext(name) != ".go" {
				continue
			}
			imports += strings.Count(text, `"example.com/me/agents/reviewer/`)
			if formatted, err := format.Source(file.Data); err != nil || string(formatted) != text {
				t.Errorf("%s: %s is not formatted: %v", template.Name, name, err)
			}
		}
		if imports == 0 {
			t.Errorf("%s: nothing is imported from the author's module", template.Name)
		}
	}
}

func TestRenderReplacesVariablesAndSlug(t *testing.T) {
	t.Parallel()
	for _, template := range templates.List() {
		before := render(t, template, nil)
		for _, v := range template.Vars {
			after := render(t, template, map[string]string{v.Name: "Ärger & Söhne, 1 of 2"})
			for name, file := range after {
				want := strings.ReplaceAll(string(before[name].Data), v.Default, "Ärger & Söhne, 1 of 2")
				if diff := cmp.Diff(want, string(file.Data)); diff != "" {
					t.Errorf("%s with %s: %s (-want +got):\n%s", template.Name, v.Name, name, diff)
				}
			}
			if cmp.Equal(before, after) {
				t.Errorf("%s: the variable %s changes nothing", template.Name, v.Name)
			}
		}
		if readme := string(before["README.md"].Data); !strings.Contains(readme, "/reviewer/v1/session") {
			t.Errorf("%s: the README does not speak of the author's agent:\n%s", template.Name, readme)
		}
	}
}

func TestRenderedFilesAreReadableAndScriptsExecutable(t *testing.T) {
	t.Parallel()
	for _, template := range templates.List() {
		for name, file := range render(t, template, nil) {
			want := fs.FileMode(0o644)
			if strings.HasPrefix(string(file.Data), "#!") {
				want = 0o755
			}
			if file.Mode != want {
				t.Errorf("%s: %s has mode %v, want %v", template.Name, name, file.Mode, want)
			}
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	template := templates.List()[0]
	for name, test := range map[string]struct {
		vars         map[string]string
		module, slug string
		want         string
	}{
		"unknown variable": {map[string]string{"nam": "x"}, "m", "s", `template pr-approver has no variable "nam"; it has: name`},
		"empty value":      {map[string]string{"name": " "}, "m", "s", "variable name: the value is empty"},
		"quote":            {map[string]string{"name": `a"b`}, "m", "s", `variable name: the value contains '"': use letters`},
		"backslash":        {map[string]string{"name": `a\`}, "m", "s", `the value contains '\\'`},
		"line end":         {map[string]string{"name": "a\nb"}, "m", "s", `the value contains '\n'`},
		"not UTF-8":        {map[string]string{"name": "a\xff"}, "m", "s", "the value contains '\ufffd'"},
		"long value":       {map[string]string{"name": strings.Repeat("ä", 81)}, "m", "s", "the value has 81 characters: use at most 80"},
		"no module":        {nil, "", "s", "needs the import path and the slug"},
		"no slug":          {nil, "m", "", "needs the import path and the slug"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := template.Render(test.vars, test.module, test.slug)
			if err == nil || !strings.Contains(err.Error(), test.want) || files != nil {
				t.Errorf("got %d files and %v, want an error with %q", len(files), err, test.want)
			}
		})
	}
}

func TestImportsMove(t *testing.T) {
	t.Parallel()
	const src = `package p

import (
	"a/b"
	x "a/b/c" // the path "a/b/c" stays in comments
	_ "a/bc"
	"fmt"
)

const s = "a/b/c"
`
	const want = `package p

import (
	_ "a/bc"
	"fmt"
	"z.com/m"
	x "z.com/m/c" // the path "a/b/c" stays in comments
)

const s = "a/b/c"
`
	got, err := templates.MoveImports("p.go", []byte(src), "a/b", "z.com/m")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func render(t *testing.T, template templates.Template, vars map[string]string) map[string]templates.File {
	t.Helper()
	files, err := template.Render(vars, "example.com/me/agents/reviewer", "reviewer")
	if err != nil {
		t.Fatal(err)
	}
	return files
}
