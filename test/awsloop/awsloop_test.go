package awsloop_test

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/test/awsloop"
)

func TestLoop(t *testing.T) {
	begin := time.Now()
	lap := func(what string) {
		t.Logf("%s: %s", what, time.Since(begin).Round(time.Millisecond))
		begin = time.Now()
	}
	l := awsloop.Start(t, map[string]string{"AWS_LAMBDA_LOG_GROUP_NAME": "/bdk/probe"})
	lap("start and bootstrap")
	app, archive := build(t)
	lap("build")
	settings := map[string]string{"manifest": archive}
	d := l.Deploy(t, app, "ApiUrl", settings)
	lap("deploy")
	d.ShowLogs(t, "/bdk/probe")
	t.Log(d.URL, d.Outputs)
	for _, path := range []string{"/v1/health", "/v1/session/ses_a%2fb", "/v1/session/a%20b/stop?x=1&x=2&y=%ff", "/v1//session", "/nothing/at/all", "/v1/session/x/stream?ms=300", "/v1/session/x%2Fy/stream?a=1&a=2", "/v1/session//stream", "/", ""} {
		begin := time.Now()
		res, err := http.Get(d.URL + path)
		if err != nil {
			t.Error(err)
			continue
		}
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			t.Logf("%s %s %d %s", path, time.Since(begin).Round(time.Millisecond), res.StatusCode, short(lines.Text()))
		}
		t.Log(res.Header)
		res.Body.Close()
	}
	lap("requests")
	l.Destroy(t, app, settings)
	lap("destroy")
}

func short(s string) string {
	var seen struct {
		Env   map[string]string
		Dir   string
		PID   int
		Event map[string]any
	}
	if json.Unmarshal([]byte(s), &seen) != nil {
		return s
	}
	delete(seen.Event, "headers")
	delete(seen.Event, "requestContext")
	out, _ := json.Marshal(seen)
	return string(out)
}

func build(t *testing.T) (app, archive string) {
	t.Helper()
	dir := t.TempDir()
	run := func(env string, args ...string) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	app = filepath.Join(dir, "app")
	run("CGO_ENABLED=0", "build", "-o", app, "../../infra/app")
	run("CGO_ENABLED=0", "build", "-tags", "lambda.norpc", "-o", filepath.Join(dir, "bootstrap"), "./testdata/probe")
	archive = filepath.Join(dir, "bootstrap.zip")
	out, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(out)
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	h.SetMode(0o755)
	f, err := w.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(filepath.Join(dir, "bootstrap"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, in); err != nil {
		t.Fatal(err)
	}
	w.Close()
	out.Close()
	raw, err := json.Marshal(deploy.Manifest{
		Version: deploy.Version, Slug: "probe", Architecture: runtime.GOARCH, Archive: "bootstrap.zip",
		Functions: deploy.Functions(), Routes: deploy.Routes(), Schedules: deploy.Schedules(),
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "manifest.json")
	if err := os.WriteFile(manifest, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return app, manifest
}

var _ = context.Background
var _ = strings.Cut
