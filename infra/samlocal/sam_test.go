package main

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/pack"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/test/emulator"
	"github.com/bdk-lambda/bdk/test/need"
)

const root = "../.."

// stack is a template the way `sam local` reads it: what refers to something is text.
type stack struct {
	dir       string
	Resources map[string]struct {
		Type       string
		Metadata   map[string]any
		Properties map[string]any
	}
}

// TestSAMLocalFindsWhatTheSampleAgentNeeds stands in for `sam local` itself, which needs containers: it reads what the command
// line of the CDK has written by the rules that `sam local` reads it by. (What functions make of the events that it passes on, and of
// its presence, the tests of package functions show.)
func TestSAMLocalFindsWhatTheSampleAgentNeeds(t *testing.T) {
	t.Parallel()
	s := describe(t)
	functions := s.functions(t)
	t.Run("functions by their names", func(t *testing.T) {
		t.Parallel()
		var want []string
		for _, f := range deploy.Functions() {
			want = append(want, f.Name)
		}
		got := slices.Sorted(maps.Keys(functions))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("functions (-want +got):\n%s", diff)
		}
		for id, f := range functions {
			want := "provided.al2023"
			if id == deploy.Exec {
				want = "python3.13"
			}
			if f["Handler"] != id || f["Runtime"] != want {
				t.Errorf("%s has the handler %v of %v", id, f["Handler"], f["Runtime"])
			}
		}
	})
	t.Run("a program that runs here", func(t *testing.T) {
		t.Parallel()
		code := map[string]bool{}
		for id, f := range functions {
			metadata, _ := f["Metadata"].(map[string]any)
			if metadata["aws:asset:property"] != "Code" {
				t.Errorf("the code of %s is not known to be local: %v", id, metadata)
			}
			code[fmt.Sprint(metadata["aws:asset:path"], " ", f["Architectures"])] = true
		}
		for _, one := range slices.Sorted(maps.Keys(code)) {
			path, architectures, _ := strings.Cut(one, " ")
			s.runs(t, path, architectures)
		}
	})
	t.Run("routes", func(t *testing.T) {
		t.Parallel()
		want := map[string]string{}
		for _, r := range deploy.Routes() {
			want["ANY "+r.Path] = r.Function
		}
		if diff := cmp.Diff(want, s.routes()); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
	})
	t.Run("variables that are declared", func(t *testing.T) {
		t.Parallel()
		var said strings.Builder
		if err := run([]string{s.dir}, &said); err != nil {
			t.Fatal(err)
		}
		env := written(t, filepath.Join(s.dir, "bdk-pr-approver.env.json"))
		if diff := cmp.Diff(slices.Sorted(maps.Keys(functions)), slices.Sorted(maps.Keys(env))); diff != "" {
			t.Errorf("functions (-declared +written):\n%s", diff)
		}
		for id, f := range functions {
			environment, _ := f["Environment"].(map[string]any)
			declared, _ := environment["Variables"].(map[string]any)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(declared)), slices.Sorted(maps.Keys(env[id]))); diff != "" || len(declared) == 0 && id != deploy.Dispatch { // that one finds its queues by their names
				t.Errorf("variables of %s (-declared +written):\n%s", id, diff)
			}
		}
	})
}

// describe packs the sample agent for this machine and has the CDK describe its stack.
func describe(t *testing.T) stack {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: packs an agent and starts the CDK, which takes up to a minute")
	}
	need.Tool(t, "node")
	cdk := emulator.Find(t, emulator.CDK)
	dir := t.TempDir()
	packed, diags, err := pack.Pack(t.Context(), root+"/bdkpack/templates/pr-approver", pack.Options{Arch: runtime.GOARCH, Out: filepath.Join(dir, "packed")})
	if err != nil || diags.HasErrors() {
		t.Fatal(err, diags)
	}
	s := stack{dir: filepath.Join(dir, "cdk.out")}
	cmd := exec.CommandContext(t.Context(), cdk, "synth", "--quiet", "--no-notices", "--output", s.dir, "-c", "manifest="+packed.Agents[0].Path)
	cmd.Dir = root // cdk.json is there
	cmd.Env = append(os.Environ(), "CDK_DISABLE_CLI_TELEMETRY=true", "CDK_DISABLE_VERSION_CHECK=true", "CDK_HOME="+filepath.Join(dir, "home"))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cdk synth: %v\n%s", err, said)
	}
	if err := read(filepath.Join(s.dir, "bdk-pr-approver.template.json"), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// functions returns the properties of the functions, with their metadata, by the ids that `sam local invoke` takes.
func (s stack) functions(t *testing.T) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for logical, r := range s.Resources {
		if r.Type != "AWS::Lambda::Function" {
			continue
		}
		parts := strings.Split(fmt.Sprint(r.Metadata["aws:cdk:path"]), "/")
		if len(parts) != 3 || parts[2] != "Resource" {
			t.Errorf("%s has the path %v", logical, parts)
			continue
		}
		r.Properties["Metadata"] = r.Metadata
		found[parts[1]] = r.Properties
	}
	return found
}

