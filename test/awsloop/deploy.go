package awsloop

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Deployment is a stack that was deployed.
type Deployment struct {
	Name    string            // of the stack
	Outputs map[string]string // of the stack
	URL     string            // where the front answers for the API's stage, without a slash at the end

	loop *Loop
}

// Deploy has CDK deploy the only stack of a program, with the given settings of its context. Program is the path of an executable that
// makes the stack, built beforehand. The stack needs the output named apiURL, the address of its REST API on AWS.
func (l *Loop) Deploy(tb testing.TB, program, apiURL string, settings map[string]string) *Deployment {
	tb.Helper()
	outputs := filepath.Join(l.dir, "outputs.json")
	l.cdk(tb, l.root, l.program(program, settings, "deploy", "--require-approval", "never", "--outputs-file", outputs)...)
	raw, err := os.ReadFile(outputs)
	var stacks map[string]map[string]string
	if err == nil {
		err = json.Unmarshal(raw, &stacks)
	}
	if err != nil || len(stacks) != 1 {
		tb.Fatalf("the outputs of one stack: %s, error %v", raw, err)
	}
	d := &Deployment{loop: l}
	for d.Name, d.Outputs = range stacks {
	}
	d.URL = l.Serve(tb, d.Outputs[apiURL])
	return d
}

// Serve returns the URL where the front answers for a stage of an API that was deployed, by whomever, until the test ends. Address is
// the one the stage would have on AWS.
func (l *Loop) Serve(tb testing.TB, address string) string {
	tb.Helper()
	api, err := url.Parse(address)
	if err != nil || api.Host == "" {
		tb.Fatalf("the address of the API is %q, error %v", address, err)
	}
	id, _, _ := strings.Cut(api.Host, ".")
	f := newFront(tb, l, id, strings.Trim(api.Path, "/"))
	server := httptest.NewServer(f)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		f.close()
		server.Close()
	})
	return server.URL + "/" + f.stage
}

// Destroy has CDK remove what Deploy has made with the same arguments.
func (l *Loop) Destroy(tb testing.TB, program string, settings map[string]string) {
	tb.Helper()
	l.cdk(tb, l.root, l.program(program, settings, "destroy", "--force")...)
}

func (l *Loop) program(path string, settings map[string]string, command ...string) []string {
	args := append(command, "--all", "--app", path, "--output", filepath.Join(l.dir, "cdk.out"))
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// patience is how long CDK may take. The emulator waits an hour for a custom resource that it cannot run.
const patience = 3 * time.Minute

// cdk runs the CDK command line in a folder, whose cdk.json it reads, and ends the test if that fails.
func (l *Loop) cdk(tb testing.TB, dir string, args ...string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.cdkPath, append(args, "--no-notices", "--ci")...)
	cmd.Dir, cmd.Env = dir, l.Env()
	separate(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("cdk %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Put sets the whole value of a secret to a JSON object.
func (d *Deployment) Put(tb testing.TB, arn string, value map[string]string) {
	tb.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	text := string(raw)
	client := secretsmanager.NewFromConfig(d.loop.Config())
	if _, err := client.PutSecretValue(tb.Context(), &secretsmanager.PutSecretValueInput{SecretId: &arn, SecretString: &text}); err != nil {
		tb.Fatal(err)
	}
}

// ShowLogs prints what the functions have logged to a group, at most the last 200 lines of it, if the test has failed in the end.
func (d *Deployment) ShowLogs(tb testing.TB, group string) {
	tb.Helper()
	ctx := tb.Context()
	tb.Cleanup(func() {
		if !tb.Failed() {
			return
		}
		client := cloudwatchlogs.NewFromConfig(d.loop.Config())
		var lines [][]byte
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(client, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group})
		for pages.HasMorePages() {
			page, err := pages.NextPage(context.WithoutCancel(ctx))
			if err != nil {
				tb.Logf("the logs cannot be read: %v", err)
				break
			}
			for _, e := range page.Events {
				lines = append(lines, []byte(*e.Message))
			}
		}
		tb.Logf("the last lines of %s:\n%s", group, bytes.Join(lines[max(0, len(lines)-200):], []byte("\n")))
	})
}
