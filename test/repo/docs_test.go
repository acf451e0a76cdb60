package repo_test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCommandsInTheDocumentsExist(t *testing.T) {
	t.Parallel()
	noProblems(t, commandProblems(tracked(t)))
}

func TestCommandRuleSeesPlantedFaults(t *testing.T) {
	t.Parallel()
	wantProblems(t, commandProblems(plant(map[string]string{
		"Makefile": "help: ## list\n\t@true\nbuild: help ## build\nX ?= 1\nsecret:\n\t@true\n",
		"README.md": "Run `make build` or make sense.\n```sh\nmake deploy\n$ make help FUZZ=1\nmake\n```\n" +
			"Then `X=1 make gone` ends.\n",
	})),
		"Makefile: target secret has no help text",
		"README.md:3: make deploy is not in the Makefile",
		"README.md:7: make gone is not in the Makefile",
	)
}

func TestLinksInTheDocumentsLeadToFiles(t *testing.T) {
	t.Parallel()
	noProblems(t, linkProblems(tracked(t)))
}

func TestLinkedFileRuleSeesPlantedFaults(t *testing.T) {
	t.Parallel()
	wantProblems(t, linkProblems(plant(map[string]string{
		"README.md": "[a](docs/a.md) [b](docs/b.md#part) [folder](docs) [web](https://example.com) [here](#part)\n",
		"docs/a.md": "[up](../README.md)\n[gone](c.md)\n",
	})),
		"README.md:1: leads to docs/b.md, which is not in the repository",
		"docs/a.md:2: leads to docs/c.md, which is not in the repository",
	)
}

func TestEveryDependencyHasAReason(t *testing.T) {
	t.Parallel()
	noProblems(t, dependencyProblems(tracked(t)))
}

func TestDependencyRuleSeesPlantedFaults(t *testing.T) {
	t.Parallel()
	wantProblems(t, dependencyProblems(plant(map[string]string{
		"go.mod": "module m\n\nrequire a.org/single v1.0.0\n\nrequire (\n\ta.org/known v1.0.0\n\ta.org/new v1.0.0\n\ta.org/far v1.0.0 // indirect\n)\n",
		"DESIGN.md": "| module | used by | reason |\n|---|---|---|\n| `a.org/known` | `x` | it helps |\n| `a.org/gone` | `x` | it helped |\n" +
			"| `a.org/new` | `x` | |\n\nSee `a.org/single`.\n",
	})),
		"DESIGN.md: a.org/gone is not a direct requirement of go.mod",
		"DESIGN.md: no reason is given for a.org/new",
		"DESIGN.md: no reason is given for a.org/single",
	)
}

var (
	requirement = regexp.MustCompile(`^(?:require )?\s*([a-z][\w.-]*\.[a-z]+/\S+) v\S+$`)
	reason      = regexp.MustCompile("^\\| `([^`]+)` \\| [^|]+ \\| *[^| ][^|]*\\|$")
	target      = regexp.MustCompile(`^([a-z][\w-]*):([^=]|$)`)
	makeCommand = regexp.MustCompile("(?:^|`)(?:\\$ )?(?:\\w+=\\S+ )*make +([a-z][\\w-]*)")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// commandProblems checks that each make command that a document names exists, and that each target says what it does.
// A command stands at the beginning of a line inside a code block, or of a code span.
func commandProblems(tree fstest.MapFS) []string {
	var problems, targets []string
	for _, line := range lines(tree["Makefile"].Data) {
		match := target.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		targets = append(targets, match[1])
		if !strings.Contains(line, "## ") {
			problems = append(problems, "Makefile: target "+match[1]+" has no help text")
		}
	}
	for _, name := range names(tree, markdown) {
		for i, line := range lines(tree[name].Data) {
			for _, match := range makeCommand.FindAllStringSubmatch(line, -1) {
				if !slices.Contains(targets, match[1]) {
					problems = append(problems, fmt.Sprintf("%s:%d: make %s is not in the Makefile", name, i+1, match[1]))
				}
			}
		}
	}
	return problems
}

// dependencyProblems compares the direct requirements of go.mod with the reasons in DESIGN.md.
func dependencyProblems(tree fstest.MapFS) []string {
	required, reasons := captures(tree, "go.mod", requirement), captures(tree, "DESIGN.md", reason)
	var problems []string
	for _, mod := range reasons {
		if !slices.Contains(required, mod) {
			problems = append(problems, "DESIGN.md: "+mod+" is not a direct requirement of go.mod")
		}
	}
	for _, mod := range required {
		if !slices.Contains(reasons, mod) {
			problems = append(problems, "DESIGN.md: no reason is given for "+mod)
		}
	}
	slices.Sort(problems)
	return problems
}

// captures returns what the first group of the pattern matches in the lines of a file.
func captures(tree fstest.MapFS, name string, pattern *regexp.Regexp) []string {
	var found []string
	for _, line := range lines(tree[name].Data) {
		if match := pattern.FindStringSubmatch(line); match != nil {
			found = append(found, match[1])
		}
	}
	return found
}

// linkProblems checks that links from document to document, or to a folder, lead somewhere.
func linkProblems(tree fstest.MapFS) []string {
	var problems []string
	for _, name := range names(tree, markdown) {
		for i, line := range lines(tree[name].Data) {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				to, _, _ := strings.Cut(match[1], "#")
				if to == "" || strings.Contains(to, ":") {
					continue
				}
				to = path.Join(path.Dir(name), to)
				if _, err := tree.Stat(to); err != nil {
					problems = append(problems, fmt.Sprintf("%s:%d: leads to %s, which is not in the repository", name, i+1, to))
				}
			}
		}
	}
	return problems
}

// markdown says whether a file is a document of the repository. An author's agent has its own.
func markdown(name string) bool {
	return path.Ext(name) == ".md" && !fixture(name) && !strings.HasPrefix(name, "bdkpack/templates/")
}
