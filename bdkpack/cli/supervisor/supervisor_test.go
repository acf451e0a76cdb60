//go:build unix

package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/cli/supervisor"
)

// TestMain lets the test binary be the program that is supervised, and a supervisor that is killed.
func TestMain(m *testing.M) {
	switch os.Getenv("FAKE") {
	case "":
		os.Exit(m.Run())
	case "supervisor":
		superviseUntilKilled()
	case "early exit":
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	case "never ready":
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		serve()
	default:
		serve()
	}
}

// serve answers GET with the name of the program and the process id; /crash ends the process.
func serve() {
	ln, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		panic(err)
	}
	terminated := make(chan os.Signal, 1)
	if os.Getenv("FAKE") != "stubborn" {
		signal.Notify(terminated, syscall.SIGTERM) // before it says that it is ready
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, os.Getenv("FAKE"), " ", os.Getpid())
	})
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	var open sync.WaitGroup
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		default:
		}
	}}
	served := make(chan struct{})
	go func() { _ = srv.Serve(ln); close(served) }()
	if _, err := os.NewFile(4, "ready").Write([]byte{1}); err != nil {
		panic(err)
	}
	if os.Getenv("FAKE") == "stubborn" {
		select {}
	}
	<-terminated
	// Shutdown would drop a request that it has not read yet: stop accepting, then answer what was accepted.
	srv.SetKeepAlivesEnabled(false)
	_ = ln.Close()
	<-served
	open.Wait()
	os.Exit(0)
}

// superviseUntilKilled is a supervisor in a process of its own.
func superviseUntilKilled() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		panic(err)
	}
	programs := make(chan supervisor.Program, 1)
	programs <- fake("one")
	err = supervisor.Run(context.Background(), socket, programs, &supervisor.Options{
		Notify: func(n supervisor.Notice) { fmt.Println(n.PID) },
	})
	panic(err)
}

func fake(name string) supervisor.Program {
	return supervisor.Program{Path: os.Args[0], Env: []string{"FAKE=" + name}}
}

// rig is a running supervisor.
type rig struct {
	t        *testing.T
	url      string
	programs chan supervisor.Program
	notices  chan supervisor.Notice
	output   *lockedBuffer
	stop     func()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func run(t *testing.T, opts supervisor.Options) *rig {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, url: "http://" + ln.Addr().String(), output: &lockedBuffer{},
		programs: make(chan supervisor.Program), notices: make(chan supervisor.Notice, 1000),
	}
	opts.Stderr = r.output
	opts.Notify = func(n supervisor.Notice) { r.notices <- n }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- supervisor.Run(ctx, socket, r.programs, &opts) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = socket.Close()
		_ = ln.Close()
	})
	t.Cleanup(r.stop)
	return r
}

// want waits for the next notice, which must be of the kind.
func (r *rig) want(kind supervisor.Kind) supervisor.Notice {
	r.t.Helper()
	select {
	case n := <-r.notices:
		if n.Kind != kind {
			r.t.Fatalf("notice %s (%v), want %s", n.Kind, n.Err, kind)
		}
		return n
	case <-time.After(20 * time.Second):
		r.t.Fatalf("no notice, want %s", kind)
	}
	return supervisor.Notice{}
}

func get(c *http.Client, method, url string) (string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader("body"))
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return "", errors.Join(err, errors.New(res.Status))
	}
	return string(b), err
}

// answer returns the name of the program that answers.
func (r *rig) answer() string {
	r.t.Helper()
	text, err := get(fresh(), http.MethodGet, r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	name, _, _ := strings.Cut(text, " ")
	return name
}

// fresh returns a client that opens a connection for each request.
func fresh() *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func eventuallyGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !gone(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestNoRequestFailsWhileProgramsAreReplaced(t *testing.T) {
	t.Parallel()
	r := run(t, supervisor.Options{})
	r.programs <- fake("p0")
	r.want(supervisor.Ready)

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := fresh()
			for ctx.Err() == nil {
				if _, err := get(c, http.MethodPost, r.url); err != nil {
					t.Errorf("a request failed: %v; output %s", err, r.output)
					return
				}
			}
		})
	}
	for i := range 10 {
		r.programs <- fake("p" + strconv.Itoa(i+1))
		r.want(supervisor.Ready)
	}
	cancel()
	wg.Wait()
	// The old process may still accept until its SIGTERM arrives.
	for deadline := time.Now().Add(10 * time.Second); r.answer() != "p10"; {
		if time.Now().After(deadline) {
			t.Fatalf("%s answers, want p10", r.answer())
		}
	}
}

