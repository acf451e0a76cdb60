package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

// shipped is the command, built when it is needed first.
var shipped struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shipped.dir != "" {
		_ = os.RemoveAll(shipped.dir)
	}
	os.Exit(code)
}

// build returns the path of the command.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: builds the bdk command and has it build an agent")
	}
	shipped.once.Do(func() {
		if shipped.dir, shipped.err = os.MkdirTemp("", "bdk-e2e-"); shipped.err != nil { //nolint:usetesting // it outlives the test
			return
		}
		out, err := exec.Command("go", "build", "-o", filepath.Join(shipped.dir, "bdk"), "../../bdkpack/cmd/bdk").CombinedOutput()
		if err != nil {
			shipped.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if shipped.err != nil {
		t.Fatalf("building the command: %v", shipped.err)
	}
	return filepath.Join(shipped.dir, "bdk")
}

// server is a process of bdk serve.
type server struct {
	cmd   *exec.Cmd
	url   string        // of the host
	ended chan struct{} // closed when the process has
	code  int           // its exit code, once it has
	log   output
}

// output collects what a process writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// launchServer runs bdk serve, with its script unless the environment names another model.
func launchServer(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	s := &server{ended: make(chan struct{})}
	s.cmd = exec.CommandContext(t.Context(), build(t), append([]string{"serve"}, args...)...)
	s.cmd.Env = append(append(os.Environ(), "BDK_MODEL=scripted:"+script), env...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		s.code = s.cmd.ProcessState.ExitCode()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.signal(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the host wrote:\n%.3000s", s.log.String())
		}
	})
	return s
}

// serve runs bdk serve on a free port until it serves.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	return serveWith(t, nil, args...)
}

func serveWith(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	s := launchServer(t, env, append([]string{"--port", "0"}, args...)...)
	deadline := time.After(3 * time.Minute) // the first one is compiled
	for s.url == "" {
		for line := range strings.Lines(s.log.String()) {
			if _, url, ok := strings.Cut(strings.TrimSpace(line), " is served at "); ok && strings.HasSuffix(line, "\n") {
				s.url = strings.Join(strings.SplitN(url, "/", 4)[:3], "/")
			}
		}
		select {
		case <-s.ended:
			t.Fatalf("the host ended:\n%s", s.log.String())
		case <-deadline:
			t.Fatalf("the host does not serve:\n%s", s.log.String())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return s
}

// signal sends a signal that ends the process and waits for the end.
func (s *server) signal(sig os.Signal) {
	_ = s.cmd.Process.Signal(sig)
	<-s.ended
}

func (s *server) target(slug string) suite.Target { return target(s.url, slug) }
