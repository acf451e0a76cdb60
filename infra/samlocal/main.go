// Command samlocal makes the stacks that the CDK has described ready for `sam local`, which runs their functions in containers.
//
//	go run ./infra/samlocal [-resources FILE] [FOLDER]
//
// Beside the template of each stack in the folder (cdk.out) it writes the environment of its functions, for --env-vars, and it
// tells the commands. The names of tables, bucket, secret and state machine are those of a deployed stack if there is a file with
// its resources, as `aws cloudformation list-stack-resources` prints them; otherwise the ids that they have in the template, to
// be replaced.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/shared/deploy"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "samlocal:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("samlocal", flag.ContinueOnError)
	resources := flags.String("resources", "", "what `aws cloudformation list-stack-resources` printed about the deployed stack")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir := "cdk.out"
	if flags.NArg() > 0 {
		dir = flags.Arg(0)
	}
	templates, err := find(dir)
	if err != nil {
		return err
	}
	var names map[string]string
	if *resources != "" {
		if len(templates) > 1 {
			return errors.New("-resources is about one stack: describe one agent at a time")
		}
		if names, err = deployed(*resources); err != nil {
			return err
		}
	}
	for _, path := range templates {
		if err := prepare(path, names, stdout); err != nil {
			return fmt.Errorf("preparing %s: %w", path, err)
		}
	}
	return nil
}

// find returns the paths of the templates that were described last, sorted.
func find(dir string) ([]string, error) {
	var assembly struct {
		Artifacts map[string]struct {
			Type       string
			Properties struct{ TemplateFile string }
		}
	}
	if err := read(filepath.Join(dir, "manifest.json"), &assembly); err != nil {
		return nil, err
	}
	var paths []string
	for _, a := range assembly.Artifacts {
		if a.Type == "aws:cloudformation:stack" {
			paths = append(paths, filepath.Join(dir, a.Properties.TemplateFile))
		}
	}
	if paths == nil {
		return nil, fmt.Errorf("there is no stack in %s", dir)
	}
	slices.Sort(paths)
	return paths, nil
}

// deployed returns the names of the resources of a deployed stack, by their ids in the template.
func deployed(path string) (map[string]string, error) {
	var list struct {
		StackResourceSummaries []struct {
			ID   string `json:"LogicalResourceId"`
			Name string `json:"PhysicalResourceId"`
		}
	}
	if err := read(path, &list); err != nil {
		return nil, err
	}
	if len(list.StackResourceSummaries) == 0 {
		return nil, fmt.Errorf("%s has no StackResourceSummaries", path)
	}
	names := map[string]string{}
	for _, r := range list.StackResourceSummaries {
		names[r.ID] = r.Name
	}
	return names, nil
}

func read(path string, into any) error {
	data, err := os.ReadFile(path) //nolint:gosec // whoever runs this names it
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// prepare writes the environment for a template and tells what to do with it. Without names the ids have to do.
func prepare(path string, names map[string]string, stdout io.Writer) error {
	env, err := environment(path, names)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(env, "", "  ")
	if err != nil {
		return err
	}
	to := strings.TrimSuffix(path, ".template.json") + ".env.json"
	if err := os.WriteFile(to, append(data, '\n'), 0o600); err != nil {
		return err
	}
	source := "names of the deployed stack"
	if names == nil {
		source = "ids from the template, to be replaced by names (or give -resources)"
	}
	_, err = fmt.Fprintf(stdout, "%s: %d functions, with %s\n  sam local start-api -t %s -n %[1]s\n  sam local invoke -t %[4]s -n %[1]s FUNCTION -e EVENT\nfunctions: %[5]s\n",
		to, len(env), source, path, strings.Join(slices.Sorted(maps.Keys(env)), ", "))
	return err
}

// environment returns the variables that the functions of a template declare, by the functions' ids: `sam local` drops others.
func environment(path string, names map[string]string) (map[string]map[string]string, error) {
	var template struct {
		Resources map[string]struct {
			Type       string
			Metadata   map[string]any
			Properties struct {
				Environment struct{ Variables map[string]json.RawMessage }
			}
		}
	}
	if err := read(path, &template); err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	for logical, r := range template.Resources {
		if r.Type != "AWS::Lambda::Function" {
			continue
		}
		place, _ := r.Metadata["aws:cdk:path"].(string)
		parts := strings.Split(place, "/")
		if len(parts) != 3 || parts[2] != "Resource" {
			return nil, fmt.Errorf("the function %s has the path %q, so it has no id of its own: describe the stack with the CDK command line", logical, place)
		}
		all[parts[1]] = map[string]string{}
		for name, raw := range r.Properties.Environment.Variables {
			if name == deploy.EnvAlarmGroup || name == deploy.EnvAlarmQueue || name == deploy.EnvAlarmRole {
				all[parts[1]][name] = ""
				continue // an alarm would ring what is deployed; without one a sweep finds what is due
			}
			v, err := value(raw, names)
			if err != nil {
				return nil, fmt.Errorf("function %s, variable %s: %w", parts[1], name, err)
			}
			all[parts[1]][name] = v
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it has no functions")
	}
	return all, nil
}

// value returns the value of a variable: text, or the name of what it refers to.
func value(raw json.RawMessage, names map[string]string) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var ref struct {
		ID string `json:"Ref"`
	}
	if err := json.Unmarshal(raw, &ref); err != nil || ref.ID == "" || strings.Contains(ref.ID, "::") {
		return "", fmt.Errorf("%s is neither text nor a resource", raw)
	}
	if names == nil {
		return ref.ID, nil
	}
	if names[ref.ID] == "" {
		return "", fmt.Errorf("the deployed stack has no %s: deploy what is described", ref.ID)
	}
	return names[ref.ID], nil
}
