package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	oneStack = `{"artifacts": {"s.assets": {"type": "cdk:asset-manifest"}, "s": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "s.template.json"}}}}`
	oneTable = `{"Resources": {
		"T1": {"Type": "AWS::DynamoDB::Table"},
		"F1": {"Type": "AWS::Lambda::Function", "Metadata": {"aws:cdk:path": "s/work/Resource"},
			"Properties": {"Environment": {"Variables": {"TABLE": {"Ref": "T1"}, "LEVEL": "debug"}}}},
		"F2": {"Type": "AWS::Lambda::Function", "Metadata": {"aws:cdk:path": "s/idle/Resource"}, "Properties": {}}}}`
)

func TestNamesComeFromTheDeployedStackOrElseFromTheTemplate(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"manifest.json": oneStack, "s.template.json": oneTable, "old.template.json": `{"Resources": {}}`,
		"resources.json": `{"StackResourceSummaries": [{"LogicalResourceId": "T1", "PhysicalResourceId": "s-T1-9Z"}]}`,
	})
	for _, c := range []struct {
		args  []string
		table string
		says  string
	}{
		{[]string{dir}, "T1", "ids from the template"},
		{[]string{"-resources", filepath.Join(dir, "resources.json"), dir}, "s-T1-9Z", "names of the deployed stack"},
	} {
		var said strings.Builder
		if err := run(c.args, &said); err != nil {
			t.Fatal(err)
		}
		want := map[string]map[string]string{"work": {"TABLE": c.table, "LEVEL": "debug"}, "idle": {}}
		if diff := cmp.Diff(want, written(t, filepath.Join(dir, "s.env.json"))); diff != "" {
			t.Errorf("the environment (-want +got):\n%s", diff)
		}
		if !strings.Contains(said.String(), c.says) || !strings.Contains(said.String(), "functions: idle, work") {
			t.Errorf("it says\n%s", said.String())
		}
	}
}

func written(t *testing.T, path string) (env map[string]map[string]string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &env)
	}
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestWhatCannotBePreparedIsSaid(t *testing.T) {
	t.Parallel()
	function := func(path, variable string) string {
		return `{"Resources": {"F1": {"Type": "AWS::Lambda::Function", "Metadata": {"aws:cdk:path": "` + path + `"},
			"Properties": {"Environment": {"Variables": {"V": ` + variable + `}}}}}}`
	}
	twoStacks := strings.Replace(oneStack, `"s.assets": {`, `"z": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "s.template.json"}}, "s.assets": {`, 1)
	for name, c := range map[string]struct {
		manifest, template, resources string
		want                          string
	}{
		"nothing was described":      {want: "manifest.json"},
		"no stack":                   {manifest: `{}`, want: "there is no stack in "},
		"a template that is none":    {manifest: oneStack, template: `[]`, want: "s.template.json: json: "},
		"no function":                {manifest: oneStack, template: `{}`, want: "it has no functions"},
		"a function without a path":  {manifest: oneStack, template: function("", `""`), want: `F1 has the path ""`},
		"a function further down":    {manifest: oneStack, template: function("s/group/work/Resource", `""`), want: "no id of its own"},
		"a value that is computed":   {manifest: oneStack, template: function("s/work/Resource", `{"Fn::GetAtt": ["T1", "Arn"]}`), want: "function work, variable V: "},
		"a value of the account":     {manifest: oneStack, template: function("s/work/Resource", `{"Ref": "AWS::AccountId"}`), want: "neither text nor a resource"},
		"another stack's resources":  {manifest: oneStack, template: oneTable, resources: `{"StackResourceSummaries": [{"LogicalResourceId": "X", "PhysicalResourceId": "x"}]}`, want: "the deployed stack has no T1"},
		"an answer to another call":  {manifest: oneStack, template: oneTable, resources: `{"StackResources": []}`, want: "has no StackResourceSummaries"},
		"resources of which stack":   {manifest: twoStacks, template: oneTable, resources: `{}`, want: "is about one stack"},
		"resources that are no JSON": {manifest: oneStack, template: oneTable, resources: `LogicalResourceId T1`, want: "resources.json: invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"manifest.json": c.manifest, "s.template.json": c.template, "resources.json": c.resources}
			for file, text := range files {
				if text == "" {
					delete(files, file)
				}
			}
			dir := folder(t, files)
			args := []string{dir}
			if c.resources != "" {
				args = []string{"-resources", filepath.Join(dir, "resources.json"), dir}
			}
			if err := run(args, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q in it", err, c.want)
			}
		})
	}
}
