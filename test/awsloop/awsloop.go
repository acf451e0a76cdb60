// Package awsloop deploys agents to an emulator of AWS on loopback, with the real CDK command line, for tests of what runs
// there. Nothing in it can reach AWS: every client gets the emulator's address and keys that are none.
//
// test/e2e/EMULATOR.md says where the emulator differs from AWS, and what this package does about it. Most of that is a
// front, in place of API Gateway: what is asked of a [Deployment] goes through it.
package awsloop

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/bdk-lambda/bdk/test/emulator"
	"github.com/bdk-lambda/bdk/test/need"
)

// Gate is the environment variable without which [Start] skips the test: `make e2e-aws` sets it to 1.
const Gate = "BDK_E2E_AWS"

const (
	account = "000000000000"
	region  = "us-east-1"
)

// Loop is an account of the emulator. It is safe for concurrent use, but one deployment should be made after the other.
type Loop struct {
	root     string // of the repository
	python   string // that has the emulator
	cdkPath  string // of the CDK command line
	dir      string // all state
	url      string // of the emulator
	env      map[string]string
	calls    *calls
	through  string // the address of calls
	emulator *exec.Cmd
	done     chan struct{} // closed when the emulator has ended
}

// Start returns an account that CDK can deploy to, and that ends with the test, with every process it has started. Env are
// environment variables that all functions get which those that deploy cannot set. Without [Gate] the test is skipped.
func Start(tb testing.TB, env map[string]string) *Loop {
	tb.Helper()
	if os.Getenv(Gate) != "1" {
		tb.Skip("skipped: it deploys to an emulator of AWS, which takes minutes (make e2e-aws)")
	}
	if runtime.GOOS != "linux" {
		need.Missing(tb, "the emulator runs functions as processes of this machine, which has to be Linux")
	}
	need.Tool(tb, "node")
	l := &Loop{root: emulator.Root(tb), python: emulator.Find(tb, emulator.Account), cdkPath: emulator.Find(tb, emulator.CDK), dir: tb.TempDir(), env: env}
	l.calls = newCalls()
	server := httptest.NewServer(l.calls)
	l.through = server.URL
	tb.Cleanup(func() {
		l.stop(tb)
		server.CloseClientConnections()
		server.Close()
	})
	for range 5 { // a port that was free may be taken a moment later
		if l.start(tb) {
			l.cdk(tb, l.dir, "bootstrap", "aws://"+account+"/"+region)
			return l
		}
	}
	tb.Fatalf("the emulator does not start:\n%s", l.Log(50))
	return nil
}

// Config returns what clients of the account are made from.
func (l *Loop) Config() aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: &l.url, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// Env returns the environment for a program that works with the account: the test's own without anything that leads to AWS.
func (l *Loop) Env() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "CDK_") || strings.HasSuffix(strings.ToLower(name), "_proxy") &&
			!strings.HasPrefix(name, "GO")
	})
	none := filepath.Join(l.dir, "none")
	return append(env, "AWS_ENDPOINT_URL="+l.url, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION="+region,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none,
		"CDK_HOME="+filepath.Join(l.dir, "cdk"), "CDK_DISABLE_CLI_TELEMETRY=true", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20",
		"JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION=1")
}

// CDK returns the folder with the CDK command line.
func (l *Loop) CDK() string { return filepath.Dir(l.cdkPath) }

// Log returns the last lines of what the emulator printed.
func (l *Loop) Log(lines int) string {
	raw, err := os.ReadFile(l.logFile())
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(raw, []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

func (l *Loop) logFile() string { return filepath.Join(l.dir, "emulator.log") }

// start starts the emulator and reports whether it came to listen.
func (l *Loop) start(tb testing.TB) bool {
	tb.Helper()
	addr := emulator.FreeAddr(tb)
	_, port, _ := net.SplitHostPort(addr)
	l.url = "http://" + addr
	l.calls.emulator = &url.URL{Scheme: "http", Host: addr}
	state := filepath.Join(l.dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		tb.Fatal(err)
	}
	log, err := os.OpenFile(l.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(l.python, "-m", "ministack") // stop ends it, after the last cleanup that needs it
	// functions inherit its environment: nothing in it is from the test
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + state, "TMPDIR=" + state, "S3_DATA_DIR=" + filepath.Join(state, "s3"), "BIND_HOST=127.0.0.1",
		"GATEWAY_PORT=" + port, "AWS_ENDPOINT_URL=" + l.through, "IOT_MTLS_ENABLED=0", "SFTP_ENABLED=0", "AWS_SECRET_ACCESS_KEY=test", mark + l.dir,
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		cmd.Env = append(cmd.Env, name+"="+l.env[name])
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = state, log, log
	separate(cmd)
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // it is killed
	}()
	l.emulator, l.done = cmd, done
	return l.healthy(tb)
}

// healthy waits until the emulator answers, for at most 30 s, and reports whether it does.
func (l *Loop) healthy(tb testing.TB) bool {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		r, err := http.NewRequestWithContext(ctx, "GET", l.url+"/_ministack/health", nil)
		if err != nil {
			tb.Fatal(err)
		}
		if res, err := client.Do(r); err == nil {
			res.Body.Close()
			return res.StatusCode == http.StatusOK
		}
		select {
		case <-l.done:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends every process of the account.
func (l *Loop) stop(tb testing.TB) {
	tb.Helper()
	if l.emulator == nil {
		return
	}
	if tb.Failed() {
		tb.Logf("the emulator's last lines:\n%s", l.Log(100))
	}
	killGroup(l.emulator)
	<-l.done
	l.Kill("")
	if left := l.processes(""); len(left) > 0 {
		tb.Errorf("processes %v are left over", left)
	}
}
