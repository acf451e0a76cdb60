package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/tool"
)

// files is a workspace that has nothing but its directory, and keeps what is written in memory.
type files struct {
	bdk.Workspace
	err error

	written sync.Map
}

func (f *files) WriteFile(_ context.Context, name string, data []byte, mode fs.FileMode) error {
	f.written.Store(name, mode.String()+" "+string(data))
	return nil
}

func (f *files) Dir(context.Context) (string, error) { return "the/workspace", f.err }

// runner is an exec.Runner that records its commands.
type runner struct {
	result exec.Result
	err    error
	hangs  bool // until its context ends

	mu   sync.Mutex
	runs []exec.Command
}

func (r *runner) Run(ctx context.Context, c exec.Command) (exec.Result, error) {
	r.mu.Lock()
	r.runs = append(r.runs, c)
	r.mu.Unlock()
	if r.hangs {
		<-ctx.Done()
		return exec.Result{}, ctx.Err()
	}
	return r.result, r.err
}

func scripts(t *testing.T, r exec.Runner, spec bdk.ToolSpec) *tool.Set {
	t.Helper()
	spec.Description = "Lists."
	list := bdk.NamedTool{Name: "list", Source: "tools/list.go", Tool: bdk.DefineScript[input](spec, "#!/bin/sh\nls\n")}
	s, err := tool.NewSet([]bdk.NamedTool{list}, tool.Options{Claims: kv.New(memkv.New(), kv.Options{}), Scripts: r})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScriptRunsInTheWorkspaceWithItsInput(t *testing.T) {
	t.Parallel()
	r := &runner{}
	s := scripts(t, r, bdk.ToolSpec{Timeout: 20 * time.Second})
	sent := ` {"a": 1, "b":"\u00e9"}`
	w := &files{}
	s.Run(t.Context(), &bdk.Call{ID: "call_1", Workspace: w}, "list", json.RawMessage(sent), false)
	if got, _ := w.written.Load(".agents/tools/list"); !strings.HasPrefix(fmt.Sprint(got), "-rwxr-xr-x #!/") {
		t.Errorf("the script that runs is %v", got)
	}
	want := []exec.Command{{
		Dir: "the/workspace", Args: []string{"./.agents/tools/list"}, Stdin: []byte(sent), Timeout: 20 * time.Second,
		Env: map[string]string{"BDK_CALL_ID": "call_1"},
	}}
	if d := cmp.Diff(want, r.runs); d != "" {
		t.Error(d)
	}
}

func TestWhatAScriptPrintsIsItsResult(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result exec.Result
		want   string
		fault  bool
	}{
		"text":             {exec.Result{Stdout: []byte("a\nb\n")}, "a\nb", false},
		"one line end":     {exec.Result{Stdout: []byte("a\n\n")}, "a\n", false},
		"no line end":      {exec.Result{Stdout: []byte("a")}, "a", false},
		"nothing":          {exec.Result{}, "", false},
		"JSON stays text":  {exec.Result{Stdout: []byte("{\"a\": 1}\n")}, `{"a": 1}`, false},
		"no UTF-8":         {exec.Result{Stdout: []byte("a\xffb\n")}, "a\uFFFDb", false},
		"stderr is no one": {exec.Result{Stdout: []byte("a\n"), Stderr: []byte("warning\n")}, "a", false},
		"exit code": {
			exec.Result{ExitCode: 3, Stdout: []byte("half\n"), Stderr: []byte("no such file\n")},
			"the script ended with exit code 3\nstderr:\nno such file\nstdout:\nhalf", true,
		},
		"exit code alone": {exec.Result{ExitCode: 1}, "the script ended with exit code 1", true},
		"killed": {
			exec.Result{ExitCode: -1, Killed: "memory", Took: 1234567 * time.Microsecond, Stderr: []byte("much")},
			"the script was killed after 1.235s: memory\nstderr:\nmuch", true,
		},
		"the end of much": {
			exec.Result{ExitCode: 1, Stderr: []byte("x" + strings.Repeat("é", 10_000) + "end")},
			"the script ended with exit code 1\nstderr:\n…" + strings.Repeat("é", 4094) + "end", true,
		},
	} {
		s := scripts(t, &runner{result: test.result}, bdk.ToolSpec{})
		out := s.Run(t.Context(), &bdk.Call{ID: "1", Workspace: &files{}}, "list", json.RawMessage(`{"a":1}`), false)
		if d := cmp.Diff(test.want, readText(t, out)); d != "" || out.IsError != test.fault {
			t.Errorf("%s: error %t (-want +got):\n%s", name, out.IsError, d)
		}
	}
}

