package awsloop_test

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/test/awsloop"
)

// TestLoop: what is deployed can be asked, answers as on AWS, and is gone in the end.
func TestLoop(t *testing.T) {
	l := awsloop.Start(t, map[string]string{"AWS_LAMBDA_LOG_GROUP_NAME": "/bdk/probe"})
	app, settings := build(t)
	d := l.Deploy(t, app, deploy.OutputURL, settings)
	d.ShowLogs(t, d.Outputs[deploy.OutputLogs])
	p := probe{l, d.URL}
	t.Run("Routes", p.routes)
	t.Run("Environment", p.environment)
	t.Run("Streams", p.streams)
	t.Run("Kill", p.kill)
	l.Destroy(t, app, settings)
}

// probe is the deployment of testdata/probe.
type probe struct {
	loop *awsloop.Loop
	url  string
}

// seen is what a function of the probe answers with.
type seen struct {
	Env   map[string]string
	Dir   string
	Event events.APIGatewayProxyRequest
}

func ask(t *testing.T, url string) (seen, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var s seen
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if json.Unmarshal([]byte(line), &s) != nil {
		t.Fatalf("%s: %d %.300s, error %v", url, res.StatusCode, line, err)
	}
	return s, res.Header
}

// routes: a request gets to its function as it was sent.
func (p probe) routes(t *testing.T) {
	for path, want := range map[string]struct{ handler, resource, id string }{
		"":                            {"discovery", "/", ""},
		"/":                           {"discovery", "/", ""},
		"/v1/health":                  {"discovery", "/v1/health", ""},
		"/nothing/at/all":             {"discovery", "/{proxy+}", ""},
		"/v1/nothing":                 {"discovery", "/v1/{proxy+}", ""},
		"/v1/session/a":               {"sessions", "/v1/session/{id}", "a"},
		"/v1/session/a%2Fb%20c":       {"sessions", "/v1/session/{id}", "a%2Fb%20c"},
		"/v1/session/a%25/stop":       {"sessions", "/v1/session/{id}/stop", "a%25"},
		"/v1/session/a/nothing":       {"discovery", "/v1/session/{id}/{proxy+}", "a"},
		"/v1/logs":                    {"stream", "/v1/logs", ""},
		"/v1/session/a%2Fb%25/stream": {"stream", "/v1/session/{id}/stream", "a%2Fb%25"},
	} {
		got, header := ask(t, p.url+path+"?a=1&a=2&b=%2F")
		e := got.Event
		if got.Env["_HANDLER"] != want.handler || e.Resource != want.resource || e.PathParameters["id"] != want.id {
			t.Errorf("%s: got %s, %s, id %q; want %v", path, got.Env["_HANDLER"], e.Resource, e.PathParameters["id"], want)
		}
		if path != "" && e.Path != path {
			t.Errorf("%s arrives as %s", path, e.Path)
		}
		if diff := cmp.Diff(map[string][]string{"a": {"1", "2"}, "b": {"/"}}, e.MultiValueQueryStringParameters); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if diff := cmp.Diff([]string{"a", "b"}, header.Values("X-Two")); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// environment: functions see of this machine what they see on Lambda, and nothing of the test.
func (p probe) environment(t *testing.T) {
	for path, handler := range map[string]string{"/v1/health": "discovery", "/v1/logs": "stream"} {
		got, _ := ask(t, p.url+path)
		for name, want := range map[string]string{
			"_HANDLER": handler, "AWS_LAMBDA_LOG_GROUP_NAME": "/bdk/probe", "AWS_REGION": "us-east-1", "LAMBDA_TASK_ROOT": got.Dir, "PROBE": "yes", "PATH": "/usr/bin:/bin",
		} {
			if got.Env[name] != want {
				t.Errorf("%s: %s is %q; want %q", handler, name, got.Env[name], want)
			}
		}
		if got.Env["AWS_LAMBDA_FUNCTION_NAME"] == "" || got.Env["BDK_SECRET_ARN"] == "" || !strings.HasPrefix(got.Env["AWS_ENDPOINT_URL"], "http://127.0.0.1:") {
			t.Errorf("%s: %v", handler, got.Env)
		}
		if got.Env[awsloop.Gate] != "" {
			t.Errorf("%s has the test's environment", handler)
		}
	}
}

// streams: what is streamed arrives as it is written.
func (p probe) streams(t *testing.T) {
	begin := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/v1/logs?ms=300", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 4 {
		line, err := lines.ReadString('\n')
		took, want := time.Since(begin), time.Duration(i)*300*time.Millisecond
		if err != nil || took < want || took > want+time.Second {
			t.Errorf("line %d came after %s: %.20q, error %v", i, took, line, err)
		}
	}
	if res.StatusCode != http.StatusCreated || res.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("got %d %s", res.StatusCode, res.Header)
	}
}

// kill: a function that is killed fails its request, and the next one gets a new process.
func (p probe) kill(t *testing.T) {
	for handler, path := range map[string]string{"discovery": "/v1/health", "stream": "/v1/logs"} {
		done := make(chan int, 1)
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), "GET", p.url+path+"?ms=20000", nil)
			if err != nil {
				done <- -1
				return
			}
			res, err := (&http.Client{}).Do(r)
			if err != nil {
				done <- 0
				return
			}
			defer res.Body.Close()
			buf := bufio.NewReader(res.Body)
			for err == nil {
				_, err = buf.ReadString('\n')
			}
			if handler == "stream" && err.Error() == "EOF" {
				t.Errorf("%s: the answer ended well", handler)
			}
			done <- res.StatusCode
		}()
		time.Sleep(time.Second) // until the function works on it
		killed := p.loop.Kill(handler)
		if got := <-done; killed == 0 || got != map[string]int{"discovery": 502, "stream": 201}[handler] {
			t.Errorf("%s: %d processes killed, answer %d", handler, killed, got)
		}
		if got, _ := ask(t, p.url+path); got.Env["_HANDLER"] != handler {
			t.Errorf("%s does not answer any more", handler)
		}
	}
}

// build makes the CDK program of the repository, and settings for it to deploy the probe.
func build(t *testing.T) (app string, settings map[string]string) {
	t.Helper()
	dir := t.TempDir()
	app = filepath.Join(dir, "app")
	for path, source := range map[string]string{app: "../../infra/app", filepath.Join(dir, "zip", "bootstrap"): "./testdata/probe"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", path, source)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", source, err, out)
		}
	}
	archive, err := os.Create(filepath.Join(dir, "bootstrap.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	w := zip.NewWriter(archive)
	if err := w.AddFS(os.DirFS(filepath.Join(dir, "zip"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	contents, err := os.ReadFile(archive.Name())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(contents)
	manifest, err := json.Marshal(deploy.Manifest{
		Version: deploy.Version, Slug: "probe", Architecture: runtime.GOARCH, Archive: "bootstrap.zip", SHA256: hex.EncodeToString(sum[:]),
		Functions: deploy.Functions(), Routes: deploy.Routes(), Schedules: deploy.Schedules(),
	})
	path := filepath.Join(dir, "manifest.json")
	if err == nil {
		err = os.WriteFile(path, manifest, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return app, map[string]string{"manifest": path, "env": "PROBE=yes"}
}