func TestProgramThatDoesNotStartLeavesTheOldOneServing(t *testing.T) {
	t.Parallel()
	r := run(t, supervisor.Options{ReadyTimeout: 300 * time.Millisecond})
	r.programs <- supervisor.Program{Path: "/no/such/program"}
	r.want(supervisor.Rejected)
	r.programs <- fake("old")
	r.want(supervisor.Ready)
	for _, bad := range []supervisor.Program{fake("early exit"), fake("never ready"), {Path: "/no/such/program"}} {
		r.programs <- bad
		if n := r.want(supervisor.Rejected); n.Err == nil {
			t.Error("the notice does not say why")
		}
		if got := r.answer(); got != "old" {
			t.Errorf("%s answers, want old", got)
		}
	}
	if !strings.Contains(r.output.String(), "cannot start") {
		t.Errorf("the output of the program is not shown, only %q", r.output)
	}
}

func TestCrashedProgramIsStartedAgainAfterAGrowingWait(t *testing.T) {
	t.Parallel()
	r := run(t, supervisor.Options{MinWait: time.Millisecond})
	r.programs <- fake("one")
	r.want(supervisor.Ready)
	var waits []time.Duration
	for range 3 {
		if _, err := get(fresh(), http.MethodGet, r.url+"/crash"); err == nil {
			t.Fatal("the program did not crash")
		}
		n := r.want(supervisor.Crashed)
		if n.Err == nil || n.Err.Error() != "exit status 7" {
			t.Errorf("got %v, want exit status 7", n.Err)
		}
		waits = append(waits, n.Wait)
		if got := r.answer(); got != "one" { // waits in the socket until the program is back
			t.Errorf("%s answers, want one", got)
		}
		r.want(supervisor.Ready)
	}
	if waits[0] != time.Millisecond || waits[1] != 2*time.Millisecond || waits[2] != 4*time.Millisecond {
		t.Errorf("waits %v, want them doubled from 1 ms", waits)
	}
}

func TestTimeUntilReadyCountsFromWhenAProgramWasWanted(t *testing.T) {
	t.Parallel()
	r := run(t, supervisor.Options{MinWait: time.Millisecond})
	slow := fake("one")
	slow.Wanted = time.Now().Add(-time.Hour)
	r.programs <- slow
	if n := r.want(supervisor.Ready); n.Took < time.Hour {
		t.Errorf("a program that was built for an hour took %s", n.Took)
	}
	if _, err := get(fresh(), http.MethodGet, r.url+"/crash"); err == nil {
		t.Fatal("the program did not crash")
	}
	r.want(supervisor.Crashed)
	if n := r.want(supervisor.Ready); n.Took > time.Minute {
		t.Errorf("started again after a crash it took %s", n.Took)
	}
}

func TestNewProgramTakesOverAtOnceAfterACrash(t *testing.T) {
	t.Parallel()
	r := run(t, supervisor.Options{MinWait: time.Hour, MaxWait: time.Hour})
	r.programs <- fake("bad")
	r.want(supervisor.Ready)
	_, _ = get(fresh(), http.MethodGet, r.url+"/crash")
	r.want(supervisor.Crashed)
	r.programs <- fake("mended")
	r.want(supervisor.Ready)
	if got := r.answer(); got != "mended" {
		t.Errorf("%s answers, want mended", got)
	}
}

func TestProgramThatDoesNotFinishIsKilled(t *testing.T) {
	t.Parallel()
	r := run(t, supervisor.Options{DrainTimeout: 50 * time.Millisecond, StopTimeout: 50 * time.Millisecond})
	r.programs <- fake("stubborn")
	old := r.want(supervisor.Ready)
	r.programs <- fake("stubborn")
	last := r.want(supervisor.Ready)
	eventuallyGone(t, old.PID)
	r.stop()
	if !gone(last.PID) {
		t.Errorf("process %d outlived the supervisor", last.PID)
	}
}

func TestNothingIsLeftWhenTheSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{"FAKE=supervisor"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventuallyGone(t, pid)
}
