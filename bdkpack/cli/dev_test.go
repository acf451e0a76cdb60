//go:build unix

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// fakeAgent is an agent program. It serves the text of the file bot/agent.go in the agent's folder, as it was at its start.
func fakeAgent() int {
	c, err := launch.Decode(os.Getenv(launch.Env))
	if err != nil {
		return 9
	}
	if c.Command == "run" {
		fmt.Println("ran")
		code, _ := strconv.Atoi(c.Message)
		return code
	}
	if c.Command == "call" {
		fmt.Fprintln(os.Stderr, c.Tool)
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			return 9
		}
		return 0
	}
	if c.Command == "info" {
		fmt.Println(`{"agents":[{"slug":"demo","model":"openai:x","tools":[{"name":"greet","effect":"read","source":"bot/tools/greet.go","error":"one\ntwo"},` +
			`{"name":"tidy","effect":"write","execution":"agent","approval":"always","source":"bot/tools/tidy.go","description":"Tidies."}],` +
			`"harness":["read","skill"],"result":{"type":"object"},"seed":"bot/sandbox/workspace",` +
			`"skills":[{"name":"deploy","description":"Use when it\ngoes out.","source":"bot/skills/deploy/SKILL.md"}],` +
			`"subagents":[{"name":"own","description":"Has a model.","model":"openai:y","source":"bot/subagents/own/agent.go"},` +
			`{"name":"plain","description":"Has none.","source":"bot/subagents/plain/agent.go"}],` +
			`"connections":[{"name":"far","description":"Paints.","transport":"http","advertised":true,"approval":"always","variables":["A","B"],"source":"bot/mcp-connections/far.go"},` +
			`{"name":"near","transport":"agent","agent":"code-review","advertised":false,"approval":"never","variables":[],"source":"bot/mcp-connections/near.go","error":"wrong"}]}]}`)
		return 1
	}
	text, err := os.ReadFile(filepath.Join(c.Roots["demo"], "bot", "agent.go"))
	if err != nil || !c.Listener || !c.Dev || c.StateRoot == "" {
		return 9
	}
	ln, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		return 9
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(ln) }()
	if _, err := os.NewFile(4, "ready").Write([]byte{1}); err != nil {
		return 9
	}
	<-terminated
	_ = srv.Shutdown(context.Background())
	return 0
}

// screen is the output of dev. Tests wait for what it shows.
type screen struct {
	mu      sync.Mutex
	text    string
	changed chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(p)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

// want waits until the screen shows text, and removes everything up to it.
func (s *screen) want(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		_, rest, found := strings.Cut(s.text, text)
		if found {
			s.text = rest
		}
		shown, changed := s.text, s.changed
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("dev does not show %q, but:\n%s", text, shown)
		}
	}
}

// devRig is a running `bdk dev` whose builds are fake: bot/agent.go "compiles" unless it contains "mistake".
type devRig struct {
	t      *testing.T
	dir    string
	url    string
	screen *screen
	builds atomic.Int64
	stop   func() error
}

func startDev(t *testing.T, text string) *devRig {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bot"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := &devRig{t: t, dir: dir, screen: &screen{changed: make(chan struct{})}}
	r.edit(text)
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte(`-d '{"message":"Review it"}'`), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	r.url = "http://127.0.0.1:" + strconv.Itoa(port)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- cli.Dev(ctx, &cli.IO{
			In: strings.NewReader(""), Out: r.screen, Err: r.screen, Clock: clock.System{},
		}, dir, port, r.build)
	}()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func (r *devRig) build(context.Context) (*maingen.Program, *project.Workspace, diag.List, error) {
	r.builds.Add(1)
	ws := &project.Workspace{
		Dir:    r.dir,
		Agents: []project.Agent{{Slug: "demo", Dir: r.dir}},
		Inputs: project.Inputs{Dirs: []string{filepath.Join(r.dir, "bot")}, Trees: []string{filepath.Join(r.dir, "bot")}},
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "bot", "agent.go"))
	switch string(text) {
	case "":
		return nil, ws, nil, errors.Join(errors.New("no go command"), err)
	case "does not start":
		return &maingen.Program{Path: "/no/such/program", Workspace: ws, Reused: true}, ws, nil, nil
	}
	if strings.Contains(string(text), "mistake") {
		return nil, ws, diag.List{{Code: "BDK900", Message: "mistake"}}, nil
	}
	return &maingen.Program{Path: os.Args[0], Workspace: ws, Reused: true}, ws, nil, nil
}

