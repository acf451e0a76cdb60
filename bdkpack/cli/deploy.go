package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/pack"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

type deployOptions struct {
	packing
	env     []string
	context []string
	destroy bool
}

func newDeployCmd(io *IO) *cobra.Command {
	var opts deployOptions
	cmd := &cobra.Command{
		Use:   "deploy [dir]",
		Short: "deploy an agent to AWS",
		Long: "deploy packs an agent and has the AWS CDK make of it a stack, bdk-<slug>, in the account and region of your credentials.\n" +
			"It uses the cdk.json of the agent's folder or its module, else that of the checkout this command was built from.\n\n" +
			"The CDK needs Node.js and its command line, and an account and region that were prepared with `cdk bootstrap`.",
		Example: "  bdk deploy my-agent\n  bdk deploy my-agent --model bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0 --context alarmEmail=me@example.com\n" +
			"  bdk deploy my-agent --destroy",
		Args: oneFolder(&opts.dir),
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, _ := findCheckout("") // without one there are other places
			return deployRun(cmd.Context(), io, opts, checkout)
		},
	}
	opts.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&opts.env, "env", nil, "NAME=VALUE: a variable of all functions; may be repeated. Secrets belong into the deployment's secret")
	f.StringArrayVarP(&opts.context, "context", "c", nil, "NAME=VALUE: a setting of the stack, such as alarmEmail, maxStreams or retain; may be repeated")
	f.BoolVar(&opts.destroy, "destroy", false, "remove the stack; the tables and the bucket with the sessions are kept, unless it was deployed with --context retain=false")
	return cmd
}

func deployRun(ctx context.Context, io *IO, opts deployOptions, checkout string) error {
	args, err := opts.contextArgs()
	if err != nil {
		return err
	}
	tool, err := findCDK(ctx, io, opts.dir, checkout)
	if err != nil {
		return err
	}
	agent, err := opts.packOne(ctx, io)
	if err != nil {
		return err
	}
	args = append(args, "-c", "manifest="+agent.Path)
	fmt.Fprintf(io.Err, "running cdk with %s\n", filepath.Join(tool.dir, "cdk.json"))
	if opts.destroy {
		if err := tool.run(ctx, io, append([]string{"destroy", "--force"}, args...)...); err != nil {
			return err
		}
		_, err := fmt.Fprintf(io.Out, "%s is no longer deployed.\n", agent.Manifest.Slug)
		return err
	}
	outputs, err := tool.deploy(ctx, io, agent.Manifest.Slug, args)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(io.Out, deployed(io, agent, outputs))
	return err
}

// contextArgs checks the options and returns those that are for the CDK.
func (o *deployOptions) contextArgs() ([]string, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var args []string
	for _, kv := range o.context {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return nil, usagef("--context %q is not of the form NAME=VALUE", kv)
		}
		args = append(args, "-c", kv)
	}
	if len(o.env) == 0 {
		return args, nil
	}
	vars := map[string]string{}
	for _, kv := range o.env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			return nil, usagef("--env %q is not of the form NAME=VALUE", kv)
		}
		vars[name] = value
	}
	text, err := json.Marshal(vars)
	return append(args, "-c", "env="+string(text)), err
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
	fmt.Fprintf(&b, "Its callers send a token, the value of bearer:default in its secret:\n"+
		"  aws secretsmanager get-secret-value --query SecretString --output text --secret-id %s\n", secret)
	if keys := agent.Manifest.Secrets; len(keys) > 0 {
		fmt.Fprintf(&b, "Before it can answer, add to that secret, beside the token: %s\n", strings.Join(keys, ", "))
	}
	fmt.Fprintf(&b, "\nNext:\n  %s=TOKEN %s run --url %s --message \"hello\"\n  %s logs --agent %s --follow\n", tokenEnv, bdk, quoteArg(url), bdk, slug)
	return b.String()
}
