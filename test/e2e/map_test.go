package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMapNamesWhatExists: the tests that the map of known faults names are there.
func TestMapNamesWhatExists(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	functions := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, root := range []string{"../../shared", "../../bdkpack", "../../infra", "../../test"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "_test.go") {
				for _, m := range declared.FindAllStringSubmatch(read(path), -1) {
					functions[m[1]] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	doc, cases := read("suite/doc.go"), read("suite/suite.go")
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(doc, -1)
	for _, name := range named {
		if !functions[name] {
			t.Errorf("there is no %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`suite ([A-Z][a-z]\w+)`).FindAllStringSubmatch(doc, -1) {
		if !strings.Contains(cases, `"`+m[1]+`":`) {
			t.Errorf("the suite has no case %s", m[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d tests are named", len(named))
	}
}
