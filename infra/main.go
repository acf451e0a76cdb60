package infra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/bdkpack/pack"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// Main is the program that cdk.json names: it packs agents and describes their stacks to the CDK command line. It returns the
// exit code, 1 after it said on standard error what is wrong. What it does is up to the context, which the command line takes from
// cdk.json and from -c NAME=VALUE:
//
//	agent       the agent's folder, or that of several; required
//	arch        arm64 (default) or amd64
//	model       the model instead of the agent's own, PROVIDER:NAME
//	env         variables for all functions, a JSON object of strings or ONE=1,TWO=2
//	origins     whose pages may call from a browser, ONE,TWO or a JSON array, or * for any. Errors that API Gateway answers with
//	            itself, as when it throttles, have fixed headers: pages cannot read them if there are several origins
//	retain      false: removing the stack removes the data too
//	logRole     false: the account has a role with which API Gateway writes logs, the stack makes none
//	maxStreams  how many streams may be open at once; by default the account's limit holds
//	alarmEmail  who is told of alarms
//	execRuntime provided: scripts run on the runtime of the other functions, which has no Python; python is the default
//	manifest    a manifest of an agent that is packed already, instead of agent, arch and model
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // where the program begins
	defer stop()
	defer jsii.Close()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "bdk: %v\n", err)
		return 1
	}
	return 0
}

func run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault(p)
		}
	}()
	app := awscdk.NewApp(nil)
	configs, err := read(ctx, app.Node().TryGetContext, os.Stderr)
	if err != nil {
		return err
	}
	for _, c := range configs {
		if _, err := NewStack(app, c); err != nil {
			return err
		}
	}
	app.Synth(nil)
	return nil
}

// fault returns what a panic of the CDK means. Nothing in CDK for Go returns an error.
func fault(panicked any) error {
	text := fmt.Sprint(panicked)
	if e, ok := panicked.(error); ok {
		text = e.Error()
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n    at ")
	return fmt.Errorf("describing the stack: %s", text)
}

// read returns the configurations that the context asks for: of the agent in a folder, or of those in its folders. What is to be
// said about these agents is written to stderr.
func read(ctx context.Context, get func(*string) any, stderr io.Writer) ([]Config, error) {
	r := reader{get: get}
	common := Config{
		Destroy: !r.flag(deploy.SettingRetain), NoLogRole: !r.flag(deploy.SettingLogRole),
		Email: r.text(deploy.SettingAlarmEmail), Variables: r.variables(deploy.SettingEnv), Origins: r.origins(deploy.SettingOrigins), MaxStreams: r.number(deploy.SettingMaxStreams),
		ExecProvided: r.provided(deploy.SettingExec),
	}
	agent, manifest := r.text(deploy.SettingAgent), r.text(deploy.SettingManifest)
	options := pack.Options{Arch: r.text(deploy.SettingArch), Model: r.text(deploy.SettingModel), Out: filepath.Join(".bdk", "pack")}
	switch {
	case r.err != nil:
		return nil, r.err
	case manifest != "":
		packed, err := load(manifest)
		return common.of(packed), err
	case agent == "":
		return nil, errors.New("which agent? Name its folder with -c agent=FOLDER, or as agent in the context of cdk.json")
	}
	packed, err := packAgents(ctx, agent, options, stderr)
	return common.of(packed...), err
}

// of returns the configurations of packed agents, otherwise like c.
func (c Config) of(packed ...pack.Agent) []Config {
	var all []Config
	for _, p := range packed {
		c.Manifest, c.Archive = p.Manifest, filepath.Join(filepath.Dir(p.Path), p.Manifest.Archive)
		all = append(all, c)
	}
	return all
}

// load reads the manifest of a packed agent.
func load(path string) (pack.Agent, error) {
	data, err := os.ReadFile(path) //nolint:gosec // whoever deploys names it
	if err != nil {
		return pack.Agent{}, err
	}
	m, err := deploy.Decode(data)
	return pack.Agent{Path: path, Manifest: m}, err
}

// packAgents packs the agents in a folder. Their mistakes are told as everywhere else.
func packAgents(ctx context.Context, dir string, options pack.Options, stderr io.Writer) ([]pack.Agent, error) {
	fmt.Fprintf(stderr, "packing %s\n", dir)
	result, diags, err := pack.Pack(ctx, dir, options)
	if wd, err := os.Getwd(); err == nil {
		diags = diags.Relative(wd)
	}
	fmt.Fprint(stderr, diags)
	if err == nil && diags.HasErrors() {
		err = fmt.Errorf("the agent in %s has mistakes and was not packed", dir)
	}
	return result.Agents, err
}

// reader reads settings from the context of an app and keeps the first fault.
type reader struct {
	get func(*string) any
	err error
}

// text returns a setting, "" if it is not set.
func (r *reader) text(name string) string {
	switch v := r.get(&name).(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		r.fail(name, errors.New("it must be text"))
		return ""
	}
}

// flag returns a setting that is true unless it says false.
func (r *reader) flag(name string) bool {
	text := r.text(name)
	if text == "" {
		return true
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		r.fail(name, fmt.Errorf("%q is neither true nor false", text))
	}
	return v
}

// provided returns a setting that says provided rather than python.
func (r *reader) provided(name string) bool {
	text := r.text(name)
	if text != "" && text != "python" && text != "provided" {
		r.fail(name, fmt.Errorf("%q is neither python nor provided", text))
	}
	return text == "provided"
}

// number returns a setting that is a whole number from 0 on.
func (r *reader) number(name string) int {
	text := r.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 31)
	r.fail(name, err)
	return int(n)
}

// variables returns a setting that holds variables.
func (r *reader) variables(name string) map[string]string {
	vars, err := deploy.Variables(r.get(&name))
	r.fail(name, err)
	return vars
}

// origins returns a setting that holds origins, with commas between them or as a JSON array.
func (r *reader) origins(name string) []string {
	set := r.get(&name)
	text, ok := set.(string)
	if !ok { // cdk.json has it as an array
		data, err := json.Marshal(set)
		r.fail(name, err)
		text = string(data)
	}
	if !ok || strings.HasPrefix(strings.TrimSpace(text), "[") {
		var all []string
		r.fail(name, json.Unmarshal([]byte(text), &all))
		text = strings.Join(all, ",")
	}
	origins, err := deploy.Origins(text)
	r.fail(name, err)
	return origins
}

func (r *reader) fail(name string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("reading the setting %s (-c %s=…): %w", name, name, err)
	}
}
