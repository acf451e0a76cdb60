package functions_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/functions"
	"github.com/bdk-lambda/bdk/functions/internal/runtimetest"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
)

// TestMain is a packed agent when a handler is named.
func TestMain(m *testing.M) {
	if os.Getenv("_HANDLER") == "" {
		os.Exit(m.Run())
	}
	projects := []bdk.Project{{Slug: "workshop", Agent: bdk.Agent{Model: "scripted:model.yaml"}}}
	if os.Getenv("TEST_AGENTS") == "2" {
		projects = append(projects, bdk.Project{Slug: "other"})
	}
	os.Exit(functions.Main(projects))
}

// program returns a packed agent without AWS.
func program(t *testing.T, handler string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append([]string{
		"_HANDLER=" + handler, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_MAX_ATTEMPTS=1", deploy.EnvSecret + "=arn:aws:secretsmanager:eu-west-1:123456789012:secret:workshop",
	}, env...)
	return cmd
}

// TestCannotStart: what is wrong is one record of the log, and the program ends.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cmd  *exec.Cmd
		want string
	}{
		"an unknown handler": {program(t, "steps"), `"steps": it must be one of await, discovery, dispatch, exec, hook, purge, sessions, step, stream, sweep, tools, wake`},
		"two agents":         {program(t, "step", "TEST_AGENTS=2"), "built of 2 agents"},
	} {
		out, err := tc.cmd.Output()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 1 {
			t.Errorf("%s: got %v", name, err)
		}
		var record struct{ Level, Error string }
		if err := json.Unmarshal(out, &record); err != nil || record.Level != "ERROR" || !strings.Contains(record.Error, tc.want) {
			t.Errorf("%s: printed %q", name, out)
		}
	}
}

// TestScripts: the program that is started in place of Python runs scripts, which see nothing of what it has in its environment.
func TestScripts(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	cmd := program(t, deploy.Exec, "TMPDIR="+scratch, "AWS_LAMBDA_EXEC_WRAPPER=/var/task/bootstrap", "AWS_SESSION_TOKEN=test", "PATH=/usr/bin:/bin")
	cmd.Args = append(cmd.Args, "/var/lang/bin/python3.13", "/var/runtime/bootstrap.py") // what the runtime would start by itself
	api := runtimetest.Start(t, cmd)
	for range 2 {
		if err := os.WriteFile(filepath.Join(scratch, "left-over"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		a := api.Invoke(t, []byte(`{"args":["bash","-c","cat; env >&2; echo x > made; exit 3"],"stdin":{"data":"aGVsbG8="},"env":{"MINE":"1"}}`), 20*time.Second)
		var got lambdaexec.Answer
		if err := json.NewDecoder(a.Body).Decode(&got); err != nil || a.Failed || got.Fault != nil {
			t.Fatalf("got %+v, %+v, %v", got, got.Fault, err)
		}
		if string(got.Stdout) != "hello" || got.ExitCode != 3 || len(got.Changes) == 0 {
			t.Errorf("got %+v", got)
		}
		for line := range strings.Lines(string(got.Stderr)) {
			if strings.HasPrefix(line, "AWS_") || strings.HasPrefix(line, "BDK_") || strings.HasPrefix(line, "_HANDLER") {
				t.Errorf("the script sees %s", line)
			}
		}
		if !strings.Contains(string(got.Stderr), "MINE=1\n") {
			t.Errorf("the script sees %s", got.Stderr)
		}
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	}
}

// TestWithoutAWS: a function whose deployment is out of reach answers so, and goes on.
func TestWithoutAWS(t *testing.T) {
	t.Parallel()
	for handler, env := range map[string]string{"discovery": "", "stream": "", "stream ": "AWS_SAM_LOCAL=true"} {
		cmd := program(t, strings.TrimSpace(handler))
		if env != "" {
			cmd.Env = append(cmd.Env, env)
		}
		api := runtimetest.Start(t, cmd)
		for range 2 {
			a := api.Invoke(t, []byte(`{"httpMethod":"GET","path":"/v1/health"}`), 20*time.Second)
			body, err := io.ReadAll(a.Body)
			streamed := bytes.Contains(body, make([]byte, 8))
			if err != nil || a.Failed || streamed != (handler == "stream") || !bytes.Contains(body, []byte(`"statusCode":503`)) || !bytes.Contains(body, []byte("unavailable")) {
				t.Errorf("%s %s: got %q, %v", handler, env, body, err)
			}
		}
	}
}
