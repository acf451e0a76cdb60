package awsloop

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// function runs a deployed function the way Lambda does: one invocation at a time in a process, which is used again.
type function struct {
	arn, dir string
	env      []string
	limit    time.Duration
	log      *os.File

	mu   sync.Mutex
	all  []*environment
	idle []*environment
}

// function returns the function as it was deployed.
func (l *Loop) function(tb testing.TB, arn string) *function {
	tb.Helper()
	var deployed struct {
		Configuration struct {
			FunctionName, Handler string
			Timeout, MemorySize   int
			Environment           struct{ Variables map[string]string }
			LoggingConfig         struct{ LogGroup string }
		}
		Code struct{ Location string }
	}
	name := arn[strings.LastIndex(arn, ":")+1:]
	l.get(tb, "/2015-03-31/functions/"+name, &deployed)
	c := deployed.Configuration
	f := &function{arn: arn, dir: filepath.Join(l.dir, "function-"+c.Handler), limit: time.Duration(c.Timeout) * time.Second}
	l.unpack(tb, deployed.Code.Location, f.dir)
	f.env = []string{
		"PATH=/usr/bin:/bin", "LAMBDA_TASK_ROOT=" + f.dir, "_HANDLER=" + c.Handler, "AWS_LAMBDA_FUNCTION_NAME=" + c.FunctionName, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(c.MemorySize), "AWS_LAMBDA_LOG_GROUP_NAME=" + c.LoggingConfig.LogGroup, "AWS_LAMBDA_LOG_STREAM_NAME=front",
		"AWS_REGION=" + region, "AWS_DEFAULT_REGION=" + region, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL=" + l.through, mark + l.dir,
	}
	for _, vars := range []map[string]string{l.env, c.Environment.Variables} {
		for name, value := range vars {
			f.env = append(f.env, name+"="+value)
		}
	}
	log, err := os.OpenFile(l.logFile(), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	f.log = log
	return f
}

// unpack writes the archive of a function's code to a folder.
func (l *Loop) unpack(tb testing.TB, location, dir string) {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), "GET", location, nil)
	if err != nil {
		tb.Fatal(err)
	}
	res, err := (&http.Client{}).Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err == nil {
		err = os.CopyFS(dir, archive)
	}
	if err == nil {
		err = os.Chmod(filepath.Join(dir, "bootstrap"), 0o700)
	}
	if err != nil {
		tb.Fatalf("unpacking the code of a function: %v", err)
	}
}

// invoke passes an event to a process of the function and its answer to take, while it is written. It fails if the answer
// breaks off.
func (f *function) invoke(event []byte, take func(io.Reader) error) error {
	e, err := f.lease()
	if err != nil {
		return err
	}
	i := &invocation{event: event, answer: make(chan io.Reader, 1), deadline: time.Now().Add(f.limit)}
	timeout := time.AfterFunc(f.limit, e.kill)
	defer timeout.Stop()
	select {
	case e.next <- i:
	case <-e.done:
		return errors.New("the process ended before it asked for an event")
	}
	select {
	case answer := <-i.answer:
		err = take(answer)
	case <-e.done:
		err = take(strings.NewReader("")) // a bad gateway
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = append(f.idle, e)
	return err
}

// lease returns a process that waits for an event, or starts one.
func (f *function) lease() (*environment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.idle) > 0 {
		e := f.idle[len(f.idle)-1]
		f.idle = f.idle[:len(f.idle)-1]
		select {
		case <-e.done:
		default:
			return e, nil
		}
	}
	e := &environment{arn: f.arn, next: make(chan *invocation), done: make(chan struct{})}
	e.api = httptest.NewServer(e)
	e.process = exec.Command(filepath.Join(f.dir, "bootstrap")) // kill ends what was deployed
	e.process.Dir, e.process.Stdout, e.process.Stderr = f.dir, f.log, f.log
	e.process.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(e.api.URL, "http://")}, f.env...)
	separate(e.process)
	if err := e.process.Start(); err != nil {
		e.api.Close()
		return nil, fmt.Errorf("starting a function: %w", err)
	}
	go func() {
		_ = e.process.Wait() // it is killed
		close(e.done)
	}()
	f.all = append(f.all, e)
	return e, nil
}

func (f *function) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.all {
		e.kill()
		<-e.done
		e.api.CloseClientConnections()
		e.api.Close()
	}
	f.all, f.idle = nil, nil
	f.log.Close()
}

// environment is a process of a function, and the Runtime API it is served with.
type environment struct {
	arn     string
	api     *httptest.Server
	process *exec.Cmd
	next    chan *invocation
	done    chan struct{} // closed when the process has ended

	mu  sync.Mutex
	now *invocation // what the process works on
}

type invocation struct {
	event    []byte
	deadline time.Time
	answer   chan io.Reader
}

func (e *environment) kill() { killGroup(e.process) }

// ServeHTTP is the Runtime API.
func (e *environment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/invocation/next"):
		select {
		case i := <-e.next:
			e.mu.Lock()
			e.now = i
			e.mu.Unlock()
			h := w.Header()
			h.Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprintf("%x", i.deadline.UnixNano()))
			h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
			h.Set("Lambda-Runtime-Invoked-Function-Arn", e.arn)
			h.Set("Content-Type", "application/json")
			_, _ = w.Write(i.event) // a process that has gone is seen by the one that waits for the answer
		case <-e.done:
		case <-r.Context().Done():
		}
	case strings.HasSuffix(r.URL.Path, "/response"):
		read, write := io.Pipe()
		e.answer(read)
		_, err := io.Copy(write, r.Body)
		if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); err == nil && kind != "" {
			err = errors.New(kind)
		}
		_ = write.CloseWithError(err) // never fails
		w.WriteHeader(http.StatusAccepted)
	default: // an error, of an invocation or of the beginning
		e.answer(strings.NewReader(""))
		w.WriteHeader(http.StatusAccepted)
	}
}

// answer passes the answer on to the one that waits for it.
func (e *environment) answer(body io.Reader) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now != nil {
		e.now.answer <- body
		e.now = nil
	}
}
