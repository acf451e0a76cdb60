//go:build unix

package localexec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/exectest"
	"github.com/bdk-lambda/bdk/shared/exec/localexec"
)

// secret is in the environment of this process.
const secret = "s3cret-of-the-host"

func TestMain(m *testing.M) {
	if err := os.Setenv("HOST_SECRET", secret); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	exectest.Run(t, func(*testing.T) exec.Runner { return localexec.New(localexec.Options{}) })
}

// bash returns a command that runs a script in a new directory.
func bash(t *testing.T, script string) exec.Command {
	t.Helper()
	return exec.Command{Dir: t.TempDir(), Args: []string{"bash", "-c", script}}
}

func run(t *testing.T, opts localexec.Options, c exec.Command) exec.Result {
	t.Helper()
	res, err := localexec.New(opts).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestHostEnvironmentIsNotSeen(t *testing.T) {
	t.Parallel()
	res := run(t, localexec.Options{}, bash(t, "env; cat /proc/self/environ /proc/$$/environ; true"))
	if os.Getenv("HOST_SECRET") != secret || bytes.Contains(res.Stdout, []byte(secret)) || len(res.Stdout) == 0 {
		t.Errorf("got %s", res.Stdout)
	}
}

// TestOwnDirectories are made where the host wants them, and removed after a command that was killed.
func TestOwnDirectories(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	for _, script := range []string{"echo $HOME $TMPDIR; touch $HOME/x", "echo $HOME $TMPDIR; kill -9 $$"} {
		res := run(t, localexec.Options{Temp: temp}, bash(t, script))
		for dir := range strings.FieldsSeq(string(res.Stdout)) {
			if !strings.HasPrefix(dir, temp) {
				t.Errorf("%s is not in %s", dir, temp)
			}
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 || len(res.Stdout) == 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	}
	if _, err := localexec.New(localexec.Options{Temp: filepath.Join(temp, "missing")}).Run(t.Context(), bash(t, "true")); err == nil {
		t.Error("it ran without directories of its own")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script string
		opts   localexec.Options
		linux  bool // there alone
		ok     func(exec.Result) bool
	}{
		"memory": {
			"x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo survived",
			localexec.Options{Memory: 50 << 20},
			true,
			func(r exec.Result) bool { return r.Killed == "memory" && r.ExitCode == -1 && len(r.Stdout) == 0 },
		},
		"memory of all together": {
			"hold() { x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 600; }; hold & hold & hold & hold & wait",
			localexec.Options{Memory: 70 << 20},
			true,
			func(r exec.Result) bool { return r.Killed == "memory" },
		},
		"less memory": {
			"x=$(head -c 10000000 /dev/zero | tr '\\0' x); sleep 0.2; echo ${#x}",
			localexec.Options{Memory: 70 << 20},
			false,
			func(r exec.Result) bool { return r.Killed == "" && string(r.Stdout) == "10000000\n" },
		},
		"processes": {
			"for i in {1..30}; do sleep 600 & done; wait",
			localexec.Options{Processes: 20},
			true,
			func(r exec.Result) bool { return r.Killed == "processes" && r.ExitCode == -1 },
		},
		"fewer processes": {
			"for i in {1..15}; do sleep 0.2 & done; wait",
			localexec.Options{Processes: 20},
			false,
			func(r exec.Result) bool { return r.Killed == "" && r.ExitCode == 0 },
		},
		"a file's size": {
			"exec head -c 300000 /dev/zero > file",
			localexec.Options{FileSize: 100 << 10},
			false,
			func(r exec.Result) bool { return r.Killed == "SIGXFSZ" },
		},
		"open files": {
			"ulimit -n; for ((i = 10; i < 100; i++)); do eval \"exec $i</dev/null\" || exit 7; done",
			localexec.Options{OpenFiles: 50},
			false,
			func(r exec.Result) bool { return strings.HasPrefix(string(r.Stdout), "50\n") && r.ExitCode != 0 },
		},
		"no core": {
			"ulimit -c",
			localexec.Options{},
			false,
			func(r exec.Result) bool { return string(r.Stdout) == "0\n" },
		},
		"more than may be allowed": {
			"echo out",
			localexec.Options{OpenFiles: 1 << 40},
			false,
			func(r exec.Result) bool { return string(r.Stdout) == "out\n" && len(r.Stderr) == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.linux && runtime.GOOS != "linux" {
				t.Skip("this system tells nothing of processes")
			}
			if r := run(t, tc.opts, bash(t, tc.script)); !tc.ok(r) || r.Took > 30*time.Second {
				t.Errorf("got %+v: %.200s, %.200s", r, r.Stdout, r.Stderr)
			}
		})
	}
}

// TestAllOfTooMany: processes that start others are killed with all of them. There are 255 in all, lest a defect harms the machine.
func TestAllOfTooMany(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system tells nothing of processes")
	}
	l, call := listen(t)
	res := run(t, localexec.Options{Processes: 50}, bash(t, call+"f() { if (($1 > 0)); then f $(($1 - 1)) & f $(($1 - 1)) & fi; read -rt 60 <&9; }; f 7"))
	if res.Killed != "processes" {
		t.Errorf("got %+v", res)
	}
	gone(t, l)
}

// TestProcessesOfUser: the system keeps a command from taking all there are.
func TestProcessesOfUser(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Getuid() == 0 {
		t.Skip("this system does not limit this user")
	}
	out := run(t, localexec.Options{Processes: 50}, bash(t, "ulimit -u")).Stdout
	var n int
	if _, err := fmt.Sscan(string(out), &n); err != nil || n <= 400 || n > 400+10_000 {
		t.Errorf("got %s", out)
	}
}

// TestCharactersStayWhole: none is cut in two by the note.
func TestCharactersStayWhole(t *testing.T) {
	t.Parallel()
	for _, char := range []string{"x", "é", "…", "🙂"} {
		for output := 1; output < 20; output++ {
			c := exec.Command{Dir: t.TempDir(), Args: []string{"printf", "%s", strings.Repeat(char, 30)}, Output: output}
			out := run(t, localexec.Options{}, c).Stdout
			head, rest, _ := bytes.Cut(out, []byte("\n[… "))
			var left, all int
			if _, err := fmt.Sscanf(string(rest), "%d of %d bytes left out …]", &left, &all); err != nil || !utf8.Valid(out) {
				t.Fatalf("%s, %d: got %q, %v", char, output, out, err)
			}
			_, tail, _ := bytes.Cut(rest, []byte("]\n"))
			if kept := len(head) + len(tail); all != 30*len(char) || left+kept != all || kept > output || kept < output-6 {
				t.Errorf("%s, %d: got %q", char, output, out)
			}
		}
	}
}

// listen returns where a process can be heard, and the script by which it holds the line for itself and what it starts.
func listen(t *testing.T) (l net.Listener, call string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, fmt.Sprintf("exec 9<>/dev/tcp/127.0.0.1/%d; ", l.Addr().(*net.TCPAddr).Port)
}

// gone fails unless somebody has called, or calls, and is not alive any more.
func gone(t *testing.T, l net.Listener) {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, conn)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		t.Error("a process is alive")
	}
}

