package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// TestMain lets the test binary be the bdk command of the scripts and the agent program of the other tests.
func TestMain(m *testing.M) {
	if os.Getenv(launch.Env) != "" {
		os.Exit(fakeAgent())
	}
	testscript.Main(m, map[string]func(){"bdk": func() { os.Exit(cli.Main()) }})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// the caches of the machine, so that nothing is downloaded and little compiled
	out, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	var caches map[string]string
	if err := json.Unmarshal(out, &caches); err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(http.HandlerFunc(fakeCloudWatch))
	t.Cleanup(cloud.Close)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			for key, value := range caches {
				e.Setenv(key, value)
			}
			e.Setenv("AWS_ENDPOINT_URL", cloud.URL)
			e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			e.Setenv("CHECKOUT", checkout)
			e.Setenv("GOPROXY", "off")
			e.Setenv("GOWORK", "off")
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv("PORT", strconv.Itoa(freePort(t)))
			return nil
		},
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// bdk runs the command in this process. Env adds to an otherwise empty environment.
func bdk(ctx context.Context, env []string, args ...string) result {
	var out, errOut bytes.Buffer
	code := cli.Run(ctx, &cli.IO{
		In: strings.NewReader(""), Out: &out, Err: &errOut, Env: env, Clock: clock.System{}, HTTP: &http.Client{},
	}, args)
	return result{code, out.String(), errOut.String()}
}

