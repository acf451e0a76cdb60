package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// tokenEnv is the environment variable that stands in for --bearer-token.
const tokenEnv = "BDK_BEARER_TOKEN"

// serving are the options that serve and dev share.
type serving struct {
	dir          string
	host         string
	port         int
	stateRoot    string
	mode         string
	bearerTokens []string
	anonymous    bool
	origins      []string
	noPlayground bool
	noDocs       bool
	dev          bool
}

func (s *serving) flags(cmd *cobra.Command) {
	dirFlag(cmd, &s.dir)
	f := cmd.Flags()
	f.StringVar(&s.host, "host", "127.0.0.1", "address to listen on")
	f.IntVar(&s.port, "port", 3000, "port to listen on; 0 takes a free one")
	f.StringVar(&s.stateRoot, "state-root", "", "folder of durable state (default <dir>/.bdk/state)")
	f.StringVar(&s.mode, "mode", "multi", "multi: routes at /<slug>/v1; single: at /v1, for one agent")
	f.StringArrayVar(&s.bearerTokens, "bearer-token", nil, "token that clients must send, or name:token; may be repeated ("+tokenEnv+" works too)")
	f.BoolVar(&s.anonymous, "allow-anonymous", false, "serve everybody who can reach the port")
	f.StringArrayVar(&s.origins, "allow-origin", nil, "origin such as https://app.example.com whose pages may read answers in a browser, * for any; it admits nobody, pages send a token too; may be repeated")
	f.BoolVar(&s.noPlayground, "no-playground", false, "leave out the playground and the index of agents")
	f.BoolVar(&s.noDocs, "no-docs", false, "no effect: there is no documentation site yet")
}

// check completes the options and refuses what cannot be served safely.
func (s *serving) check(io *IO) error {
	if token := io.env(tokenEnv); token != "" && len(s.bearerTokens) == 0 && !s.anonymous {
		s.bearerTokens = []string{token}
	}
	switch {
	case s.mode != "multi" && s.mode != "single":
		return usagef("--mode %s: there is multi and single", s.mode)
	case s.port < 0 || s.port > 65535:
		return usagef("--port %d: a port is a number from 0 to 65535", s.port)
	case s.anonymous && len(s.bearerTokens) > 0:
		return usagef("--allow-anonymous and --bearer-token exclude each other")
	case !loopback(s.host) && !s.anonymous && len(s.bearerTokens) == 0:
		return usagef("--host %s can be reached from other machines: protect it with --bearer-token (or %s), or open it with --allow-anonymous", s.host, tokenEnv)
	}
	for _, t := range s.bearerTokens {
		if _, secret, named := strings.Cut(t, ":"); t == "" || named && secret == "" {
			return usagef("--bearer-token is empty")
		}
	}
	return s.checkOrigins()
}

// checkOrigins takes lists with commas too, as the setting of a deployment is.
func (s *serving) checkOrigins() (err error) {
	if slices.Contains(s.origins, "") {
		return usagef("--allow-origin is empty")
	}
	if s.origins, err = deploy.Origins(strings.Join(s.origins, ",")); err != nil {
		return usagef("--allow-origin: %v", err)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// listen opens the socket of the server.
func (s *serving) listen(ctx context.Context) (net.Listener, error) {
	address := net.JoinHostPort(s.host, strconv.Itoa(s.port))
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d of %s is in use: stop what listens there, or choose another with --port (0 takes a free one)", s.port, s.host)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d of %s needs more rights than this user has: choose one above 1023 with --port", s.port, s.host)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return ln, nil
}

// config returns what the agent program is told.
func (s *serving) config(program *maingen.Program) (launch.Config, error) {
	c, err := launchConfig("serve", program)
	if err != nil {
		return c, err
	}
	if agents := program.Workspace.Agents; s.mode == "single" && len(agents) != 1 {
		return c, usagef("--mode single serves one agent, there are %d in %s: name the folder of one with --dir", len(agents), program.Workspace.Dir)
	}
	c.Host, c.Port, c.Single, c.Dev = s.host, s.port, s.mode == "single", s.dev
	c.BearerTokens, c.AllowAnonymous, c.Origins, c.NoPlayground = s.bearerTokens, s.anonymous, s.origins, s.noPlayground
	c.StateRoot, err = stateRoot(s.stateRoot, program)
	return c, err
}

// agentURL returns the URL of an agent below the address of the server.
func (s *serving) agentURL(base, slug string) string {
	if s.mode == "single" {
		return base
	}
	return base + "/" + slug
}

func newServeCmd(io *IO) *cobra.Command {
	var opts serving
	cmd := &cobra.Command{
		Use:   "serve [dir]",
		Short: "serve an agent, or a folder of agents, over HTTP",
		Long: "serve builds the agents in a folder, if something changed since the last time, and serves them over HTTP until it\n" +
			"is stopped. Sessions are durable: what was accepted before a crash is finished after the next start.\n\n" +
			"Without a token only callers on this machine are served.",
		Example: "  bdk serve my-agent --port 3000\n  bdk serve agents --host 0.0.0.0 --bearer-token \"$TOKEN\"",
		Args:    oneFolder(&opts.dir),
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveRun(cmd.Context(), io, opts) },
	}
	opts.flags(cmd)
	cmd.Flags().BoolVar(&opts.dev, "dev", false, "for development: callers on this machine may list the sessions of every caller, and the log is only what is wrong, as text")
	return cmd
}

func serveRun(ctx context.Context, io *IO, opts serving) error {
	if err := opts.check(io); err != nil {
		return err
	}
	// The program listens for itself. Whether it can is known before it is built.
	ln, err := opts.listen(ctx)
	if err != nil {
		return err
	}
	if err := ln.Close(); err != nil {
		return fmt.Errorf("giving the port back: %w", err)
	}
	program, _, err := build(ctx, io, opts.dir)
	if err != nil {
		return err
	}
	c, err := opts.config(program)
	if err != nil {
		return err
	}
	var banner strings.Builder
	for _, a := range program.Workspace.Agents {
		fmt.Fprintf(&banner, "%s is served at %s\n", a.Slug, opts.agentURL("{url}", a.Slug))
	}
	c.Banner = banner.String()
	env, err := programEnv(io, c)
	if err != nil {
		return err
	}
	return become(ctx, io, program.Path, env)
}
