package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/cli/account"
	"github.com/bdk-lambda/bdk/bdkpack/pack"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

type deployOptions struct {
	packing
	env     []string
	context []string
	destroy bool
	yes     bool
}

// surroundings are what deploy depends on beside the agent.
type surroundings struct {
	checkout string                            // of bdk, "" if there is none
	aws      []func(*config.LoadOptions) error // for what is not as the user's machine has it
}

func newDeployCmd(io *IO) *cobra.Command {
	var opts deployOptions
	cmd := &cobra.Command{
		Use:   "deploy [dir]",
		Short: "deploy an agent to AWS",
		Long: "deploy packs an agent and has the AWS CDK make of it a stack, bdk-<slug>, in the account and region of your credentials.\n" +
			"It uses the cdk.json of the agent's folder or its module, else that of the checkout this command was built from.\n\n" +
			"Flags are for one deployment: the next one without them goes back to what was before. What should last belongs into the\n" +
			"context of cdk.json, under the names of the settings: arch, model, env, origins, retain, logRole, maxStreams, alarmEmail, execRuntime.\n\n" +
			"The CDK needs Node.js and its command line, and an account and region that were prepared with `cdk bootstrap`.",
		Example: "  bdk deploy my-agent\n  bdk deploy my-agent --model bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0 --context alarmEmail=me@example.com\n" +
			"  bdk deploy my-agent --destroy",
		Args: oneFolder(&opts.dir),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("arch") {
				opts.arch = "" // cdk.json may name one
			}
			if opts.destroy {
				return destroyRun(cmd.Context(), io, opts, surroundings{})
			}
			checkout, _ := findCheckout("") // without one there are other places
			return deployRun(cmd.Context(), io, opts, surroundings{checkout: checkout})
		},
	}
	opts.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&opts.env, "env", nil, "NAME=VALUE: a variable of all functions, beside those in cdk.json; may be repeated. Secrets belong into the deployment's secret")
	f.StringArrayVarP(&opts.context, "context", "c", nil, "NAME=VALUE: a setting of the stack, such as alarmEmail, maxStreams or retain; may be repeated")
	f.BoolVar(&opts.destroy, "destroy", false, "remove the stack; the tables and the bucket with the sessions are kept, unless it was deployed with --context retain=false")
	f.BoolVar(&opts.yes, "yes", false, "with --destroy: do not ask")
	return cmd
}

func deployRun(ctx context.Context, io *IO, opts deployOptions, at surroundings) error {
	if err := opts.check(); err != nil {
		return err
	}
	tool, err := findCDK(ctx, io, opts.dir, at.checkout)
	if err != nil {
		return err
	}
	vars, err := opts.complete(tool.context)
	if err != nil {
		return fmt.Errorf("reading the context in %s: %w", filepath.Join(tool.dir, "cdk.json"), err)
	}
	where, err := findTarget(ctx, at)
	if err != nil {
		return err
	}
	tool.place = "aws://" + where.String()
	agent, err := opts.packOne(ctx, io)
	if err != nil {
		return err
	}
	args, err := opts.arguments(agent.Path, vars)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "deploying %s to %s with %s\nrunning cdk with %s\n", deploy.StackName(agent.Manifest.Slug), where, used(agent, vars), filepath.Join(tool.dir, "cdk.json"))
	outputs, err := tool.deploy(ctx, io, agent.Manifest.Slug, args)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(io.Out, deployed(io, agent, outputs))
	return err
}

// target is where an agent is deployed.
type target struct {
	aws     aws.Config
	account string
}

// findTarget returns the account and region of the user's credentials.
func findTarget(ctx context.Context, at surroundings) (target, error) {
	cfg, err := account.Config(ctx, at.aws...)
	if err != nil {
		return target{}, err
	}
	id, err := account.ID(ctx, cfg)
	return target{cfg, id}, err
}

func (t target) String() string { return t.account + "/" + t.aws.Region }

// check finds flags that mean nothing.
func (o *deployOptions) check() error {
	if o.arch != "" {
		if err := o.packing.check(); err != nil {
			return err
		}
	}
	switch {
	case o.yes && !o.destroy:
		return usagef("--yes is for --destroy, nothing else is asked")
	case o.destroy && (o.arch != "" || o.model != "" || len(o.env)+len(o.context) > 0):
		return usagef("--destroy removes what is deployed: --arch, --model, --env and --context have no meaning with it")
	}
	for _, kv := range o.env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return usagef("--env %q is not of the form NAME=VALUE", kv)
		}
	}
	for _, kv := range o.context {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			return usagef("--context %q is not of the form NAME=VALUE", kv)
		}
		if err := checkSetting(name); err != nil {
			return err
		}
		if _, err := strconv.ParseBool(value); err != nil && (name == deploy.SettingRetain || name == deploy.SettingLogRole) {
			return usagef("--context %s: it is true or false", kv)
		}
	}
	return nil
}

// checkSetting finds a name in --context that nothing is called. Names with : are those of the CDK's own switches.
func checkSetting(name string) error {
	instead := map[string]string{
		deploy.SettingArch: "--arch", deploy.SettingModel: "--model", deploy.SettingEnv: "--env",
		deploy.SettingAgent: "the folder's name", deploy.SettingManifest: "the folder's name",
	}
	if use := instead[name]; use != "" {
		return usagef("--context %s: use %s", name, use)
	}
	known := slices.DeleteFunc(deploy.Settings(), func(s string) bool { return instead[s] != "" })
	if slices.Contains(known, name) || strings.Contains(name, ":") {
		return nil
	}
	near := nearest(name, known)
	for _, k := range known {
		if strings.EqualFold(k, name) {
			near = k
		}
	}
	if near != "" {
		return usagef("there is no setting %q; did you mean %s?", name, near)
	}
	return usagef("there is no setting %q; there are: %s", name, strings.Join(known, ", "))
}