func TestWrongUsageIsExplainedAndExitsWith2(t *testing.T) {
	t.Parallel()
	cases := []struct {
		args string
		env  string
		want []string
	}{
		{args: "sevre", want: []string{`there is no command "sevre"`, "did you mean `bdk serve`?", "bdk --help"}},
		{args: "help sevre", want: []string{`there is no command "sevre"`, "did you mean `bdk serve`?"}},
		{args: "frobnicate", want: []string{`there is no command "frobnicate"`}},
		{args: "serve --prot 1", want: []string{"unknown flag: --prot", "did you mean --port?", "bdk serve --help"}},
		{args: "serve --frobnicate", want: []string{"unknown flag: --frobnicate"}},
		{args: "serve --port x", want: []string{"bdk: --port x: it takes a number from 0 to 65535\n"}},
		{args: "serve --dev=perhaps", want: []string{"bdk: --dev perhaps: it takes true or false\n"}},
		{args: "serve --port 70000", want: []string{"--port 70000", "0 to 65535"}},
		{args: "serve --mode both", want: []string{"--mode both", "multi and single"}},
		{args: "serve one two", want: []string{"serve takes one folder, got 2"}},
		{args: "serve one --dir two", want: []string{`"one"`, "--dir"}},
		{args: "serve --host 0.0.0.0", want: []string{"--host 0.0.0.0", "other machines", "--bearer-token", "--allow-anonymous"}},
		{args: "serve --host 192.0.2.1", want: []string{"other machines"}},
		{args: "serve --host ::", want: []string{"other machines"}},
		{args: "dev --host 0.0.0.0", want: []string{"other machines"}},
		{args: "serve --allow-anonymous --bearer-token x", want: []string{"exclude each other"}},
		{args: "serve --bearer-token=", want: []string{"--bearer-token is empty"}},
		{args: "serve --bearer-token=ci:", want: []string{"--bearer-token is empty"}},
		{args: "serve --allow-origin=", want: []string{"--allow-origin is empty"}},
		{args: "serve --allow-origin app.example.com", want: []string{`--allow-origin: the origin "app.example.com" does not begin with http:// or https://`}},
		{args: "dev --allow-origin https://app.example.com/", want: []string{"has more than a host and its port"}},
		{args: "serve --allow-origin * --allow-origin https://app.example.com", want: []string{"the origin * stands for all"}},
		{args: "init", want: []string{"one folder", "bdk init my-agent"}},
		{args: "init a b", want: []string{"one folder"}},
		{args: "init a --var name", want: []string{`--var "name"`, "name=value"}},
		{args: "init a --var name=x --var name=y", want: []string{"--var name is given twice"}},
		{args: "run", want: []string{"--message"}},
		{args: "run --message hi --url here", want: []string{`--url "here"`, "http://"}},
		{args: "run --message hi --url http://127.0.0.1 --dir x", want: []string{"a folder", "no meaning"}},
		{args: "run x --message hi --url http://127.0.0.1", want: []string{"a folder", "no meaning"}},
		{args: "run testdata", want: []string{"say something with --message"}},
		{args: "run one two --message hi", want: []string{"run takes one folder, got 2"}},
		{args: "run one --message hi --dir two", want: []string{`"one"`, "--dir"}},
		{args: "run what is it", want: []string{"bdk run --message 'what is it'"}},
		{args: "call", want: []string{"name the tool to call", "bdk info"}},
		{args: "call one two", want: []string{"call takes one tool, got 2", "--dir"}},
		{args: "call t --input {} --input-file x", want: []string{"--input and --input-file exclude each other"}},
		{args: "call t --input {a:1}", want: []string{"--input is not JSON"}},
		{args: "call t --input [1]", want: []string{"--input is not a JSON object"}},
		{args: "call t --input-file -", want: []string{"--input-file is not JSON"}},
		{args: "call t --session a --continuation-token b:c", want: []string{"exclude each other"}},
		{args: "call t --url here", want: []string{`--url "here"`, "http://"}},
		{args: "call t --url http://127.0.0.1 --dir x", want: []string{"no meaning"}},
		{args: "call t --url http://127.0.0.1 --state-root x", want: []string{"no meaning"}},
		{args: "call t --inptu {}", want: []string{"did you mean --input?"}},
		{args: "pack --arch x86", want: []string{"--arch x86", "arm64 and amd64"}},
		{args: "pack one two", want: []string{"one folder"}},
		{args: "deploy --arch x86", want: []string{"--arch x86"}},
		{args: "deploy --env A", want: []string{`--env "A"`, "NAME=VALUE"}},
		{args: "deploy --context =b", want: []string{`--context "=b"`, "NAME=VALUE"}},
		{args: "deploy --context reatin=false", want: []string{`no setting "reatin"; did you mean retain?`}},
		{args: "deploy -c alarmemail=a@b.c", want: []string{"did you mean alarmEmail?"}},
		{args: "deploy -c nope=1", want: []string{`no setting "nope"; there are: origins, retain, logRole, maxStreams, alarmEmail, execRuntime`}},
		{args: "deploy -c arch=amd64", want: []string{"use --arch"}},
		{args: "deploy -c agent=.", want: []string{"use the folder's name"}},
		{args: "deploy -c retain=maybe", want: []string{"--context retain=maybe: it is true or false"}},
		{args: "deploy --yes", want: []string{"--yes is for --destroy"}},
		{args: "deploy --destroy --arch amd64", want: []string{"no meaning"}},
		{args: "deploy --destroy", want: []string{"without a terminal say --yes"}},
		{args: "logs --agent a --dir b", want: []string{"named twice"}},
		{args: "logs --agent a --url http://127.0.0.1", want: []string{"--url", "no meaning"}},
		{args: "logs --url here", want: []string{`--url "here"`}},
		{args: "logs --since yesterday", want: []string{"--since yesterday"}},
		{args: "logs --since=-1m", want: []string{"--since -1m"}},
		{args: "validate one --dir two", want: []string{`"one"`, "--dir"}},
		{args: "info one two", want: []string{"one folder"}},
		{args: "dev one two", want: []string{"one folder"}},
		{args: "init a --template none", want: []string{`no template "none"`, "pr-approver"}},
	}
	for _, tc := range cases {
		t.Run(tc.args, func(t *testing.T) {
			t.Parallel()
			got := bdk(t.Context(), nil, strings.Fields(tc.args)...)
			if got.code != 2 {
				t.Errorf("exit code %d, want 2", got.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.err, want) {
					t.Errorf("standard error does not contain %q:\n%s", want, got.err)
				}
			}
			if got.out != "" {
				t.Errorf("standard output is %q, want none", got.out)
			}
		})
	}
}

func TestFailureExitsWith1(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, args := range [][]string{
		{"validate", "--dir", missing},
		{"info", "--dir", missing},
		{"run", "--dir", missing, "--message", "hi"},
		{"call", "greet", "--dir", missing},
		{"call", "greet", "--input-file", missing},
		{"serve", "--dir", missing, "--port", "0"},
		{"init", t.TempDir() + "/a", "--checkout", missing},
		{"validate", missing},
		{"info", missing},
		{"serve", missing, "--port", "0"},
		{"dev", missing, "--port", "0"},
	} {
		if got := bdk(t.Context(), os.Environ(), args...); got.code != 1 || !strings.Contains(got.err, missing) || strings.Contains(got.err, "stat") {
			t.Errorf("%v: exit code %d, want 1; standard error %q, want plain words about the folder", args, got.code, got.err)
		}
	}
}

