package localhost_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/host/localhost"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// The test binary is also an agent program: with this variable set it is one instead of testing.
const program = "LOCALHOST_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		os.Exit(localhost.Main(projects()))
	}
	os.Exit(m.Run())
}

const script = `
rules:
  - when: {toolResult: wait}
    text: "rested"
  - when: {message: "^wait"}
    text: "waiting"
    calls: [{tool: wait, args: {ms: 30000}}]
  - when: {message: "^rest"}
    calls: [{tool: wait, args: {ms: 300}}]
  - when: {message: "^fail"}
    error: {kind: invalid, message: "not like this"}
  - text: "hello"
`

type waitInput struct {
	MS int `json:"ms"`
}

// wait waits in one process only: in any other it has already been done.
func wait(ctx context.Context, call *bdk.Call, in waitInput) (string, error) {
	f, err := os.OpenFile(filepath.Join(call.StateRoot, call.ID), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "done before", nil //nolint:nilerr // by the process that is dead
	}
	_ = f.Close()
	select {
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return "waited", nil
	case <-ctx.Done():
		_ = os.Remove(f.Name())
		return "", context.Cause(ctx)
	}
}

// trail writes down the events it is told of sessions with a title, one file for each. It takes its time with a message that says so.
func trail(ctx context.Context, h *bdk.HookContext, e bdk.Event) error {
	if h.Session.Title == "" {
		return nil
	}
	name := filepath.Join(h.StateRoot, fmt.Sprintf("%s %04d", h.Session.Title, e.Index))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return os.WriteFile(name+" again", nil, 0o600)
	}
	if e.Type == bdk.EventTurnStarted && h.Session.Title == "slow" {
		select {
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
		}
	}
	return f.Close()
}

func projects() []bdk.Project {
	return []bdk.Project{{
		Slug: "demo", Agent: bdk.Agent{Name: "Demo", Model: "scripted:model.yaml"}, Instructions: "Wait.",
		Hooks: []bdk.NamedHook{{Name: "trail", Hook: bdk.DefineHook(bdk.HookSpec{}, bdk.OnAny(trail))}},
		Tools: []bdk.NamedTool{{Name: "wait", Source: "bot/tools/wait.go", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Wait.", Effect: bdk.Read}, wait)}},
	}}
}

// place returns a folder with the script and a state root in it.
func place(t *testing.T) (dir string, config launch.Config) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, launch.Config{StateRoot: filepath.Join(dir, "state"), Roots: map[string]string{"demo": dir}, Banner: "{url}\n"}
}

// child returns a process of the agent program, not started. It works in dir.
func child(t *testing.T, dir string, config launch.Config, env ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "BDK_MODEL=", program+"=1", launch.Env+"="+string(raw)), env...)
	out, errs = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, errs
	return cmd, out, errs
}

func TestRunWritesTheReply(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		message, out, errs string
		code               int
	}{
		{message: "hi", out: "hello\n"},
		{message: "rest", out: "rested\n", errs: `wait {"ms":300}`},
		{message: "fail", errs: "the turn failed: the model did not answer", code: 1},
	} {
		t.Run(tc.message, func(t *testing.T) {
			t.Parallel()
			dir, config := place(t)
			config.Command, config.Message = "run", tc.message
			cmd, out, errs := child(t, dir, config)
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != tc.code || out.String() != tc.out || !strings.Contains(errs.String(), tc.errs) {
				t.Errorf("exit code %d, output %q, errors %q; want %d, %q, %q", code, out, errs, tc.code, tc.out, tc.errs)
			}
			if strings.Contains(errs.String(), "error: ") {
				t.Errorf("the failure is told twice: %s", errs)
			}
		})
	}
}