func (r *devRig) edit(text string) {
	r.t.Helper()
	// as editors do: another file takes its place
	path := filepath.Join(r.dir, "bot", "agent.go")
	if err := errors.Join(os.WriteFile(path+"~", []byte(text), 0o600), os.Rename(path+"~", path)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *devRig) get(path string) (string, error) {
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Get(r.url + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func (r *devRig) wantAnswer(want string) {
	r.t.Helper()
	var got string
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if got, err = r.get("/"); err == nil && got == want {
			return
		}
	}
	r.t.Fatalf("got %q, %v, want %q", got, err, want)
}

func TestDevServesWhatWasEditedAndKeepsTheLastGoodBuild(t *testing.T) {
	t.Parallel()
	r := startDev(t, "one")
	r.screen.want(t, "demo is served at "+r.url+"/demo\n")
	r.screen.want(t, "curl -s "+r.url+`/demo/v1/session -H 'content-type: application/json' -d '{"message":"Review it"}'`)
	r.screen.want(t, "curl -N "+r.url+"/demo/v1/session/SESSION_ID/stream")
	r.wantAnswer("one")

	r.edit("two")
	r.screen.want(t, "bot/agent.go changed")
	r.screen.want(t, "ready after")
	r.wantAnswer("two")

	r.edit("a mistake")
	r.screen.want(t, "error[BDK900]: mistake")
	r.screen.want(t, "the last good build keeps serving")
	r.wantAnswer("two")

	r.edit("")
	r.screen.want(t, "no go command")
	r.screen.want(t, "the last good build keeps serving")
	r.wantAnswer("two")

	r.edit("does not start")
	r.screen.want(t, "the new program did not become ready: ")
	r.screen.want(t, "the last good build keeps serving")
	r.wantAnswer("two")

	r.edit("three")
	r.screen.want(t, "ready after")
	r.wantAnswer("three")
}

func TestDevStartsACrashedProgramAgain(t *testing.T) {
	t.Parallel()
	r := startDev(t, "one")
	r.screen.want(t, "Ctrl-C stops")
	if _, err := r.get("/crash"); err == nil {
		t.Fatal("the program did not crash")
	}
	r.screen.want(t, "the agent program ended: exit status 7; starting the last good one in 200ms")
	r.wantAnswer("one")
}

func TestDevLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := startDev(t, "one")
	r.screen.want(t, "Ctrl-C stops")
	text, err := r.get("/pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("dev ended with %v, want that it was interrupted", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	if _, err := net.DialTimeout("tcp", strings.TrimPrefix(r.url, "http://"), time.Second); err == nil {
		t.Error("the port is still open")
	}
}

func TestDevWithoutAGoodBuildWaitsForAChange(t *testing.T) {
	t.Parallel()
	r := startDev(t, "mistake")
	r.screen.want(t, "error[BDK900]: mistake")
	r.screen.want(t, "waiting for a change")
	r.edit("mended")
	r.screen.want(t, "demo is served at")
	r.wantAnswer("mended")
}

func TestDevWithoutAProgramThatStartsWaitsForAChange(t *testing.T) {
	t.Parallel()
	r := startDev(t, "does not start")
	r.screen.want(t, "the new program did not become ready: ")
	r.screen.want(t, "waiting for a change")
	r.edit("a mistake")
	r.screen.want(t, "error[BDK900]: mistake")
	r.screen.want(t, "waiting for a change")
	r.edit("mended")
	r.screen.want(t, "demo is served at")
	r.wantAnswer("mended")
}

// What an agent or its log writes must not make dev build again, least of all for ever.
func TestDevRestartsForNothingButWhatTheProgramIsBuiltFrom(t *testing.T) {
	t.Parallel()
	r := startDev(t, "one")
	r.screen.want(t, "Ctrl-C stops")
	bot := filepath.Join(r.dir, "bot")
	for _, path := range []string{
		filepath.Join(r.dir, "dev.log"), filepath.Join(r.dir, "README.md"), filepath.Join(r.dir, "out.go"),
		filepath.Join(bot, "approvals.jsonl"), filepath.Join(bot, ".agent.go.swp"), filepath.Join(bot, "agent.go~"),
		filepath.Join(bot, ".#agent.go"), filepath.Join(bot, "#agent.go#"), filepath.Join(bot, "agent_test.go"),
	} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.edit("one") // the same again
	r.edit("two")
	r.screen.want(t, "bot/agent.go changed")
	r.screen.want(t, "ready after")
	r.wantAnswer("two")
	if builds := r.builds.Load(); builds != 3 { // the first time twice: once before there was a watch
		t.Errorf("%d builds, want 3", builds)
	}

	if err := os.WriteFile(filepath.Join(bot, "notes.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.screen.want(t, "bot/notes.md changed")
	r.screen.want(t, "ready after")
}