func TestInterruptedCommandExitsWith130(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := bdk(ctx, nil, "run", "--url", "http://127.0.0.1:9", "--message", "hi"); got.code != 130 {
		t.Errorf("exit code %d, want 130; %s", got.code, got.err)
	}
}

func TestInterruptIsTheNormalEndOfDev(t *testing.T) { // that of serve is in testdata/script/agent.txtar
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := bdk(ctx, os.Environ(), "dev", t.TempDir(), "--port", "0"); got.code != 0 || strings.Contains(got.err, "bdk:") {
		t.Errorf("exit code %d, want 0; %s", got.code, got.err)
	}
}

func TestPortInUseIsSaidBeforeAnythingIsBuilt(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	for _, command := range []string{"serve", "dev"} {
		got := bdk(t.Context(), nil, command, "--dir", "/no/such/folder", "--port", port)
		if want := "port " + port + " of 127.0.0.1 is in use"; got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d and %q, want 1 and %q", command, got.code, got.err, want)
		}
	}
}

func TestHelpForPrograms(t *testing.T) {
	t.Parallel()
	var doc struct {
		Name    string `json:"name"`
		Usage   string `json:"usage"`
		Summary string `json:"summary"`
		Flags   []struct {
			Name    string `json:"name"`
			Type    string `json:"type"`
			Default string `json:"default"`
			Help    string `json:"help"`
		} `json:"flags"`
	}
	got := bdk(t.Context(), nil, "help", "serve", "--json")
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || got.code != 0 {
		t.Fatalf("exit code %d, %v", got.code, err)
	}
	types := map[string]string{}
	for _, f := range doc.Flags {
		types[f.Name] = f.Type + " " + f.Default
		if f.Help == "" {
			t.Errorf("--%s has no help", f.Name)
		}
	}
	want := map[string]string{
		"allow-anonymous": "bool false", "allow-origin": "stringArray []", "bearer-token": "stringArray []", "dev": "bool false", "dir": "string .",
		"help": "bool false", "host": "string 127.0.0.1", "mode": "string multi", "no-docs": "bool false",
		"no-playground": "bool false", "port": "int 3000", "state-root": "string ",
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	if doc.Name != "serve" || !strings.HasPrefix(doc.Usage, "bdk serve") || doc.Summary == "" {
		t.Errorf("incomplete: %+v", doc)
	}
}

func TestHelpAllExplainsEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	text := bdk(t.Context(), nil, "help", "--all").out
	var doc struct {
		Commands []struct {
			Name  string `json:"name"`
			Usage string `json:"usage"`
			Flags []struct {
				Name string `json:"name"`
			} `json:"flags"`
		} `json:"commands"`
	}
	if err := json.Unmarshal([]byte(bdk(t.Context(), nil, "help", "--all", "--json").out), &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range doc.Commands {
		names = append(names, c.Name)
		if !strings.Contains(text, c.Usage) {
			t.Errorf("%q is not explained", c.Usage)
		}
		for _, f := range c.Flags {
			if !strings.Contains(text, "--"+f.Name) {
				t.Errorf("--%s of %s is not explained", f.Name, c.Name)
			}
		}
	}
	if diff := cmp.Diff([]string{"call", "deploy", "dev", "help", "info", "init", "logs", "pack", "run", "serve", "validate", "version"}, names); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// session serves a session with the given events.
func session(t *testing.T, events ...event.Data) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"ok":false,"error":"unauthenticated","message":"send a token"}`)
			return
		}
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"ok":true,"sessionId":"ses_1"}`)
			return
		}
		for i, data := range events {
			e := event.New("turn_1", data)
			e.Index = int64(i)
			fmt.Fprintf(w, "%s\n", e.AppendJSON(nil))
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/agent"
}