// TestContextKills: at once, not when the command's own time is over.
func TestContextKills(t *testing.T) {
	t.Parallel()
	l, call := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := localexec.New(localexec.Options{}).Run(ctx, bash(t, call+"echo >&9; sleep 600"))
		done <- err
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it is alive")
	}
}

// TestMessages say what to mend.
func TestMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for want, c := range map[string]exec.Command{
		`there is no program "frobnicate" in /`:                           {Dir: dir, Args: []string{"frobnicate"}},
		`the directory "` + dir + `/missing" of the command is not there`: {Dir: filepath.Join(dir, "missing"), Args: []string{"true"}},
		`"A=B" is no name of an environment variable`:                     {Dir: dir, Args: []string{"true"}, Env: map[string]string{"A=B": ""}},
		`the environment variable HOME is not the command's to set`:       {Dir: dir, Args: []string{"true"}, Env: map[string]string{"HOME": "/"}},
		`the command's arguments and environment are too long`:            {Dir: dir, Args: []string{"true", strings.Repeat("x", 10<<20)}},
		`the command's timeout is 1h0m0s: it must be from 0 to 10m0s`:     {Dir: dir, Args: []string{"true"}, Timeout: time.Hour},
	} {
		_, err := localexec.New(localexec.Options{}).Run(t.Context(), c)
		if e, ok := errors.AsType[*bdkerr.Error](err); !ok || e.Code != bdkerr.InvalidRequest || !strings.Contains(e.Message, want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestMissingInterpreter: the script has run into it, as in a shell.
func TestMissingInterpreter(t *testing.T) {
	t.Parallel()
	c := exec.Command{Dir: t.TempDir(), Args: []string{"./script"}}
	if err := os.WriteFile(filepath.Join(c.Dir, "script"), []byte("#!/no/such-interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if res := run(t, localexec.Options{}, c); res.ExitCode != 126 && res.ExitCode != 127 || len(res.Stderr) == 0 {
		t.Errorf("got %+v", res)
	}
}
