//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
	"github.com/bdk-lambda/bdk/bdkpack/cli/stack/stacktest"
	"github.com/bdk-lambda/bdk/shared/clock"
)

// fakeCDK writes what it was called with and the outputs of a stack, or fails as $CDK_FAILS says.
const fakeCDK = `#!/bin/sh
printf '%s\n' "$@" > args
echo "making the stack" >&2
printf '%s\n' 'bdk-agent |  0/9 | 3:04:05 AM | CREATE_IN_PROGRESS   | AWS::IAM::Role | r' 'bdk-agent |  1/9 | 3:04:06 AM | CREATE_COMPLETE      | AWS::IAM::Role | r' 'bdk-agent |  1/9 | 3:04:07 AM | CREATE_FAILED        | AWS::IAM::Role | s' >&2
printf "node $JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION" >&2
if [ -n "$CDK_FAILS" ]; then echo "$CDK_FAILS" >&2; exit 7; fi
while [ $# -gt 0 ]; do
	if [ "$1" = --outputs-file ]; then
		echo '{"other":{"ApiUrl":"x/other"},"bdk-agent":{"ApiUrl":"https://api.example/agent","SecretArn":"arn:secret"}}' > "$2"
	fi
	shift
done
`

// deployment is an agent, a checkout without cdk.json and a PATH with node, for the tests to change.
type deployment struct {
	root string
	io   *cli.IO
	out  bytes.Buffer
	err  bytes.Buffer
}

func newDeployment(t *testing.T, more map[string]string) *deployment {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: builds programs, which takes seconds")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("../maingen/testdata/world.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"agent/go.mod": "module my-agent\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/bdk-lambda/bdk v0.0.0\n\texample.com/dep v0.0.0 // indirect\n)\n\n" +
			"replace github.com/bdk-lambda/bdk => ../bdk\n\nreplace example.com/dep => ../dep\n",
		"agent/cdk.json": `{"app":"go run ./infra"}`, "bdk/infra/infra.go": "package infra\n",
		"agent/infra/main.go":         "package main\n\nimport _ \"github.com/bdk-lambda/bdk/infra\"\n\nfunc main() {}\n",
		"agent/node_modules/.bin/cdk": fakeCDK, "bin/node": "#!/bin/sh\n",
	}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	maps.Copy(files, more)
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := &deployment{root: root}
	d.io = &cli.IO{
		In: strings.NewReader(""), Out: &d.out, Err: &d.err, Clock: clock.System{}, HTTP: &http.Client{},
		Env: append(os.Environ(), "PATH="+filepath.Join(root, "bin")+string(filepath.ListSeparator)+"/usr/bin"+string(filepath.ListSeparator)+"/bin"),
	}
	return d
}

func (d *deployment) deploy(t *testing.T, c cli.Deployment) error {
	t.Helper()
	c.Dir, c.Checkout = filepath.Join(d.root, "agent"), filepath.Join(d.root, "bdk")
	if c.AWS == nil {
		c.AWS = new(stacktest.Account).Serve(t)
	}
	return cli.Deploy(t.Context(), d.io, c)
}

// args returns what cdk was called with.
func (d *deployment) args(t *testing.T) []string {
	t.Helper()
	args, err := os.ReadFile(filepath.Join(d.root, "agent", "args"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(args)), "\n")
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the output lacks %q:\n%s", part, text)
		}
	}
}

func TestDeployPacksAndHandsOverToTheCDK(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, map[string]string{"agent/bot/agent.go": "package bot\n\nimport \"github.com/bdk-lambda/bdk/bdkpack/bdk\"\n\nvar Agent = bdk.Agent{Model: \"openai:a\"}\n"})
	if err := d.deploy(t, cli.Deployment{Env: []string{"B=x,y=z", "A="}, Context: []string{"retain=false"}}); err != nil {
		t.Fatalf("%v\n%s", err, d.err.String())
	}
	manifest := filepath.Join(d.root, "agent", ".bdk", "pack", "agent", "manifest.json")
	got := d.args(t)
	if len(got) < 7 || got[5] != "--outputs-file" {
		t.Fatalf("cdk was called with %q", got)
	}
	got[6] = "FILE"
	want := []string{
		"deploy", "--require-approval", "never", "--progress", "events", "--outputs-file", "FILE",
		"-c", "retain=false", "-c", `env={"A":"","B":"x,y=z"}`, "-c", "manifest=" + manifest,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cdk was called with (-want +got):\n%s", diff)
	}
	if data, err := os.ReadFile(manifest); err != nil || !json.Valid(data) {
		t.Errorf("the manifest is not there: %v", err)
	}
	lacks(t, d.out.String(), "agent is deployed at https://api.example/agent\n", "--secret-id arn:secret\n", "beside the token: OPENAI_API_KEY\n",
		"run --url https://api.example/agent ", "logs --agent agent --follow\n")
	lacks(t, d.err.String(), "deploying bdk-agent to 123456789012/eu-west-1 with the architecture arm64, its model openai:a, the variables A, B\n",
		"making the stack\n", "CREATE_FAILED        | AWS::IAM::Role", "node 20")
	if strings.Contains(d.err.String(), "IN_PROGRESS") || strings.Contains(d.err.String(), "CREATE_COMPLETE") {
		t.Errorf("what went well is told without a terminal:\n%s", d.err.String())
	}
}

