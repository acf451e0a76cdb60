package lambdaexec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/exectest"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
	"github.com/bdk-lambda/bdk/shared/exec/localexec"
	"github.com/bdk-lambda/bdk/test/emulator"
)

// cloud is Lambda with one function, and a store of objects that asks nobody for a signature.
type cloud struct {
	t      *testing.T
	server *httptest.Server
	answer func(w http.ResponseWriter, r *http.Request, event []byte) // of the function
	store  http.Handler

	mu      sync.Mutex
	events  int
	objects map[string][]byte
	stored  []string
}

// newCloud returns one whose function runs commands by run.
func newCloud(t *testing.T, run func(context.Context, exec.Command) (exec.Result, error)) *cloud {
	t.Helper()
	c := &cloud{t: t, objects: map[string][]byte{}}
	t.TempDir() // the sandboxes are removed after the server's end
	c.store = http.HandlerFunc(c.object)
	c.answer = func(w http.ResponseWriter, r *http.Request, event []byte) {
		var req lambdaexec.Request
		if err := json.Unmarshal(event, &req); err != nil {
			t.Error(err)
		}
		// each call has a sandbox of its own, and goes on when its caller has left
		dir := t.TempDir()
		a := lambdaexec.NewSandbox(runner(run), dir, c.server.Client()).Run(context.WithoutCancel(r.Context()), req)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("the sandbox has %v, %v", left, err)
		}
		data, err := json.Marshal(a)
		if err != nil || len(data) > 6<<20 {
			t.Errorf("an answer of %d bytes, %v", len(data), err)
		}
		_, _ = w.Write(data)
	}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/invocations") {
		c.store.ServeHTTP(w, r)
		return
	}
	event, err := io.ReadAll(r.Body)
	if err != nil || len(event) > 6<<20 || r.URL.EscapedPath() != "/2015-03-31/functions/agent-exec/invocations" {
		c.t.Errorf("%s: an event of %d bytes, %v", r.URL, len(event), err)
	}
	c.mu.Lock()
	c.events++
	c.mu.Unlock()
	c.answer(w, r, event)
}

// calls returns how often the function was called.
func (c *cloud) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events
}

func (c *cloud) object(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Method {
	case "PUT":
		if err != nil {
			c.t.Error(err)
		}
		c.objects[r.URL.Path] = data
		c.stored = append(c.stored, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	case "GET":
		data, ok := c.objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(data)
	case "DELETE":
		delete(c.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (c *cloud) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &c.server.URL, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

func (c *cloud) runner() *lambdaexec.Runner {
	store := s3.NewFromConfig(c.config(), func(o *s3.Options) { o.UsePathStyle = true })
	return lambdaexec.New(lambdaexec.NewClient(c.config()), store, lambdaexec.Config{Function: "agent-exec", Bucket: "bucket", Prefix: "exec/"})
}

type runner func(context.Context, exec.Command) (exec.Result, error)

func (r runner) Run(ctx context.Context, c exec.Command) (exec.Result, error) { return r(ctx, c) }

// dir returns a directory with files.
func dir(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		put(t, root, name, []byte(text))
	}
	return root
}

func put(t *testing.T, root, name string, data []byte) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// noise returns bytes that no archive makes smaller.
func noise(n int) []byte {
	data, r := make([]byte, n), rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data) // never fails
	return data
}

// TestCommandTravels: the function gets the command and its files, the caller what became of both.
func TestCommandTravels(t *testing.T) {
	t.Parallel()
	var got exec.Command
	c := newCloud(t, func(_ context.Context, cmd exec.Command) (exec.Result, error) {
		got = cmd
		if in := text(t, cmd.Dir, "a/in.txt"); in != "hello" {
			t.Errorf("in.txt has %q", in)
		}
		put(t, cmd.Dir, "out.txt", []byte("world"))
		return exec.Result{Stdout: []byte("o\xff"), Stderr: []byte("e"), ExitCode: 3, Killed: "memory", Took: 1500 * time.Millisecond}, os.Remove(filepath.Join(cmd.Dir, "old"))
	})
	root := dir(t, map[string]string{"a/in.txt": "hello", "old": "x"})
	cmd := exec.Command{Dir: root, Args: []string{"run", "it"}, Stdin: []byte("in\xff"), Env: map[string]string{"A": "1"}, Timeout: time.Microsecond, Output: 10}
	res, err := c.runner().Run(t.Context(), cmd)
	want := exec.Result{Stdout: []byte("o\xff"), Stderr: []byte("e"), ExitCode: 3, Killed: "memory", Took: 1500 * time.Millisecond}
	if d := cmp.Diff(want, res); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	cmd.Dir, cmd.Timeout = got.Dir, time.Millisecond // in whole ones
	if d := cmp.Diff(cmd, got); d != "" || got.Dir == root {
		t.Errorf("the command (-sent +run):\n%s", d)
	}
	if text(t, root, "out.txt") != "world" || text(t, root, "old") != "" || text(t, root, "a/in.txt") != "hello" {
		t.Error("the changes are not there")
	}
	if len(c.stored) > 0 {
		t.Errorf("little things were stored: %v", c.stored)
	}
}

// TestWhatIsLargeIsStored: and removed when it has arrived.
func TestWhatIsLargeIsStored(t *testing.T) {
	t.Parallel()
	const large, small = 3_000_000, 1_500_000
	for name, tc := range map[string]struct {
		files, stdin, changes int
		want                  []string
	}{
		"nothing":         {small, 0, small, nil},
		"files":           {large, 0, 1, []string{"files"}},
		"changes":         {1, 0, large, []string{"changes"}},
		"standard input":  {1, large, 1, []string{"stdin"}},
		"files beside it": {small, small, 1, []string{"files"}},
		"everything":      {large, large, large, []string{"stdin", "files", "changes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, func(_ context.Context, cmd exec.Command) (exec.Result, error) {
				if !bytes.Equal(cmd.Stdin, noise(tc.stdin)) || text(t, cmd.Dir, "in") != string(noise(tc.files)) {
					t.Error("the command gets something else")
				}
				put(t, cmd.Dir, "out", noise(tc.changes))
				return exec.Result{}, nil
			})
			root := dir(t, map[string]string{"in": string(noise(tc.files))})
			if _, err := c.runner().Run(t.Context(), exec.Command{Dir: root, Args: []string{"x"}, Stdin: noise(tc.stdin)}); err != nil {
				t.Fatal(err)
			}
			if text(t, root, "out") != string(noise(tc.changes)) {
				t.Error("the changes are not there")
			}
			if d := cmp.Diff(tc.want, c.stored); d != "" || len(c.objects) > 0 {
				t.Errorf("stored (-want +got), %d left:\n%s", len(c.objects), d)
			}
		})
	}
}

