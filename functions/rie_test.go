package functions_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/test/emulator"
)

// TestEventsOfTheBinary: a program as Lambda runs it answers the events as the functions do in this process.
func TestEventsOfTheBinary(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	rie := emulator.Find(t, emulator.Lambda)
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./internal/sample")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range deploy.Functions() {
		for _, name := range cases(t, f.Name) {
			t.Run(f.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				answer, log := emulate(t, rie, bootstrap, f, read(t, f.Name, name))
				want(t, f, name, answer, log)
			})
		}
	}
}

// emulate runs the program for one event and returns its answer and what it printed.
func emulate(t *testing.T, rie, bootstrap string, f deploy.Function, event []byte) (answer []byte, log string) {
	t.Helper()
	for range 5 { // a port that was free may be taken a moment later
		front, api := emulator.FreeAddr(t), emulator.FreeAddr(t)
		cmd := exec.Command(rie, "--runtime-interface-emulator-address", front, "--runtime-api-address", api, bootstrap, f.Name)
		cmd.Env = []string{fmt.Sprint("AWS_LAMBDA_FUNCTION_TIMEOUT=", f.Seconds)}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // it is stopped
		}()
		answer, ok := post(t, "http://"+front+"/2015-03-31/functions/function/invocations", event, ended)
		_ = cmd.Process.Signal(syscall.SIGTERM) // gone already is as good
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill() // its child ends without it
			<-ended
		}
		if ok {
			return answer, stdout.String()
		}
		t.Logf("at %s and %s:\n%s%s", front, api, stdout.String(), stderr.String())
	}
	t.Fatal("the emulator does not answer")
	return nil, ""
}

// post sends an event once the emulator listens, and reports whether it was answered.
func post(t *testing.T, url string, event []byte, ended <-chan struct{}) ([]byte, bool) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for range 1000 {
		res, err := client.Post(url, "application/json", bytes.NewReader(event))
		if err == nil {
			defer res.Body.Close()
			answer, err := io.ReadAll(res.Body)
			return answer, err == nil && res.StatusCode == http.StatusOK
		}
		select {
		case <-ended:
			return nil, false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, false
}