func TestMistakesAreToldInALine(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	for _, tc := range []struct {
		name   string
		change func(dir string, c *launch.Config)
		env    string
		code   int
		want   string
	}{
		{name: "no launch", env: launch.Env + "=", code: 2, want: "started by the bdk command"},
		{name: "a launch of another version", env: launch.Env + "={", code: 1, want: "reading BDK_LAUNCH"},
		{name: "an unknown command", change: func(_ string, c *launch.Config) { c.Command = "dance" }, code: 1, want: `unknown command "dance"`},
		{name: "a port in use", change: func(_ string, c *launch.Config) { c.Port = port }, code: 1, want: "in use by another program: stop it, or choose another --port"},
		{name: "no state root", change: func(_ string, c *launch.Config) { c.StateRoot = "" }, code: 1, want: "no state root"},
		{name: "a state root that cannot be", change: func(dir string, c *launch.Config) { c.StateRoot = filepath.Join(dir, "model.yaml") }, code: 1, want: "model.yaml"},
		{name: "no script", change: func(_ string, c *launch.Config) { c.Roots["demo"] += "/none" }, code: 1, want: "agent demo: opening model scripted:model.yaml: reading script"},
		{name: "a bad model in the environment", env: "BDK_MODEL=gpt", code: 1, want: "opening model gpt"},
		{name: "an empty token", change: func(_ string, c *launch.Config) { c.BearerTokens = []string{"ann:"} }, code: 1, want: "bearer token 1"},
		{name: "what is no origin", change: func(_ string, c *launch.Config) { c.Origins = []string{"app.example.com"} }, code: 1, want: `the origin "app.example.com" does not begin with`},
		{name: "an unknown agent", change: func(_ string, c *launch.Config) { c.Command, c.Agent = "run", "other" }, code: 1, want: `no agent "other": choose one of [demo]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir, config := place(t)
			if tc.change != nil {
				tc.change(dir, &config)
			}
			cmd, _, errs := child(t, dir, config, tc.env)
			_ = cmd.Run()
			text := strings.TrimSpace(errs.String())
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(text, tc.want) || strings.Contains(text, "\n") {
				t.Errorf("exit code %d, %q; want %d and %q in one line", code, text, tc.code, tc.want)
			}
		})
	}
}

func TestInfoDescribesTheAgents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := localhost.Program{Projects: projects(), Config: launch.Config{Command: "info"}, Getenv: func(string) string { return "" }, Stdout: &out, Stderr: io.Discard}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Agents []struct {
			Slug, Name, Model string
			Tools             []struct{ Name, Source string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Agents) != 1 {
		t.Fatalf("got %s, error %v", out.Bytes(), err)
	}
	a := got.Agents[0]
	if a.Slug != "demo" || a.Name != "Demo" || a.Model != "scripted:model.yaml" || len(a.Tools) != 1 || a.Tools[0].Source != "bot/tools/wait.go" {
		t.Errorf("got %+v", a)
	}
}

func TestPagesOfConfiguredOriginsReadAnswers(t *testing.T) {
	t.Parallel()
	_, config := place(t)
	config.Origins = []string{"https://app.example.com"}
	h := embed(t, config)
	for origin, want := range map[string]string{"https://app.example.com": "https://app.example.com", "https://evil.example": ""} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/v1/info", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := res.Header.Get("Access-Control-Allow-Origin"); res.StatusCode != 401 || got != want {
			t.Errorf("%s: got %d, readable by %q; want 401 and %q: pages are no callers on this machine", origin, res.StatusCode, got, want)
		}
	}
}

// A script that BDK_MODEL names is looked for where the command was run, one that the agent names in its folder.
func TestScriptsAreFound(t *testing.T) {
	t.Parallel()
	dir, config := place(t)
	config.Command, config.Message = "run", "hi"
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "mine.yaml"), []byte("rules: [{text: mine}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{"BDK_MODEL=": "hello\n", "BDK_MODEL=scripted:mine.yaml": "mine\n", "BDK_MODEL=scripted:" + filepath.Join(dir, "model.yaml"): "hello\n"} {
		cmd, out, errs := child(t, work, config, env)
		if err := cmd.Run(); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v, %s; want %q", env, out, err, errs, want)
		}
	}
}

// host is a running host, in a process of its own or in this one.
type host struct {
	url   string       // of the agent
	token string       // bearer
	stop  func() error // ends it in order
	kill  func()
}

// start runs a host in a process of its own.
func start(t *testing.T, dir string, config launch.Config) host {
	t.Helper()
	cmd, _, errs := child(t, dir, config)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the host did not start: %s", errs)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	end := func(signal os.Signal) error {
		_ = cmd.Process.Signal(signal)
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = end(syscall.SIGKILL) })
	return host{url: strings.TrimSpace(line) + "/demo", stop: func() error { return end(syscall.SIGTERM) }, kill: func() { _ = end(syscall.SIGKILL) }}
}

// embed runs a host in this process, with the agents of the others if none are given.
func embed(t *testing.T, config launch.Config, agents ...bdk.Project) host {
	t.Helper()
	if agents == nil {
		agents = projects()
	}
	out, banner := io.Pipe()
	p := localhost.Program{Projects: agents, Config: config, Getenv: func(string) string { return "" }, Stdout: banner, Stderr: io.Discard}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		err := p.Run(ctx)
		_ = banner.CloseWithError(io.EOF)
		ended <- err
	}()
	stop := func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(stop())
	}
	return host{url: strings.TrimSpace(line) + "/" + agents[0].Slug, stop: stop}
}

type accepted struct{ SessionID, TurnID, ContinuationToken string }

// begin says something in a new session with a title.
func (h host) begin(t *testing.T, title, message string) accepted {
	t.Helper()
	return h.send(t, "/v1/session", map[string]string{"message": message, "title": title})
}

// post says something: to a session, or in a new one.
func (h host) post(t *testing.T, session accepted, message string) accepted {
	t.Helper()
	path, body := "/v1/session", map[string]string{"message": message}
	if session.SessionID != "" {
		path, body["continuationToken"] = path+"/"+session.SessionID, session.ContinuationToken
	}
	return h.send(t, path, body)
}

func (h host) send(t *testing.T, path string, body map[string]string) accepted {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+h.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var acc accepted
	if err := json.NewDecoder(res.Body).Decode(&acc); err != nil || res.StatusCode != 202 {
		t.Fatalf("got %d, error %v", res.StatusCode, err)
	}
	return acc
}

// follow returns the stream of a session.
func (h host) follow(t *testing.T, session accepted) io.ReadCloser {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/v1/session/"+session.SessionID+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("the stream: %v, %v", res, err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res.Body
}

// until reads a stream up to an event of a turn and returns its types.
func until(t *testing.T, stream io.Reader, turnID string, last event.Type) (seen []event.Event) {
	t.Helper()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e)
		if e.TurnID == turnID && e.Type == event.TypeTurnFailed && last == event.TypeTurnCompleted {
			t.Fatalf("the turn failed: %s", e.Data)
		}
		if e.TurnID == turnID && e.Type == last {
			return seen
		}
	}
	t.Fatalf("the stream ended after %d events without %s", len(seen), last)
	return nil
}

// Two hosts on one state root serve the same sessions, live.
func TestTwoHostsServeTheSameSessions(t *testing.T) {
	t.Parallel()
	dir, config := place(t)
	one, two := start(t, dir, config), embed(t, config)
	acc := one.post(t, accepted{}, "rest")
	far := until(t, two.follow(t, acc), acc.TurnID, event.TypeTurnCompleted)
	near := until(t, one.follow(t, acc), acc.TurnID, event.TypeTurnCompleted)
	if diff := cmp.Diff(near, far); diff != "" {
		t.Errorf("the host that ran the turn -, the other one +:\n%s", diff)
	}
	if acc = two.post(t, acc, "rest again"); !strings.HasPrefix(acc.TurnID, "turn_") {
		t.Errorf("got %+v", acc)
	}
	until(t, one.follow(t, acc), acc.TurnID, event.TypeTurnStarted)
	// A message to the host that does not run the turn ends it all the same.
	next := one.post(t, acc, "hi")
	seen := until(t, one.follow(t, acc), next.TurnID, event.TypeTurnCompleted)
	ends := map[string]int{}
	for _, e := range seen[len(far):] {
		if e.Type == event.TypeTurnFailed || e.Type == event.TypeTurnCompleted {
			ends[e.TurnID]++
		}
	}
	if diff := cmp.Diff(map[string]int{acc.TurnID: 1, next.TurnID: 1}, ends); diff != "" {
		t.Errorf("ends of turns, want -, got +:\n%s", diff)
	}
}

// The turns of a host that is killed go on in the one beside it, at once.
func TestTurnsOfAKilledHostMove(t *testing.T) {
	t.Parallel()
	dir, config := place(t)
	one, two := start(t, dir, config), embed(t, config)
	acc := one.post(t, accepted{}, "wait")
	stream := two.follow(t, acc)
	var begun []string
	for i := 0; len(begun) == 0 && i < 5000; i++ { // until the tool has left its mark
		time.Sleep(time.Millisecond)
		begun, _ = filepath.Glob(filepath.Join(config.StateRoot, "agents", "demo", "call_*"))
	}
	begin := time.Now()
	one.kill()
	until(t, stream, acc.TurnID, event.TypeTurnCompleted)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the turn ended after %s", took)
	}
}

// A session is removed some time after its last turn, but not before.
func TestSessionTTL(t *testing.T) {
	t.Parallel()
	_, config := place(t)
	agents := projects()
	agents[0].Agent.SessionTTL = 100 * time.Millisecond
	h := embed(t, config, agents...)
	acc := h.post(t, accepted{}, "rest") // for longer
	until(t, h.follow(t, acc), acc.TurnID, event.TypeTurnCompleted)
	for i := range 1000 {
		req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/v1/session/"+acc.SessionID+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusNotFound {
			return
		}
		if res.StatusCode != http.StatusOK || i == 999 {
			t.Fatalf("got %s", res.Status)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Hooks are told each event once and in order. What they were not told when their process is killed, nobody is told later.
func TestHooksOfAKilledHost(t *testing.T) {
	t.Parallel()
	dir, config := place(t)
	one := start(t, dir, config)
	told := func(title string) int {
		all, err := filepath.Glob(filepath.Join(config.StateRoot, "agents", "demo", title+" *"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	wait := func(title string, n int) {
		t.Helper()
		for i := 0; told(title) < n; i++ {
			if i == 5000 {
				t.Fatalf("the hook was told %d events of %s, want %d", told(title), title, n)
			}
			time.Sleep(time.Millisecond)
		}
	}
	quick := one.begin(t, "quick", "hi")
	all := until(t, one.follow(t, quick), quick.TurnID, event.TypeTurnCompleted)
	wait("quick", len(all)+1) // and session.waiting
	slow := one.begin(t, "slow", "hi")
	until(t, one.follow(t, slow), slow.TurnID, event.TypeTurnCompleted)
	wait("slow", 3) // the hook holds it there
	one.kill()
	two := start(t, dir, config)
	two.begin(t, "again", "hi")
	wait("again", len(all)+1)
	if n := told("quick"); n != len(all)+1 {
		t.Errorf("%d events of the first session were told, of %d", n, len(all)+1)
	}
	if n := told("slow"); n != 3 {
		t.Errorf("%d events were told after the restart", n-3)
	}
}

// What commands of a killed host have left is killed by the next one.
func TestCommandsOfAKilledHost(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there alone the environment of other processes can be read")
	}
	dir, config := place(t)
	left := exec.CommandContext(t.Context(), "sleep", "600")
	home := filepath.Join(config.StateRoot, "tmp", "1-dead", "bdk-run-1", "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	left.Env = []string{"HOME=" + home}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	start(t, dir, config)
	if err := left.Wait(); left.ProcessState.String() != "signal: killed" {
		t.Errorf("got %v, %v", left.ProcessState, err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(home))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its files stay: %v", err)
	}
}

// SIGTERM ends streams cleanly and the process soon, though a turn waits for long.
func TestTerminationEndsStreams(t *testing.T) {
	t.Parallel()
	dir, config := place(t)
	h := start(t, dir, config)
	idle := h.post(t, accepted{}, "hi")
	streams := []io.Reader{h.follow(t, idle), h.follow(t, idle), h.follow(t, idle)}
	for _, s := range streams {
		until(t, s, idle.TurnID, event.TypeTurnCompleted)
	}
	begin := time.Now()
	if err := h.stop(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("SIGTERM took %s", took)
	}
	for _, s := range streams {
		if rest, err := io.ReadAll(s); err != nil {
			t.Errorf("a stream was cut: %q, %v", rest, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(config.StateRoot, "hosts")); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// A host whose database is taken away must not go on accepting what it cannot keep.
func TestHostEndsWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	_, config := place(t)
	out, banner := io.Pipe()
	p := localhost.Program{Projects: projects(), Config: config, Getenv: func(string) string { return "" }, Stdout: banner, Stderr: io.Discard}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(config.StateRoot, "bdk.db")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("the host ended with %v", err)
	}
}

// A turn that does not come to a good point is cut off, and goes on after the next start.
func TestTerminationDuringALongTool(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: waits until a turn is cut off")
	}
	dir, config := place(t)
	h := start(t, dir, config)
	acc := h.post(t, accepted{}, "wait")
	until(t, h.follow(t, acc), acc.TurnID, event.TypeActionsRequested)
	begin := time.Now()
	if err := h.stop(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("SIGTERM took %s", took)
	}
	next := start(t, dir, config)
	until(t, next.follow(t, acc), acc.TurnID, event.TypeActionsRequested)
	said := next.post(t, acc, "hi")
	until(t, next.follow(t, acc), said.TurnID, event.TypeTurnCompleted)
}

// A state root that the first version wrote: the turn that was cut then is settled now, and the session goes on.
func TestStateOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	dir, config := place(t)
	old, err := os.ReadFile("../../session/sqlitesession/testdata/v1.db")
	if err == nil {
		err = os.Mkdir(config.StateRoot, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(config.StateRoot, "bdk.db"), old, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	agents := projects()
	agents[0].Slug = "golden"
	config.Roots = map[string]string{"golden": dir}
	config.BearerTokens = []string{"alice:secret"}
	h := embed(t, config, agents...)
	h.token = "secret"
	session := accepted{SessionID: "ses_id12", TurnID: "turn_id13", ContinuationToken: "http:id14"}
	log := until(t, h.follow(t, session), session.TurnID, event.TypeTurnFailed) // by its limit: it began long ago
	if log[0].At.Year() != 2026 || log[0].Type != event.TypeSessionStarted {
		t.Errorf("the log begins with %+v", log[0])
	}
	next := h.post(t, session, "hi")
	until(t, h.follow(t, session), next.TurnID, event.TypeTurnCompleted)
}
