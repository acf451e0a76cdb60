package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/bdk-lambda/bdk/test/awsloop"
)

// TestAWSOwnRepository: an agent in a folder of its own, as the command makes it, is deployed, asked, watched and removed with
// nothing but the command and the CDK.
func TestAWSOwnRepository(t *testing.T) {
	loop := awsloop.Start(t, map[string]string{"AWS_LAMBDA_LOG_GROUP_NAME": "/bdk/my-agent"})
	command, dir := build(t), filepath.Join(t.TempDir(), "my-agent")
	run := func(dir, program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(loop.Env(), "PATH="+loop.CDK()+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	bdk := func(args ...string) string {
		t.Helper()
		return run(filepath.Dir(dir), command, args...) // not in the repository
	}
	bdk("init", "my-agent", "--module", "example.com/my-agent")
	made := bdk("deploy", "my-agent", "--arch", runtime.GOARCH, "--context", "execRuntime=provided")
	url := regexp.MustCompile(`https://\S+/my-agent\b`).FindString(made)
	secret := regexp.MustCompile(`secret-id (\S+)`).FindStringSubmatch(made)
	if url == "" || secret == nil {
		t.Fatalf("deploy does not tell the URL and the secret:\n%s", made)
	}
	value, err := secretsmanager.NewFromConfig(loop.Config()).GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &secret[1]})
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]string
	if err := json.Unmarshal([]byte(*value.SecretString), &keys); err != nil || keys["bearer:default"] == "" {
		t.Fatalf("the secret has no token for the first caller: %v", err)
	}
	served := loop.Serve(t, url)
	reply := bdk("run", "--url", served, "--bearer-token", keys["bearer:default"], "--message", "Review pull request 42")
	if !strings.Contains(reply, "inspect_pr") {
		t.Errorf("the agent called no tool:\n%s", reply)
	}
	reply = bdk("run", "--url", served, "--bearer-token", keys["bearer:default"], "--approve", "--message", "Approve https://example.com/acme/checkout/pull/42")
	if !strings.Contains(reply, `< approve_pr {`) || !strings.Contains(reply, "Verdict: approve,") {
		t.Errorf("the agent did not approve:\n%s", reply)
	}
	log := ""
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(log, "turn ended") || !strings.Contains(log, "approvedBy"); { // it arrives behind the reply
		if time.Now().After(deadline) {
			t.Fatalf("the log does not tell of the turns and the approval:\n%s", log)
		}
		log = bdk("logs", "--agent", "my-agent")
	}
	run(dir, filepath.Join(loop.CDK(), "cdk"), "deploy", "--require-approval", "never", "--no-notices", "-c", "arch="+runtime.GOARCH, "-c", "execRuntime=provided")
	reply = bdk("run", "--url", served, "--bearer-token", keys["bearer:default"], "--message", "Review pull request 42")
	if !strings.Contains(reply, "inspect_pr") {
		t.Errorf("what cdk deploy has deployed called no tool:\n%s", reply)
	}
	kept := bdk("deploy", "my-agent", "--destroy", "--yes")
	if n := strings.Count(kept, "AWS::DynamoDB::Table "); n != 3 || !strings.Contains(kept, "AWS::S3::Bucket ") {
		t.Errorf("%d tables are said to stay:\n%s", n, kept)
	}
	again := exec.CommandContext(t.Context(), command, "deploy", "my-agent", "--destroy", "--yes")
	again.Dir, again.Env = filepath.Dir(dir), loop.Env()
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no stack bdk-my-agent in ") {
		t.Errorf("once more: %v\n%s", err, out)
	}
}