// TestLargestAnswerFits: into what Lambda takes, which the fake one checks.
func TestLargestAnswerFits(t *testing.T) {
	t.Parallel()
	c := newCloud(t, func(_ context.Context, cmd exec.Command) (exec.Result, error) {
		put(t, cmd.Dir, "out", noise(2_245_000))
		return exec.Result{Stdout: noise(cmd.Output), Stderr: noise(cmd.Output)}, nil
	})
	res, err := c.runner().Run(t.Context(), exec.Command{Dir: dir(t, nil), Args: []string{"x"}, Output: lambdaexec.MaxOutput})
	if err != nil || len(res.Stdout) != lambdaexec.MaxOutput || len(c.stored) > 0 {
		t.Errorf("got %d bytes, %v; stored %v", len(res.Stdout), err, c.stored)
	}
}

// TestSignedRequests: the function needs no permissions to get and to store what is large.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	addr := emulator.Start(t, emulator.S3, func(port string) []string {
		return []string{"--port", "127.0.0.1:" + port, "--access", "test", "--secret", "test", "--quiet", "--keep-alive", "posix", data}
	})
	c := newCloud(t, func(_ context.Context, cmd exec.Command) (exec.Result, error) {
		put(t, cmd.Dir, "out", append(noise(4<<20), text(t, cmd.Dir, "in")...))
		return exec.Result{}, nil
	})
	cfg := c.config()
	cfg.BaseEndpoint = aws.String("http://" + addr)
	store := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	if _, err := store.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("bucket")}); err != nil {
		t.Fatal(err)
	}
	r := lambdaexec.New(lambdaexec.NewClient(c.config()), store, lambdaexec.Config{Function: "agent-exec", Bucket: "bucket", Prefix: "exec/"})
	root := dir(t, map[string]string{"in": string(noise(3 << 20))})
	if _, err := r.Run(t.Context(), exec.Command{Dir: root, Args: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if got := text(t, root, "out"); got != string(append(noise(4<<20), noise(3<<20)...)) {
		t.Errorf("got %d other bytes", len(got))
	}
	list, err := store.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")})
	if err != nil || len(list.Contents) > 0 {
		t.Errorf("left over: %v, %v", list, err)
	}
}

// TestMalformedCommands are refused before anything is sent, or by the function with its reason.
func TestMalformedCommands(t *testing.T) {
	t.Parallel()
	c := newCloud(t, func(context.Context, exec.Command) (exec.Result, error) {
		return exec.Result{}, bdkerr.New(bdkerr.InvalidRequest, "the variable = has no name")
	})
	root := dir(t, nil)
	for name, cmd := range map[string]exec.Command{
		"no program":       {Dir: root},
		"an empty program": {Dir: root, Args: []string{""}},
		"no directory":     {Args: []string{"x"}},
		"a relative one":   {Dir: "x", Args: []string{"x"}},
		"much input":       {Dir: root, Args: []string{"x"}, Stdin: make([]byte, exec.MaxStdin+1)},
		"much time":        {Dir: root, Args: []string{"x"}, Timeout: exec.MaxTimeout + 1},
		"negative time":    {Dir: root, Args: []string{"x"}, Timeout: -1},
		"much output":      {Dir: root, Args: []string{"x"}, Output: lambdaexec.MaxOutput + 1},
		"negative output":  {Dir: root, Args: []string{"x"}, Output: -1},
	} {
		if _, err := c.runner().Run(t.Context(), cmd); bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if c.calls() > 0 {
		t.Error("they were sent")
	}
	_, err := c.runner().Run(t.Context(), exec.Command{Dir: root, Args: []string{"x"}, Env: map[string]string{"": ""}})
	if bdkerr.CodeOf(err) != bdkerr.InvalidRequest || !strings.Contains(err.Error(), "the variable = has no name") {
		t.Errorf("got %v", err)
	}
}

// TestFaults: what went wrong is said, and nothing is tried again that may have run.
func TestFaults(t *testing.T) {
	t.Parallel()
	status := func(code int, kind string) func(http.ResponseWriter, *http.Request, []byte) {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("X-Amzn-Errortype", kind)
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"Message":"no","Type":"%s"}`, kind)
		}
	}
	function := func(payload string) func(http.ResponseWriter, *http.Request, []byte) {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			_, _ = io.WriteString(w, payload)
		}
	}
	const maybe = "nothing is known of it, it may have run"
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, []byte)
		calls  int
		code   bdkerr.Code
		want   string
	}{
		"busy":          {status(429, "TooManyRequestsException"), 5, bdkerr.Unavailable, "try again"},
		"no such one":   {status(404, "ResourceNotFoundException"), 1, bdkerr.Internal, "was refused"},
		"not allowed":   {status(403, "AccessDeniedException"), 1, bdkerr.Internal, "was refused"},
		"a fault":       {status(500, "ServiceException"), 1, bdkerr.Internal, maybe},
		"a gateway":     {status(502, ""), 1, bdkerr.Internal, maybe},
		"out of time":   {function(`{"errorType":"Sandbox.Timedout","errorMessage":"Task timed out after 720.00 seconds"}`), 1, bdkerr.Internal, "Task timed out"},
		"out of memory": {function(`{"errorMessage":"Runtime exited with error: signal: killed"}`), 1, bdkerr.Internal, maybe},
		"no reason":     {function(`x`), 1, bdkerr.Internal, maybe},
		"cut off":       {func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) }, 1, bdkerr.Internal, maybe},
		"no JSON":       {func(w http.ResponseWriter, _ *http.Request, _ []byte) { _, _ = io.WriteString(w, "<html>") }, 1, bdkerr.Internal, maybe},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, nil)
			c.answer = tc.answer
			_, err := c.runner().Run(t.Context(), exec.Command{Dir: dir(t, nil), Args: []string{"x"}})
			if bdkerr.CodeOf(err) != tc.code || !strings.Contains(fmt.Sprint(err), tc.want) || c.calls() != tc.calls {
				t.Errorf("%d calls: %v", c.calls(), err)
			}
		})
	}
}

// TestBusyForAMoment: a command that was refused once is run once.
func TestBusyForAMoment(t *testing.T) {
	t.Parallel()
	runs := 0
	c := newCloud(t, func(context.Context, exec.Command) (exec.Result, error) {
		runs++
		return exec.Result{}, nil
	})
	answer := c.answer
	c.answer = func(w http.ResponseWriter, r *http.Request, event []byte) {
		if c.calls() > 1 {
			answer(w, r, event)
			return
		}
		w.Header().Set("X-Amzn-Errortype", "TooManyRequestsException")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	if _, err := c.runner().Run(t.Context(), exec.Command{Dir: dir(t, nil), Args: []string{"x"}}); err != nil || runs != 1 {
		t.Errorf("it ran %d times, %v", runs, err)
	}
}

// TestNobodyListens: a call that could not be sent may be made again.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	c := newCloud(t, nil)
	c.server.Close()
	_, err := c.runner().Run(t.Context(), exec.Command{Dir: dir(t, nil), Args: []string{"x"}})
	if bdkerr.CodeOf(err) != bdkerr.Unavailable {
		t.Errorf("got %v", err)
	}
}

// TestCallerLeaves: its error is that of its context, and what the command does then is not seen.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	began, leave := make(chan struct{}), make(chan struct{})
	c := newCloud(t, func(ctx context.Context, cmd exec.Command) (exec.Result, error) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > time.Hour {
			t.Errorf("the command ends at %s", end)
		}
		close(began)
		<-leave
		put(t, cmd.Dir, "late", []byte("x"))
		return exec.Result{}, nil
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	go func() {
		<-began
		cancel(reason)
	}()
	root := dir(t, nil)
	if _, err := c.runner().Run(ctx, exec.Command{Dir: root, Args: []string{"x"}}); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	close(leave)
	c.server.Close() // waits for the function
	if text(t, root, "late") != "" {
		t.Error("it is seen")
	}
}

// TestConformance: with child processes in the function.
func TestConformance(t *testing.T) {
	t.Parallel()
	exectest.Run(t, func(t *testing.T) exec.Runner {
		t.Helper()
		return newCloud(t, localexec.New(localexec.Options{}).Run).runner()
	})
}
