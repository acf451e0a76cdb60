package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// cdk is the command line of the CDK and the program that it runs.
type cdk struct {
	path    string         // of the command
	dir     string         // with the cdk.json
	context map[string]any // of the cdk.json
	place   string         // account and region, as the CDK names them
}

// findCDK finds what deploys the agent in dir. The checkout is that of bdk, "" if there is none.
func findCDK(ctx context.Context, io *IO, dir, checkout string) (*cdk, error) {
	dir, err := project.Resolve(dir)
	if err != nil {
		return nil, err
	}
	c := &cdk{}
	for _, place := range append(inModule(dir), checkout) {
		if c.dir != "" || place == "" {
			continue
		}
		if context, ok := describesAgents(ctx, io, place); ok {
			c.dir, c.context = place, context
		}
	}
	if c.dir == "" {
		return nil, fmt.Errorf("there is no cdk.json for %s whose app is a Go program that calls infra.Main, neither in its folder nor above in its module: "+
			"`bdk init` writes one, and the infra/main.go that it names; take them from a new agent", dir)
	}
	if lookPath(io, "node") == "" {
		return nil, errors.New("node is not on the PATH: deploying uses the AWS CDK, which needs Node.js; install its version 22 or later")
	}
	for _, place := range slices.Concat(above(c.dir), above(checkout)) {
		found, _ := filepath.Glob(filepath.Join(place, ".tools", "aws-cdk@*", "node_modules", ".bin", "cdk")) // the pattern is right
		if found = append(found, filepath.Join(place, "node_modules", ".bin", "cdk")); c.path == "" {
			c.path = firstProgram(found)
		}
	}
	if c.path == "" {
		c.path = lookPath(io, "cdk")
	}
	if c.path == "" {
		return nil, fmt.Errorf("the command line of the AWS CDK is not installed: run `npm install --save-dev aws-cdk` in %s, or `npm install --global aws-cdk`", c.dir)
	}
	return c, nil
}

// describesAgents says whether the program that the cdk.json in a folder names, if there is one, is about agents: those of
// other systems are none of our business. It returns the context that cdk.json has for the program.
func describesAgents(ctx context.Context, io *IO, dir string) (map[string]any, bool) {
	var settings struct {
		App     string         `json:"app"`
		Context map[string]any `json:"context"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "cdk.json"))
	if err != nil || json.Unmarshal(data, &settings) != nil {
		return nil, false
	}
	words := strings.Fields(settings.App)
	if len(words) < 3 || !strings.Contains(settings.App, "go run ") {
		return nil, false
	}
	out, err := project.RunGo(ctx, dir, io.Env, nil, "list", "-e", "-deps", "--", words[len(words)-1])
	return settings.Context, err == nil && slices.Contains(strings.Fields(string(out)), project.BDKModule+"/infra")
}

// inModule returns dir and the folders above it, up to that of its go.mod.
func inModule(dir string) []string {
	all := above(dir)
	for i, at := range all {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return all[:i+1]
		}
	}
	return all
}

// above returns dir, which is absolute or "", and the folders above it.
func above(dir string) []string {
	var all []string
	for dir != "" {
		all = append(all, dir)
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return all
}

// lookPath returns the path of a program on the PATH of the environment, "" if it is not there.
func lookPath(io *IO, name string) string {
	var candidates []string
	for _, dir := range filepath.SplitList(io.env("PATH")) {
		if filepath.IsAbs(dir) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	return firstProgram(candidates)
}

// firstProgram returns the first of the paths that is a program, "" if none is.
func firstProgram(paths []string) string {
	for _, path := range paths {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

// run runs a command of the CDK, whose output is shown as it comes.
func (c *cdk) run(ctx context.Context, o *IO, args ...string) error {
	said, shown := &tail{}, &exceptions{to: o.Err}
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Dir, cmd.Stdin = c.dir, o.In
	cmd.Env = append(slices.Clone(o.Env), "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20", "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION=1")
	out := io.MultiWriter(o.Err, said)
	if !o.Terminal {
		out = io.MultiWriter(shown, said)
	}
	defer shown.flush()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit):
		return fmt.Errorf("cdk %s failed, see above%s", args[0], c.remedy(said.String()))
	case err != nil:
		return fmt.Errorf("running %s: %w", c.path, err)
	}
	return nil
}

// remedy returns what to do about a failure of which the CDK says text, if that is known.
func (c *cdk) remedy(text string) string {
	for _, known := range []struct{ signs, help string }{
		{"ExpiredToken|token included in the request is expired|SSO session", "the credentials for AWS have expired: renew them, for example with `aws sso login`"},
		{
			"Unable to resolve AWS account|no credentials have been configured|Could not load credentials|CredentialsProviderError|InvalidClientTokenId|UnrecognizedClient",
			"there are no credentials for AWS that work: run `aws configure` or `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
		},
		{"bootstrap", "the account and region have to be prepared once: run `" + quoteArg(c.path) + " bootstrap " + c.environment(text) + " --app ''`"},
		{"Region is missing|specify a region|determine region", "no region is set: set AWS_REGION, or run `aws configure`"},
		{"missing go.sum entry|no required module provides|updates to go.mod needed", "the module lacks what its infrastructure imports: run `go mod tidy` in " + c.dir},
		{"AccessDenied|not authorized to perform", "the credentials may not do this: use others, or ask whoever manages the account"},
	} {
		for sign := range strings.SplitSeq(known.signs, "|") {
			if strings.Contains(text, sign) {
				return ".\n" + known.help
			}
		}
	}
	return ""
}

// environment returns the account and region that the CDK speaks of.
func (c *cdk) environment(text string) string {
	return cmp.Or(regexp.MustCompile(`aws://[0-9]+/[a-z0-9-]+`).FindString(text), c.place)
}

// tail keeps the end of what is written.
type tail struct{ buf bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	const most = 64 << 10
	t.buf.Write(p)
	if over := t.buf.Len() - most; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string { return t.buf.String() }

// exceptions passes on what the CDK says but for the lines about resources that went well: on paper there are too many.
type exceptions struct {
	to   io.Writer
	line []byte // without an end yet
}

func (e *exceptions) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if e.line = append(e.line, line...); bytes.HasSuffix(line, []byte("\n")) {
			e.flush()
		}
	}
	return len(p), nil
}

func (e *exceptions) flush() {
	if !regexp.MustCompile(`\| (CREATE|UPDATE|DELETE)_(IN_PROGRESS|COMPLETE) +\| AWS::`).Match(e.line) {
		e.to.Write(e.line) //nolint:errcheck // like all that is said to people
	}
	e.line = nil
}
