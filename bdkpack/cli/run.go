package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/cli/client"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/shared/narrate"
)

type runOptions struct {
	message   string
	dir       string
	agent     string
	stateRoot string
	url       string
	token     string
	approve   bool
	deny      bool
}

func newRunCmd(io *IO) *cobra.Command {
	var opts runOptions
	cmd := &cobra.Command{
		Use:   "run [dir] --message <text>",
		Short: "run one turn and print the reply",
		Long: "run sends one message to an agent and prints the reply as it comes; tool calls are shown on standard error. The\n" +
			"exit code is 0 if the turn was completed and 1 if it failed.\n\n" +
			"A call that needs approval is asked about in a terminal. Elsewhere it takes --approve or --deny to answer all of them; without, run\n" +
			"ends there, and the turn goes on once the call is decided where the agent is served.\n\n" +
			"The agent in the folder runs in this terminal, with --url a server is asked.",
		Example: "  bdk run my-agent --message \"Review pull request 42\"\n  bdk run --url http://127.0.0.1:3000/my-agent --message \"Review pull request 42\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && opts.message == "" && !isFolder(args[0]) {
				return usagef("run takes what to say with --message: `bdk run --message %s`", quoteArg(strings.Join(args, " ")))
			}
			return oneFolder(&opts.dir)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.url != "" && (len(args) > 0 || cmd.Flags().Changed("dir") || opts.agent != "" || opts.stateRoot != "") {
				return usagef("--url asks a server: a folder, --agent and --state-root have no meaning with it")
			}
			return runRun(cmd.Context(), io, opts)
		},
	}
	dirFlag(cmd, &opts.dir)
	f := cmd.Flags()
	f.StringVarP(&opts.message, "message", "m", "", "what to say to the agent")
	f.StringVar(&opts.agent, "agent", "", "slug of the agent, if the folder holds several")
	f.StringVar(&opts.stateRoot, "state-root", "", "folder of durable state (default a temporary one, removed afterwards)")
	f.StringVar(&opts.url, "url", "", "URL of a served agent, for example http://127.0.0.1:3000/my-agent")
	f.StringVar(&opts.token, "bearer-token", "", "token for --url ("+tokenEnv+" works too)")
	f.BoolVar(&opts.approve, "approve", false, "approve every call that needs approval")
	f.BoolVar(&opts.deny, "deny", false, "deny every call that needs approval")
	cmd.MarkFlagsMutuallyExclusive("approve", "deny")
	return cmd
}

// mode returns what calls that need approval are answered with.
func (o runOptions) mode(io *IO) string {
	switch {
	case o.approve:
		return narrate.Approve
	case o.deny:
		return narrate.Deny
	case io.Asks:
		return narrate.Ask
	}
	return narrate.Leave
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func runRun(ctx context.Context, io *IO, opts runOptions) error {
	if strings.TrimSpace(opts.message) == "" {
		return usagef("say something with --message")
	}
	if opts.url != "" {
		return runRemote(ctx, io, opts)
	}
	program, _, err := build(ctx, io, opts.dir)
	if err != nil {
		return err
	}
	return runLocal(ctx, io, opts, program)
}

func runLocal(ctx context.Context, io *IO, opts runOptions, program *maingen.Program) error {
	c, err := launchConfig("run", program)
	if err != nil {
		return err
	}
	c.Message, c.Agent, c.Approve = opts.message, opts.agent, opts.mode(io)
	if c.Agent, err = chooseAgent(opts.agent, program); err != nil {
		return err
	}
	if opts.stateRoot == "" {
		if c.StateRoot, err = os.MkdirTemp("", "bdk-run-"); err != nil {
			return fmt.Errorf("making a folder for the state: %w", err)
		}
		defer os.RemoveAll(c.StateRoot) //nolint:errcheck // the system cleans up what is left
	} else if c.StateRoot, err = filepath.Abs(opts.stateRoot); err != nil {
		return err
	}
	env, err := programEnv(io, c)
	if err != nil {
		return err
	}
	return runProgram(ctx, io, program.Path, env, io.Out)
}

// chooseAgent returns the slug of the agent that is asked for, or of the only one.
func chooseAgent(slug string, program *maingen.Program) (string, error) {
	var slugs []string
	for _, a := range program.Workspace.Agents {
		slugs = append(slugs, a.Slug)
		if a.Slug == slug {
			return slug, nil
		}
	}
	if slug == "" && len(slugs) == 1 {
		return slugs[0], nil
	}
	if slug == "" {
		return "", usagef("there are several agents, choose one with --agent: %s", strings.Join(slugs, ", "))
	}
	return "", usagef("there is no agent %q; there are: %s", slug, strings.Join(slugs, ", "))
}

// server returns a client of the agent at a URL. Without a token it sends the one of the environment.
func server(io *IO, address, token string) (*client.Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usagef("--url %q is not the URL of an agent, such as http://127.0.0.1:3000/my-agent", address)
	}
	if token == "" {
		token = io.env(tokenEnv)
	}
	return client.New(address, &client.Options{HTTP: io.HTTP, Clock: io.Clock, Token: token}), nil
}

func runRemote(ctx context.Context, io *IO, opts runOptions) error {
	c, err := server(io, opts.url, opts.token)
	if err != nil {
		return err
	}
	session, err := c.Start(ctx, opts.message)
	if err != nil {
		return err
	}
	narrator := narrate.New(io.Out, io.Err)
	approver := &narrate.Approver{Mode: opts.mode(io), In: bufio.NewReader(io.In), Out: io.Err}
	for e, err := range c.Follow(ctx, session) {
		if err != nil {
			return err
		}
		if done, err := narrator.Show(e); done {
			return err
		}
		callID, decision, ok, err := approver.Decide(e)
		if err == nil && ok {
			err = c.Decide(ctx, session, callID, decision)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