// runs checks the code at a path relative to the template: a zip file, told by the end of its name, or a folder.
func (s stack) runs(t *testing.T, path, architectures string) {
	t.Helper()
	if !strings.HasSuffix(path, ".zip") {
		t.Errorf("the code is %s", path)
	}
	archive, err := zip.OpenReader(filepath.Join(s.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	at := slices.IndexFunc(archive.File, func(f *zip.File) bool { return f.Name == "bootstrap" })
	if at < 0 {
		t.Fatal("there is no bootstrap in the archive")
	}
	if mode := archive.File[at].Mode(); mode != 0o755 {
		t.Errorf("bootstrap is %s", mode)
	}
	in, err := archive.File[at].Open()
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	bootstrap, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	declared := map[elf.Machine]string{elf.EM_X86_64: "[x86_64]", elf.EM_AARCH64: "[arm64]"}[bootstrap.Machine]
	machine := map[string]string{"amd64": "[x86_64]", "arm64": "[arm64]"}[runtime.GOARCH]
	if architectures != declared || declared != machine || bootstrap.Type != elf.ET_EXEC {
		t.Errorf("bootstrap is of type %v for %v, declared %s, this machine is %s", bootstrap.Type, bootstrap.Machine, architectures, machine)
	}
}

// routes returns the ids of the functions by method and path. A method names its resource, a resource its parent; the function is
// the one whose ARN is in the address of the integration, whatever is before and behind it.
func (s stack) routes() map[string]string {
	found := map[string]string{}
	function := regexp.MustCompile(`^arn:aws:apigateway:us-east-1:lambda:path/[^/]+/functions/arn:aws:lambda:us-east-1:123456789012:function:([^:/]+)/`)
	for _, r := range s.Resources {
		if r.Type != "AWS::ApiGateway::Method" {
			continue
		}
		path, id := "", s.text(r.Properties["ResourceId"])
		for id != "/" && s.Resources[id].Type == "AWS::ApiGateway::Resource" {
			up := s.Resources[id].Properties
			path, id = "/"+s.text(up["PathPart"])+path, s.text(up["ParentId"])
		}
		integration, _ := r.Properties["Integration"].(map[string]any)
		match := function.FindStringSubmatch(s.text(integration["Uri"]))
		if integration["Type"] != "AWS_PROXY" || match == nil || id != "/" {
			match = []string{"", fmt.Sprint("not found: ", integration)}
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(s.Resources[match[1]].Metadata["aws:cdk:path"]), "bdk-pr-approver/"), "/")
		if path == "" {
			path = "/"
		}
		found[s.text(r.Properties["HttpMethod"])+" "+path] = name
	}
	return found
}

// text returns what a value in the template is for `sam local`: the places of a made-up account, ids for names.
func (s stack) text(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if ref, ok := m["Ref"].(string); ok {
		made := map[string]string{"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012"}[ref]
		if made == "" {
			return ref
		}
		return made
	}
	if get, ok := m["Fn::GetAtt"].([]any); ok {
		switch id := fmt.Sprint(get[0]); get[1] {
		case "Arn":
			return "arn:aws:lambda:us-east-1:123456789012:function:" + id
		case "RootResourceId":
			return "/"
		}
	}
	if join, ok := m["Fn::Join"].([]any); ok && len(join) == 2 {
		var text strings.Builder
		parts, _ := join[1].([]any)
		for _, part := range parts {
			text.WriteString(s.text(part))
		}
		return text.String()
	}
	return fmt.Sprint(v)
}
