package scaffold_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/scaffold"
)

func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func options(t *testing.T) scaffold.Options {
	t.Helper()
	return scaffold.Options{Template: "pr-approver", Checkout: checkout(t)}
}

func TestAgentIsWrittenIntoANewOrEmptyFolder(t *testing.T) {
	t.Parallel()
	for _, prepare := range []string{"new", "empty", "only git"} {
		t.Run(prepare, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "My-agent")
			if prepare != "new" {
				mkdir(t, dir)
			}
			if prepare == "only git" {
				mkdir(t, filepath.Join(dir, ".git"))
			}
			got, err := scaffold.Write(dir, options(t))
			if err != nil {
				t.Fatal(err)
			}
			files := got.Files
			got.Files = nil
			if diff := cmp.Diff(&scaffold.Result{Dir: dir, Slug: "My-agent", Module: "example.com/my-agent", GoMod: filepath.Join(dir, "go.mod")}, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			for _, name := range []string{"go.mod", "go.sum", "bot/agent.go", "bot/instructions.md", "cdk.json", "infra/main.go"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil || !slices.Contains(files, name) {
					t.Errorf("%s is not written (%v) or not listed in %v", name, err, files)
				}
			}
		})
	}
}

func TestGoModNeedsNoNetwork(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agent")
	opts := options(t)
	opts.Module = "corp.example/team/agent"
	if _, err := scaffold.Write(dir, opts); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"corp.example/team/agent/bot/tools", "github.com/bdk-lambda/bdk/bdkpack/bdk"} {
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("the agent does not depend on %s", want)
		}
	}
}

func TestCDKHasTheSettingsOfTheCheckout(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agent")
	if _, err := scaffold.Write(dir, options(t)); err != nil {
		t.Fatal(err)
	}
	read := func(dir string) map[string]any {
		data, err := os.ReadFile(filepath.Join(dir, "cdk.json"))
		if err != nil {
			t.Fatal(err)
		}
		var settings map[string]any
		if err := json.Unmarshal(data, &settings); err != nil {
			t.Fatal(err)
		}
		return settings
	}
	want := read(checkout(t))
	flags := want["context"].(map[string]any)
	if len(flags) < 50 {
		t.Errorf("the checkout has %d flags", len(flags))
	}
	want["app"], flags["agent"] = "go run ./infra", "."
	if diff := cmp.Diff(want, read(dir)); diff != "" {
		t.Errorf("cdk.json (-want +got):\n%s", diff)
	}
}

// TestInfraBuildsInTheAgentsFolder: the agent's own module has all that its infrastructure links.
func TestInfraBuildsInTheAgentsFolder(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: compiles the constructs of the CDK, which takes minutes the first time")
	}
	dir := filepath.Join(t.TempDir(), "agent")
	if _, err := scaffold.Write(dir, options(t)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "infra"), "./infra")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNothingIsWrittenWhenSomethingIsWrong(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		dir    string // below a temporary folder
		change func(o *scaffold.Options)
		want   []string
	}{
		{"unknown template", "a", func(o *scaffold.Options) { o.Template = "pr-aprover" }, []string{`"pr-aprover"`, "there are: pr-approver"}},
		{"no template", "a", func(o *scaffold.Options) { o.Template = "" }, []string{"there are: pr-approver"}},
		{"unknown variable", "a", func(o *scaffold.Options) { o.Vars = map[string]string{"nam": "x"} }, []string{`no variable "nam"`, "it has: name"}},
		{"folder name that is no slug", "my agent", func(*scaffold.Options) {}, []string{`"my agent"`, "letters, digits"}},
		{"reserved folder name", "playground", func(*scaffold.Options) {}, []string{`"playground"`}},
		{"impossible module path", "a", func(o *scaffold.Options) { o.Module = "a b" }, []string{"module path"}},
		{"checkout that is gone", "a", func(o *scaffold.Options) { o.Checkout = "/no/such/folder" }, []string{"/no/such/folder", "not a checkout"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), tc.dir)
			opts := options(t)
			tc.change(&opts)
			_, err := scaffold.Write(dir, opts)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q: %v", want, err)
				}
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the folder was made")
			}
		})
	}
}

func TestFolderThatIsNotEmptyIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name := range strings.FieldsSeq("a b c d e f g") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := scaffold.Write(dir, options(t))
	if err == nil || !strings.Contains(err.Error(), "it holds a, b, c, d, e and 2 more") {
		t.Errorf("got %v, want an error that names what is there", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 7 {
		t.Errorf("the folder has %d entries (%v), want the 7 of before", len(entries), err)
	}
}

func TestWorkspaceFileThatHidesTheAgentIsReported(t *testing.T) {
	t.Parallel()
	for use, hidden := range map[string]bool{"use ./other": true, "use ./agent": false} {
		above := t.TempDir()
		path := filepath.Join(above, "go.work")
		if err := os.WriteFile(path, []byte("go 1.26\n"+use+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := scaffold.Write(filepath.Join(above, "agent"), options(t))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{true: path}[hidden]; got.GoWork != want {
			t.Errorf("%s: GoWork is %q, want %q", use, got.GoWork, want)
		}
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