// complete takes what no flag says from the context of cdk.json, and returns the variables of both.
func (o *deployOptions) complete(context map[string]any) (map[string]string, error) {
	for name, to := range map[string]*string{deploy.SettingArch: &o.arch, deploy.SettingModel: &o.model} {
		set, ok := context[name].(string)
		switch {
		case !ok && context[name] != nil:
			return nil, fmt.Errorf("%s must be text", name)
		case *to == "":
			*to = set
		}
	}
	o.arch = cmp.Or(o.arch, pack.ARM64)
	if err := o.packing.check(); err != nil {
		return nil, err
	}
	vars, err := deploy.Variables(context[deploy.SettingEnv])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", deploy.SettingEnv, err)
	}
	for _, kv := range o.env {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	return vars, nil
}

// arguments returns the settings for the CDK.
func (o *deployOptions) arguments(manifest string, vars map[string]string) ([]string, error) {
	var args []string
	for _, kv := range o.context {
		args = append(args, "-c", kv)
	}
	if len(o.env) > 0 {
		text, err := json.Marshal(vars)
		if err != nil {
			return nil, err
		}
		args = append(args, "-c", deploy.SettingEnv+"="+string(text))
	}
	return append(args, "-c", deploy.SettingManifest+"="+manifest), nil
}

// used tells what an agent is deployed with, without the values of variables.
func used(agent pack.Agent, vars map[string]string) string {
	text := "the architecture " + agent.Manifest.Architecture
	if models := agent.Manifest.Models; agent.Manifest.Model != "" {
		text += ", the model " + agent.Manifest.Model + " instead of its own"
	} else if len(models) > 0 {
		text += ", its model " + strings.Join(models, " or ")
	}
	if len(vars) > 0 {
		text += ", the variables " + strings.Join(slices.Sorted(maps.Keys(vars)), ", ")
	}
	return text
}

// packOne packs the agent to deploy and shows its mistakes, with which nothing is deployed.
func (o *deployOptions) packOne(ctx context.Context, io *IO) (pack.Agent, error) {
	dir, err := project.Resolve(o.dir)
	if err != nil {
		return pack.Agent{}, err
	}
	result, diags, err := o.run(ctx, io, filepath.Join(dir, ".bdk", "pack"))
	if err != nil {
		return pack.Agent{}, err
	}
	showDiagnostics(io, diags)
	switch {
	case diags.HasErrors():
		return pack.Agent{}, exitError(1)
	case len(result.Agents) != 1:
		var slugs []string
		for _, a := range result.Agents {
			slugs = append(slugs, a.Manifest.Slug)
		}
		return pack.Agent{}, usagef("each agent is deployed by itself: name the folder of one, %s", strings.Join(slugs, " or "))
	}
	return result.Agents[0], nil
}

// deploy deploys the stack of an agent and returns its outputs.
func (c *cdk) deploy(ctx context.Context, io *IO, slug string, args []string) (map[string]string, error) {
	dir, err := os.MkdirTemp("", "bdk-deploy-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the outputs: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans up what is left
	file := filepath.Join(dir, "outputs.json")
	args = append([]string{"deploy", "--require-approval", "never", "--progress", "events", "--outputs-file", file}, args...)
	if err := c.run(ctx, io, args...); err != nil {
		return nil, err
	}
	var stacks map[string]map[string]string
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &stacks)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the outputs of the stack: %w", err)
	}
	for _, outputs := range stacks {
		if strings.HasSuffix(outputs[deploy.OutputURL], "/"+slug) { // the program may be one of several stacks
			return outputs, nil
		}
	}
	return nil, fmt.Errorf("none of the stacks has the output %s of %s", deploy.OutputURL, slug)
}

// deployed returns what an author needs to know about a deployment.
func deployed(io *IO, agent pack.Agent, outputs map[string]string) string {
	var b strings.Builder
	bdk, slug := quoteArg(io.name()), agent.Manifest.Slug
	url, secret := outputs[deploy.OutputURL], outputs[deploy.OutputSecret]
	fmt.Fprintf(&b, "\n%s is deployed at %s\n\n", slug, url)
	for _, c := range agent.Manifest.Crons {
		fmt.Fprintf(&b, "%s\n", nextTimes(io, c.Schedule, c.Cron))
	}
	fmt.Fprintf(&b, "Its callers send a token, the value of bearer:default in its secret:\n"+
		"  aws secretsmanager get-secret-value --query SecretString --output text --secret-id %s\n", secret)
	if keys := agent.Manifest.Secrets; len(keys) > 0 {
		fmt.Fprintf(&b, "Before it can answer, add to that secret, beside the token: %s\n", strings.Join(keys, ", "))
	}
	fmt.Fprintf(&b, "\nNext:\n  %s=TOKEN %s run --url %s --message \"hello\"\n  %s logs --agent %s --follow\n", tokenEnv, bdk, quoteArg(url), bdk, slug)
	return b.String()
}