// A script that writes is claimed like any write, and one that cannot run claims nothing.
func TestScriptIsClaimed(t *testing.T) {
	t.Parallel()
	r := &runner{}
	s := scripts(t, r, bdk.ToolSpec{})
	args := json.RawMessage(`{"a":1}`)
	wantFault(t, s.Run(t.Context(), &bdk.Call{ID: "1"}, "list", args, false), "no workspace", "not run")
	for i := range 2 {
		out := s.Run(t.Context(), &bdk.Call{ID: "1", Workspace: &files{}}, "list", args, false)
		if out.IsError != (i == 1) {
			t.Errorf("run %d: %s", i+1, out.Output)
		}
	}
	if len(r.runs) != 1 {
		t.Errorf("it ran %d times; want once", len(r.runs))
	}
}

func TestScriptThatCannotRun(t *testing.T) {
	t.Parallel()
	args, call := json.RawMessage(`{"a":1}`), &bdk.Call{ID: "1", Workspace: &files{}}
	none := scripts(t, nil, bdk.ToolSpec{})
	wantFault(t, none.Run(t.Context(), call, "list", args, false), "list is a script, and this host runs no scripts")
	if _, done := none.Gate(call, "list", args); done == nil {
		t.Error("a person is asked about a script that nobody runs")
	}
	wantFault(t, scripts(t, &runner{err: errors.New("no such program")}, bdk.ToolSpec{}).Run(t.Context(), call, "list", args, false), "no such program")
	r := &runner{}
	full := &bdk.Call{ID: "1", Workspace: &files{err: errors.New("disk full")}}
	wantFault(t, scripts(t, r, bdk.ToolSpec{}).Run(t.Context(), full, "list", args, false), "disk full", "not run")
	if len(r.runs) != 0 {
		t.Error("it ran without its files")
	}
}

// The runner keeps the time of a script; one that does not is left alone a little later.
func TestTimeoutOfAScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := scripts(t, &runner{hangs: true}, bdk.ToolSpec{Timeout: time.Minute})
		wantFault(t, s.Run(t.Context(), &bdk.Call{ID: "1", Workspace: &files{}}, "list", json.RawMessage(`{"a":1}`), false), "time of 1m30s")
		if took := time.Since(begin); took != 90*time.Second {
			t.Errorf("it took %s; want the minute and what the files need", took)
		}
	})
}

// Agent tools are offered to the model, and cannot be called without one.
func TestCallableToolsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	var c counted
	list := bdk.NamedTool{Name: "list", Tool: bdk.DefineScript[input](bdk.ToolSpec{Description: "d"}, "#!/bin/sh")}
	s := newSet(t, memkv.New(), list, c.tool("sub", nil), c.tool("add", nil))
	var callable, offered []string
	for _, named := range s.Callable() {
		callable = append(callable, named.Name)
	}
	for _, o := range s.Offer() {
		offered = append(offered, o.Name)
	}
	if d := cmp.Diff([][]string{{"add", "sub"}, {"add", "list", "sub"}}, [][]string{callable, offered}); d != "" {
		t.Error(d)
	}
	if found, ok := s.Find("list"); !ok || found.Tool.Script() == "" {
		t.Errorf("Find = %+v, %t", found, ok)
	}
	if _, ok := s.Find("mul"); ok {
		t.Error("found a tool that is not there")
	}
}
