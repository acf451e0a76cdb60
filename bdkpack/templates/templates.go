// Package templates holds the agents that `bdk init` writes. Each is a folder here, compiled and tested as it is, with a
// template.yaml beside its files that says what may be filled in:
//
//	description: One sentence for the list of templates.
//	vars:
//	  - name: name          # given as --var name=…
//	    help: what it is
//	    default: PR approver
//
// The default of a variable is a text that stands in the files. Rendering replaces it wherever it stands by the given
// value. Two more texts are replaced: the import path of the template, in import declarations, by the path of the author's
// module, and the name of the template, outside Go files, by the slug of the author's agent.
package templates

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// FS holds the files of all templates, each template in a folder of its name.
//
// Only what belongs to a template is named, so that .bdk, which a template has once it was served, stays out.
//
//go:embed pr-approver/template.yaml pr-approver/.gitignore pr-approver/README.md pr-approver/demo.yaml all:pr-approver/bot
var FS embed.FS

const (
	manifest   = "template.yaml"
	importPath = "github.com/bdk-lambda/bdk/bdkpack/templates/"
)

// Template is an agent to start from. It is immutable and safe for concurrent use.
type Template struct {
	Name        string // of its folder
	Description string // one sentence
	Vars        []Var  // what can be filled in, in the order to ask for it

	err error // of its manifest
}

// Var is a text of a template that can be replaced.
type Var struct {
	Name    string // as in --var name=value
	Help    string // what it is
	Default string // what it is if no value is given
}

// File is a file to write.
type File struct {
	Data []byte
	Mode fs.FileMode // 0o644, or 0o755 for a script
}

// List returns all templates in name order.
func List() []Template {
	folders, _ := FS.ReadDir(".") // an embedded root can always be read
	list := make([]Template, len(folders))
	for i, folder := range folders {
		list[i] = read(folder.Name())
	}
	return list
}

func read(name string) Template {
	data, err := FS.ReadFile(path.Join(name, manifest))
	if err != nil {
		return Template{Name: name, err: err}
	}
	var m struct {
		Description string
		Vars        []Var
	}
	err = yaml.UnmarshalWithOptions(data, &m, yaml.Strict())
	return Template{Name: name, Description: m.Description, Vars: m.Vars, err: err}
}

// Render returns the files of an agent, by slash-separated path below the agent's folder: all but go.mod.
//
// Vars that are not given keep their defaults; the error for one that does not exist names those that do. A value is one
// line of at most 80 characters, without quotes and backslashes, so that it means the same in every kind of file.
// Module is the import path of the agent's folder and slug the name of that folder; the caller has checked both.
func (t Template) Render(vars map[string]string, module, slug string) (map[string]File, error) {
	if t.err != nil {
		return nil, fmt.Errorf("template %s: reading %s: %w", t.Name, manifest, t.err)
	}
	if module == "" || slug == "" {
		return nil, errors.New("rendering a template needs the import path and the slug of the agent")
	}
	replacements, err := t.replacements(vars)
	if err != nil {
		return nil, err
	}
	goText := strings.NewReplacer(replacements...)
	text := strings.NewReplacer(append(replacements, t.Name, slug)...)
	files := map[string]File{}
	err = fs.WalkDir(FS, t.Name, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == path.Join(t.Name, manifest) {
			return err
		}
		data, err := FS.ReadFile(name)
		if err != nil {
			return err
		}
		switch {
		case !utf8.Valid(data):
		case path.Ext(name) == ".go":
			data, err = moveImports(name, []byte(goText.Replace(string(data))), importPath+t.Name, module)
		default:
			data = []byte(text.Replace(string(data)))
		}
		files[strings.TrimPrefix(name, t.Name+"/")] = File{Data: data, Mode: mode(data)}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("rendering template %s: %w", t.Name, err)
	}
	return files, nil
}

// replacements returns the pairs of text to replace and new text.
func (t Template) replacements(vars map[string]string) ([]string, error) {
	var pairs, known []string
	for _, v := range t.Vars {
		known = append(known, v.Name)
		value, given := vars[v.Name]
		if !given {
			continue
		}
		if err := checkValue(value); err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		pairs = append(pairs, v.Default, value)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("template %s has no variable %q; it has: %s", t.Name, name, strings.Join(known, ", "))
		}
	}
	return pairs, nil
}

func checkValue(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("the value is empty")
	}
	if n := utf8.RuneCountInString(value); n > 80 {
		return fmt.Errorf("the value has %d characters: use at most 80", n)
	}
	for _, r := range value {
		if !unicode.IsPrint(r) || r == utf8.RuneError || strings.ContainsRune("\"`\\", r) {
			return fmt.Errorf("the value contains %q: use letters, digits, spaces and punctuation other than quotes and backslashes", r)
		}
	}
	return nil
}

func mode(data []byte) fs.FileMode {
	if bytes.HasPrefix(data, []byte("#!")) {
		return 0o755
	}
	return 0o644
}