func TestWhatNoFlagSaysIsTakenFromTheContext(t *testing.T) {
	t.Parallel()
	settings := `{"app":"go run ./infra","context":{"arch":"amd64","model":"openai:b","env":{"LEVEL":"debug","PLACE":"here"},"@aws-cdk/core:x":true}}`
	for name, c := range map[string]struct {
		cli.Deployment

		used string
		env  string // for the CDK, "" if it reads cdk.json itself
	}{
		"no flags": {used: "the architecture amd64, the model openai:b instead of its own, the variables LEVEL, PLACE\n"},
		"flags": {
			cli.Deployment{Arch: "arm64", Model: "openai:c", Env: []string{"LEVEL=info"}},
			"the architecture arm64, the model openai:c instead of its own, the variables LEVEL, PLACE\n", `env={"LEVEL":"info","PLACE":"here"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t, map[string]string{"agent/cdk.json": settings})
			if err := d.deploy(t, c.Deployment); err != nil {
				t.Fatalf("%v\n%s", err, d.err.String())
			}
			lacks(t, d.err.String(), c.used)
			args := strings.Join(d.args(t), "\n")
			if strings.Contains(args, "env=") != (c.env != "") || !strings.Contains(args, c.env) {
				t.Errorf("cdk was called with\n%s", args)
			}
		})
	}
}

func TestDeployNeedsCredentialsBeforeItPacks(t *testing.T) {
	t.Parallel()
	refused := &stacktest.Account{Refuses: "GetCallerIdentity"}
	here := new(stacktest.Account)
	none := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("nobody is here") })
	for want, options := range map[string][]func(*config.LoadOptions) error{
		"you may not":             refused.Serve(t),
		"nobody is here":          append(here.Serve(t), config.WithCredentialsProvider(none)),
		"no region of AWS is set": append(here.Serve(t), config.WithRegion("")),
	} {
		d := newDeployment(t, nil)
		err := d.deploy(t, cli.Deployment{AWS: options})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "aws configure") {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := os.Stat(filepath.Join(d.root, "agent", ".bdk")); err == nil {
			t.Errorf("%s: the agent was packed", want)
		}
	}
}

func TestPackSaysWhereAndHowLarge(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, nil)
	dir, out := filepath.Join(d.root, "agent"), filepath.Join(d.root, "out")
	if code := cli.Run(t.Context(), d.io, []string{"pack", dir, "--out", out, "--arch", "amd64"}); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, d.err.String())
	}
	pattern := `^agent is packed for amd64 into .*/out/agent/bootstrap.zip\n  archive +\d\.\d{3} MB of 8\n    bootstrap +\d\.\d{3} MB of 20\n    agent/demo.yaml +0.000 MB\n$`
	if !regexp.MustCompile(pattern).MatchString(d.out.String()) {
		t.Errorf("got:\n%s", d.out.String())
	}
	for want, text := range map[string]string{`"ok": true`: "Be brief.", `"ok": false`: " "} {
		d.out.Reset()
		if err := os.WriteFile(filepath.Join(dir, "bot", "instructions.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code := cli.Run(t.Context(), d.io, []string{"pack", "--dir", dir, "--out", out, "--json"})
		if !strings.Contains(d.out.String(), want) || !json.Valid(d.out.Bytes()) || (code == 0) != (want == `"ok": true`) {
			t.Errorf("with instructions %q: exit code %d and\n%s", text, code, d.out.String())
		}
	}
}

func TestWhatKeepsAnAgentFromBeingDeployedIsToldWithItsRemedy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remove string // a file
		app    string // of the cdk.json
		fails  string // what the CDK says
		broken bool   // the agent has a mistake
		want   []string
	}{
		"no cdk.json":    {remove: "agent/cdk.json", want: []string{"no cdk.json", "bdk init"}},
		"another's":      {app: "npx ts-node bin/app.ts", want: []string{"no cdk.json", "infra.Main"}},
		"another Go app": {app: "go run ./other", want: []string{"no cdk.json", "infra.Main"}},
		"no node":        {remove: "bin/node", want: []string{"node is not on the PATH", "version 22"}},
		"no cdk":         {remove: "agent/node_modules/.bin/cdk", want: []string{"not installed", "npm install --save-dev aws-cdk"}},
		"no credentials": {fails: "Unable to resolve AWS account to use. It must be either configured", want: []string{"cdk deploy failed", "aws configure"}},
		"expired":        {fails: "ExpiredToken: The security token", want: []string{"expired", "aws sso login"}},
		"no bootstrap":   {fails: "bdk-agent: SSM parameter /cdk-bootstrap/hnb659fds/version not found in aws://000000000000/eu-west-1.", want: []string{"prepared once", "cdk bootstrap aws://000000000000/eu-west-1 --app ''`"}},
		"not prepared":   {fails: "Has the environment been bootstrapped?", want: []string{"cdk bootstrap aws://123456789012/eu-west-1 --app ''`"}},
		"something else": {fails: "the stack is upset", want: []string{"cdk deploy failed, see above"}},
		"a mistake":      {broken: true, want: []string{"exit code 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := map[string]string{}
			if c.broken {
				more["agent/bot/tools/greet.go"] = "package tools\n"
			}
			if c.app != "" {
				more["agent/cdk.json"] = `{"app":"` + c.app + `"}`
				more["agent/other/main.go"] = "package main\n\nfunc main() {}\n"
			}
			d := newDeployment(t, more)
			d.io.Env = append(d.io.Env, "CDK_FAILS="+c.fails)
			if c.remove == "bin/node" {
				d.io.Env = append(d.io.Env, "PATH="+filepath.Join(d.root, "bin"))
			}
			if c.remove != "" {
				if err := os.Remove(filepath.Join(d.root, c.remove)); err != nil {
					t.Fatal(err)
				}
			}
			err := d.deploy(t, cli.Deployment{})
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q", err, want)
				}
			}
			if strings.Contains(d.err.String(), "BDK140") != c.broken || strings.Contains(d.err.String(), "making the stack") != (c.fails != "") || d.out.Len() > 0 {
				t.Errorf("output %q, errors:\n%s", d.out.String(), d.err.String())
			}
		})
	}
}
