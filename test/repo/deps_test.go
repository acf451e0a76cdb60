package repo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// A pkg is a package with everything it links.
type pkg struct {
	ImportPath string   `json:"ImportPath"`
	Deps       []string `json:"Deps"`
}

// A rule says what some packages must not link, however far down. Patterns are those of [within].
type rule struct {
	why    string
	in     []string // which packages
	except []string // which of them not
	deny   []string // what they must not link
	allow  []string // if set: all that they may link
}

var (
	aws    = []string{"github.com/aws/..."}
	stores = []string{"database/sql", "modernc.org/sqlite", "github.com/ncruces/..."}
	// adapters know what they adapt; a host chooses among them.
	storeAdapters = []string{module + "/shared/*/sqlite*", module + "/shared/internal/sqlitex", module + "/shared/host/localhost"}
	awsAdapters   = []string{
		module + "/shared/model/bedrock", module + "/shared/*/dynamo*", module + "/shared/*/s3*", module + "/shared/internal/awsx",
		module + "/shared/*/sfn*", module + "/shared/turn/sfnturn/sfntest", module + "/shared/*/aws*", module + "/shared/*/lambda*", module + "/shared/*/scheduler*", module + "/shared/*/cloud*", module + "/shared/*/sqs*", module + "/shared/host/...",
	}
)

var rules = []rule{
	{
		why:   "the vocabulary is a leaf",
		in:    []string{module + "/shared/event", module + "/shared/bdkerr", module + "/shared/clock", module + "/shared/cron", module + "/shared/schema"},
		allow: []string{"std", "github.com/google/jsonschema-go/...", module + "/shared/event", module + "/shared/bdkerr", module + "/shared/clock", module + "/shared/cron", module + "/shared/schema"},
	},
	{
		why:   "an agent's code links the vocabulary only",
		in:    []string{module + "/bdkpack/bdk"},
		allow: []string{"std", "github.com/google/jsonschema-go/...", module + "/shared/event", module + "/shared/bdkerr", module + "/shared/clock", module + "/shared/cron", module + "/shared/schema"},
	},
	{
		why:    "the core knows ports, not stores",
		in:     []string{module + "/shared/..."},
		except: storeAdapters,
		deny:   stores,
	},
	{
		why:    "the core knows ports, not providers",
		in:     []string{module + "/shared/..."},
		except: awsAdapters,
		deny:   aws,
	},
	{
		why:    "authoring and packing work without AWS; only the command works with a deployment",
		in:     []string{module + "/bdkpack/..."},
		except: []string{module + "/bdkpack/cli/...", module + "/bdkpack/cmd/bdk"},
		deny:   aws,
	},
	{
		why:  "agents run in programs of their own",
		in:   []string{module + "/bdkpack/..."},
		deny: []string{module + "/shared/host/...", module + "/functions/..."},
	},
	{
		why:  "a function on Lambda has no database of its own", // the test of bdkpack/pack looks at what is deployed
		in:   []string{module + "/functions/..."},
		deny: append([]string{module + "/shared/host/localhost"}, stores...),
	},
	{
		why:    "templates keep the linker from dropping unused methods: what a Lambda links has none",
		in:     []string{module + "/shared/...", module + "/bdkpack/bdk/..."},
		except: storeAdapters,
		deny:   []string{"text/template", "html/template"},
	},
	{
		why:    "test code is not linked into the product",
		in:     []string{module + "/shared/...", module + "/bdkpack/..."},
		except: []string{module + "/shared/*/*test", module + "/bdkpack/cli/*/*test", module + "/bdkpack/bdk/bdktest"},
		deny:   []string{"testing", "github.com/google/go-cmp/...", module + "/test/..."},
	},
}

func TestPackagesLinkOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	pkgs := listPackages(t)
	for _, r := range rules {
		noProblems(t, r.problems(pkgs))
		if len(r.matches(pkgs)) == 0 {
			t.Errorf("the rule %q is about no package", r.why)
		}
	}
}

func TestLinkRuleSeesPlantedFaults(t *testing.T) {
	t.Parallel()
	pkgs := []pkg{
		{ImportPath: "m/core/engine", Deps: []string{"fmt", "github.com/aws/smithy-go", "vendor/golang.org/x/net/idna"}},
		{ImportPath: "m/core/engine/dynamo", Deps: []string{"github.com/aws/smithy-go"}},
		{ImportPath: "m/core/fine", Deps: []string{"fmt", "github.com/awsome/thing"}},
		{ImportPath: "m/api", Deps: []string{"fmt", "m/core/fine", "github.com/spf13/cobra"}},
	}
	deny := rule{why: "no provider", in: []string{"m/core/..."}, except: []string{"m/core/*/dynamo"}, deny: []string{"github.com/aws/..."}}
	wantProblems(t, deny.problems(pkgs), "m/core/engine links github.com/aws/smithy-go (1 in all): no provider")
	allow := rule{why: "small", in: []string{"m/api", "m/core/engine"}, allow: []string{"std", "m/core/..."}}
	wantProblems(t, allow.problems(pkgs),
		"m/core/engine links github.com/aws/smithy-go (1 in all): small",
		"m/api links github.com/spf13/cobra (1 in all): small",
	)
	if got := (rule{in: []string{"m/gone"}}).matches(pkgs); len(got) != 0 {
		t.Errorf("a rule about no package matches %v", got)
	}
}

func (r rule) matches(pkgs []pkg) []pkg {
	return slices.DeleteFunc(slices.Clone(pkgs), func(p pkg) bool {
		return !within(p.ImportPath, r.in) || within(p.ImportPath, r.except)
	})
}

func (r rule) problems(pkgs []pkg) []string {
	var problems []string
	for _, p := range r.matches(pkgs) {
		bad := slices.DeleteFunc(slices.Clone(p.Deps), func(dep string) bool {
			return !within(dep, r.deny) && (r.allow == nil || within(dep, r.allow))
		})
		if len(bad) > 0 {
			problems = append(problems, fmt.Sprintf("%s links %s (%d in all): %s", p.ImportPath, bad[0], len(bad), r.why))
		}
	}
	return problems
}

// within says whether one of the patterns covers the package: a path as for [path.Match], a tree ending in /..., or
// std for the standard library.
func within(importPath string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "std" {
			first, _, _ := strings.Cut(importPath, "/")
			return !strings.Contains(first, ".")
		}
		if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
			return importPath == tree || strings.HasPrefix(importPath, tree+"/")
		}
		ok, _ := path.Match(pattern, importPath)
		return ok
	})
}

// listPackages returns the packages of the module.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Deps", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