func TestRunShowsTheTurnOfAServer(t *testing.T) {
	t.Parallel()
	token := []string{"BDK_BEARER_TOKEN=secret"}
	cases := []struct {
		name   string
		events []event.Data
		want   result
	}{
		{
			"streamed text after a tool call",
			[]event.Data{
				event.SessionStarted{},
				event.MessageCompleted{FinishReason: "tool_calls"},
				event.ActionsRequested{Calls: []event.ActionCall{{ToolName: "inspect_pr", Args: []byte(`{"n": 42}`)}}},
				event.ActionResult{ToolName: "inspect_pr", Output: []byte(`{"ready": true}`)},
				event.MessageAppended{Text: "It is "},
				event.MessageAppended{Text: "ready."},
				event.MessageCompleted{Text: "It is ready."},
				event.TurnCompleted{},
			},
			result{0, "It is ready.\n", "> inspect_pr {\"n\":42}\n< inspect_pr {\"ready\":true}\n"},
		},
		{
			"text without deltas",
			[]event.Data{event.MessageCompleted{Text: "Hello.\n"}, event.TurnCompleted{}},
			result{0, "Hello.\n", ""},
		},
		{
			"text of a subagent is not the reply",
			[]event.Data{event.MessageAppended{Text: "inner", ParentCallID: "c"}, event.MessageCompleted{Text: "outer"}, event.TurnCompleted{}},
			result{0, "outer\n", ""},
		},
		{
			"an answer that starts again",
			[]event.Data{event.MessageAppended{Text: "It"}, event.StepRestarted{Step: 1}, event.MessageAppended{Text: "All"}, event.MessageCompleted{Text: "All"}, event.TurnCompleted{}},
			result{0, "It\nAll\n", "(the model starts this answer again)\n"},
		},
		{
			"a tool that fails and a turn that fails",
			[]event.Data{event.ActionResult{ToolName: "t", IsError: true, Output: []byte(`"no"`)}, event.MessageAppended{Text: "So"}, event.TurnFailed{Message: "too many steps"}},
			result{1, "So\n", "< t failed: \"no\"\nbdk: the turn failed: too many steps\n"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := bdk(t.Context(), token, "run", "--url", session(t, tc.events...), "--message", "hi")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a token that is refused", func(t *testing.T) {
		t.Parallel()
		got := bdk(t.Context(), token, "run", "--url", session(t), "--message", "hi", "--bearer-token", "wrong")
		if got.code != 1 || !strings.Contains(got.err, "send a token") {
			t.Errorf("got %+v, want exit code 1 and what the server says", got)
		}
	})
}

func TestExitCodeOfTheAgentProgramIsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"0": "<nil>", "1": "exit code 1", "7": "exit code 7"} {
		var out bytes.Buffer
		io := &cli.IO{In: strings.NewReader(""), Out: &out, Err: &out}
		err := cli.RunProgram(t.Context(), io, os.Args[0], []string{launch.Env + `={"command":"run","message":"` + code + `"}`})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("program exits with %s: got %s, want %s", code, got, want)
		}
		if out.String() != "ran\n" {
			t.Errorf("output %q, want that of the program", &out)
		}
	}
}

func TestInfoShowsAllPartsAndFailsIfAToolIsWrong(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	io := &cli.IO{In: strings.NewReader(""), Out: &out, Err: &out}
	program := &maingen.Program{Path: os.Args[0], Workspace: &project.Workspace{}}
	if err := cli.Info(t.Context(), io, program); !errors.Is(err, cli.ExitError(1)) {
		t.Errorf("got %v, want exit code 1", err)
	}
	const want = `demo
  model         openai:x
  tool          greet()  read  bot/tools/greet.go
                
    error       one
                two
  tool          tidy()  write, a script, needs approval  bot/tools/tidy.go
                Tidies.
  harness       read, skill
  skill         deploy  bot/skills/deploy/SKILL.md
                Use when it
                goes out.
  subagent      own  openai:y  bot/subagents/own/agent.go
                Has a model.
  subagent      plain  bot/subagents/plain/agent.go
                Has none.
  connection    far  bot/mcp-connections/far.go
                over http; offered to the model; approval always; variables A, B
                Paints.
  connection    near  bot/mcp-connections/near.go
                the agent code-review; for code only
                mistake: wrong
  first files   bot/sandbox/workspace
  result        JSON of a schema, see --json
  diagnostics   none
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// What init tells an author to do next works from where it was called, whether or not the command can be found by name.
func TestInitNamesTheCommandAsItWasCalled(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"bdk": "bdk", "bin/bdk": "bin/bdk", "/a b/bdk": "'/a b/bdk'", "": "bdk"} {
		dir := filepath.Join(t.TempDir(), "my-agent")
		var out bytes.Buffer
		io := &cli.IO{Name: name, Out: &out, Err: &out, Clock: clock.System{}}
		if code := cli.Run(t.Context(), io, []string{"init", dir, "--checkout", "../.."}); code != 0 || !strings.Contains(out.String(), "  "+want+" dev "+dir) {
			t.Errorf("called as %q: exit code %d and\n%s", name, code, &out)
		}
	}
}
