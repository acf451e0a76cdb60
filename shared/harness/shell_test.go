package harness_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/localexec"
	"github.com/bdk-lambda/bdk/shared/harness"
)

// runner answers with a result and remembers the command.
type runner struct {
	exec.Result
	err     error
	command exec.Command
}

func (r *runner) Run(_ context.Context, c exec.Command) (exec.Result, error) {
	r.command = c
	return r.Result, r.err
}

func TestShellShowsWhatBecameOfTheCommand(t *testing.T) {
	t.Parallel()
	failed := func(parts ...string) bdk.Output {
		out := bdk.Output{IsError: true}
		for _, p := range parts {
			out.Content = append(out.Content, bdk.Content{Text: p})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		result exec.Result
		want   any
	}{
		{"output", exec.Result{Stdout: []byte("a\nb\n")}, "a\nb"},
		{"no output", exec.Result{}, "(no output)"},
		{"both streams", exec.Result{Stdout: []byte("a\n"), Stderr: []byte("b\n")}, "a\n[stderr]\nb"},
		{"stderr alone", exec.Result{Stderr: []byte("b\n")}, "[stderr]\nb"},
		{"not UTF-8", exec.Result{Stdout: []byte("a\xffb")}, "a\uFFFDb"},
		{"exit code", exec.Result{Stderr: []byte("no"), ExitCode: 2, Took: time.Second}, failed("[stderr]\nno", "[exit code 2 after 1s]")},
		{"timeout", exec.Result{Stdout: []byte("so far"), ExitCode: -1, Killed: "timeout", Took: time.Minute}, failed("so far", "[killed after 1m0s: its time was over; timeoutSeconds may be up to 600]")},
		{"killed", exec.Result{ExitCode: -1, Killed: "memory", Took: time.Second}, failed("(no output)", "[killed after 1s: memory]")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, harness.Options{Scripts: &runner{Result: c.result}}, nil)
			out, err := b.call(t.Context(), "shell", `{"command":"x"}`)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShellRunsInTheDirectoryOfTheSession(t *testing.T) {
	t.Parallel()
	r := &runner{}
	b := setup(t, harness.Options{Scripts: r}, map[string]string{"a.txt": "x"})
	b.answer(t, "shell", `{"command":"echo 'hi'","timeoutSeconds":5}`)
	dir, err := b.Dir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	args := r.command.Args
	if len(args) != 5 || args[4] != "echo 'hi'" {
		t.Errorf("the arguments are %q", args)
	}
	r.command.Args = nil
	if diff := cmp.Diff(exec.Command{Dir: dir, Timeout: 5 * time.Second, Env: map[string]string{"BDK_CALL_ID": "call_1"}}, r.command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(data) != "x" {
		t.Errorf("the file of the session: %q, %v", data, err)
	}
}

func TestShellRefusesWhatCannotBeRun(t *testing.T) {
	t.Parallel()
	r := &runner{}
	b := setup(t, harness.Options{Scripts: r}, nil)
	b.fails(t, "shell", `{"command":" "}`, "empty")
	b.fails(t, "shell", `{"command":"a\u0000b"}`, "NUL")
	b.fails(t, "shell", input(t, map[string]any{"command": strings.Repeat("x", 200_000)}), "write it to a file")
	b.fails(t, "shell", `{"command":"x","timeoutSeconds":-1}`, "from 1 to 600")
	b.fails(t, "shell", `{"command":"x","timeoutSeconds":601}`, "from 1 to 600")
	if r.command.Dir != "" {
		t.Errorf("a command was run: %q", r.command.Args)
	}
	r.err = errors.New("the runner is down")
	b.fails(t, "shell", `{"command":"x"}`, "the runner is down")
	setup(t, harness.Options{}, nil).fails(t, "shell", `{"command":"x"}`, "runs no commands")
	if spec := b.tools["shell"].Spec(); spec.Timeout <= exec.MaxTimeout {
		t.Errorf("the tool has %s, less than its command may take", spec.Timeout)
	}
}

func TestShellOnThisMachine(t *testing.T) {
	t.Parallel()
	b := setup(t, harness.Options{Scripts: localexec.New(localexec.Options{Temp: t.TempDir()})}, map[string]string{"in.txt": "b\na\n"})
	if got := b.answer(t, "shell", `{"command":"sort in.txt | tee out.txt; echo \"$BDK_CALL_ID\" >&2"}`); got != "a\nb\n[stderr]\ncall_1" {
		t.Errorf("answer: %q", got)
	}
	if got := b.answer(t, "read", `{"path":"out.txt"}`); got != "1\ta\n2\tb" {
		t.Errorf("out.txt: %q", got)
	}
	out, err := b.call(t.Context(), "shell", `{"command":"exit 3"}`)
	if failed, ok := out.(bdk.Output); err != nil || !ok || !failed.IsError || !strings.Contains(failed.Content[1].Text, "exit code 3") {
		t.Errorf("exit 3: %v, %v", out, err)
	}
}
