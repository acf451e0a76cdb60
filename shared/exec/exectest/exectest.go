// Package exectest is the conformance suite of [exec.Runner]. Every adapter runs it.
//
// It needs bash and the usual small programs where the commands run; what needs more is skipped by name where that is missing. Whether
// a process is alive is seen by a connection that it holds, so commands must be able to reach this process by the loopback.
package exectest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
)

// Run runs the suite over runners that open returns, which end with their test.
func Run(t *testing.T, open func(t *testing.T) exec.Runner) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, exec.Runner){
		"exit code":                  exitCode,
		"streams":                    streams,
		"large input":                largeInput,
		"arguments":                  arguments,
		"files":                      files,
		"environment":                environment,
		"own directories":            ownDirectories,
		"script":                     script,
		"python script":              python,
		"signal":                     signal,
		"timeout":                    timeout,
		"timeout kills all sessions": timeoutSessions,
		"end of context":             contextEnds,
		"context that has ended":     contextEnded,
		"background":                 background,
		"background with a session":  backgroundSession,
		"long output":                longOutput,
		"endless output":             endlessOutput,
		"malformed":                  malformed,
		"missing program":            missingProgram,
		"concurrency":                concurrency,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// shell returns a command that runs a script of bash in a new directory.
func shell(t *testing.T, script string) exec.Command {
	t.Helper()
	return exec.Command{Dir: t.TempDir(), Args: []string{"bash", "-c", script}}
}

// run runs a command that can be run.
func run(t *testing.T, r exec.Runner, c exec.Command) exec.Result {
	t.Helper()
	res, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// need skips a test where a program is missing.
func need(t *testing.T, r exec.Runner, program string) {
	t.Helper()
	if run(t, r, shell(t, "command -v "+program)).ExitCode != 0 {
		t.Skipf("there is no %s", program)
	}
}

func exitCode(t *testing.T, r exec.Runner) {
	for _, code := range []int{0, 3, 255} {
		res := run(t, r, shell(t, fmt.Sprint("sleep 0.1; exit ", code)))
		if res.ExitCode != code || res.Killed != "" || len(res.Stdout)+len(res.Stderr) > 0 {
			t.Errorf("exit %d: got %+v", code, res)
		}
		if res.Took < 100*time.Millisecond {
			t.Errorf("it took %s", res.Took)
		}
	}
}

func streams(t *testing.T, r exec.Runner) {
	c := shell(t, "cat; printf 'e\\xffe' >&2")
	c.Stdin = []byte("in\x00\xff\n")
	res := run(t, r, c)
	if string(res.Stdout) != "in\x00\xff\n" || string(res.Stderr) != "e\xffe" {
		t.Errorf("got %q, %q", res.Stdout, res.Stderr)
	}
	if res := run(t, r, shell(t, "cat; echo end")); string(res.Stdout) != "end\n" {
		t.Errorf("without input: got %q", res.Stdout)
	}
}

func largeInput(t *testing.T, r exec.Runner) {
	c := shell(t, "wc -c")
	c.Stdin = make([]byte, exec.MaxStdin)
	if res := run(t, r, c); strings.TrimSpace(string(res.Stdout)) != fmt.Sprint(exec.MaxStdin) {
		t.Errorf("got %+v", res)
	}
	c.Args = []string{"bash", "-c", "exit 4"} // it need not be read
	if res := run(t, r, c); res.ExitCode != 4 || res.Killed != "" {
		t.Errorf("got %+v", res)
	}
}

func arguments(t *testing.T, r exec.Runner) {
	res := run(t, r, exec.Command{Dir: t.TempDir(), Args: []string{"printf", "<%s>", "a b", "", "$HOME", "*", "-n", "é\n\"'"}})
	if got, want := string(res.Stdout), "<a b><><$HOME><*><-n><é\n\"'>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func files(t *testing.T, r exec.Runner) {
	c := shell(t, "cat a/in > a/out; mkdir -p b; echo new > b/new; rm old; printf more >> a/in; chmod +x b/new")
	write(t, c.Dir, "a/in", "hello", 0o600)
	write(t, c.Dir, "old", "x", 0o600)
	if res := run(t, r, c); res.ExitCode != 0 {
		t.Fatalf("got %+v: %s", res, res.Stderr)
	}
	got := map[string]string{}
	for _, name := range []string{"a/in", "a/out", "b/new", "old"} {
		data, err := os.ReadFile(filepath.Join(c.Dir, name))
		if err != nil {
			data = []byte("missing")
		}
		got[name] = string(data)
	}
	if d := cmp.Diff(map[string]string{"a/in": "hellomore", "a/out": "hello", "b/new": "new\n", "old": "missing"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if info, err := os.Stat(filepath.Join(c.Dir, "b/new")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("it is not executable: %v, %v", info, err)
	}
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// environment: it has what the contract says, what the command says, and what shells add of their own.
func environment(t *testing.T, r exec.Runner) {
	c := exec.Command{Dir: t.TempDir(), Args: []string{"env", "-0"}, Env: map[string]string{"MINE": "a=b\n'c' $d", "_EMPTY2": ""}}
	got := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(run(t, r, c).Stdout), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "PWD", "OLDPWD", "SHLVL", "_":
			continue
		case "PATH", "HOME", "TMPDIR":
			if !filepath.IsAbs(value) {
				t.Errorf("%s is %q", name, value)
			}
			value = "a path"
		}
		got[name] = value
	}
	want := map[string]string{"PATH": "a path", "HOME": "a path", "TMPDIR": "a path", "LANG": "C.UTF-8", "MINE": "a=b\n'c' $d", "_EMPTY2": ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// ownDirectories: each command has new ones outside of its files, and they are removed.
func ownDirectories(t *testing.T, r exec.Runner) {
	c := shell(t, `[ -z "$(ls -A "$HOME" "$TMPDIR" | grep -v :)" ] || exit 2
		printf x > "$HOME/x"; mkdir "$TMPDIR/closed"; printf x > "$TMPDIR/closed/x"; chmod 0 "$TMPDIR/closed"; echo "$HOME"; echo "$TMPDIR"`)
	seen := map[string]bool{c.Dir: true}
	for range 2 {
		res := run(t, r, c)
		if res.ExitCode != 0 || len(res.Stderr) > 0 {
			t.Fatalf("got %+v: %s", res, res.Stderr)
		}
		for dir := range strings.Lines(string(res.Stdout)) {
			dir = strings.TrimSuffix(dir, "\n")
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", dir, err)
			}
			if seen[dir] {
				t.Errorf("%s is had twice", dir)
			}
			seen[dir] = true
		}
	}
	if len(seen) != 5 {
		t.Errorf("got %v", seen)
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
		t.Errorf("its files are %v, %v", left, err)
	}
}

func script(t *testing.T, r exec.Runner) {
	c := exec.Command{Dir: t.TempDir(), Args: []string{"./.agents/tools/greet", "you"}, Stdin: []byte(`{"a":1}`)}
	write(t, c.Dir, ".agents/tools/greet", "#!/usr/bin/env bash\nset -euo pipefail\nread -r line || true\nprintf '%s %s %s' \"$0\" \"$1\" \"$line\"\n", 0o700)
	if res := run(t, r, c); string(res.Stdout) != `./.agents/tools/greet you {"a":1}` || res.ExitCode != 0 {
		t.Errorf("got %+v: %s, %s", res, res.Stdout, res.Stderr)
	}
}

func python(t *testing.T, r exec.Runner) {
	need(t, r, "python3")
	c := exec.Command{Dir: t.TempDir(), Args: []string{"./.agents/tools/sum"}, Stdin: []byte(`{"a":2,"b":3}`)}
	write(t, c.Dir, ".agents/tools/sum", "#!/usr/bin/env python3\nimport json, sys\nprint(sum(json.load(sys.stdin).values()))\n", 0o700)
	if res := run(t, r, c); string(res.Stdout) != "5\n" {
		t.Errorf("got %+v: %s, %s", res, res.Stdout, res.Stderr)
	}
}

func signal(t *testing.T, r exec.Runner) {
	res := run(t, r, shell(t, "echo out; kill -TERM $$; sleep 600"))
	if res.ExitCode != -1 || res.Killed != "SIGTERM" || string(res.Stdout) != "out\n" {
		t.Errorf("got %+v", res)
	}
}

// line is where processes of a command can be heard from.
type line struct{ net.Listener }

func listen(t *testing.T) line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return line{l}
}

// call is a script of bash that calls, and holds the line for its process and what that starts.
func (l line) call() string {
	return fmt.Sprintf("exec 9<>/dev/tcp/127.0.0.1/%d && echo up >&9; ", l.Addr().(*net.TCPAddr).Port)
}

const patience = 30 * time.Second // for what must happen at once

// answer waits for a process that calls.
func (l line) answer(t *testing.T) net.Conn {
	t.Helper()
	end := time.Now().Add(patience)
	err := l.Listener.(*net.TCPListener).SetDeadline(end)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(end); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	return conn
}

// gone fails unless nobody holds the line any more.
func gone(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	if wait, ok := errors.AsType[net.Error](err); err == nil || ok && wait.Timeout() {
		t.Error("a process is alive")
	}
}

// timeout: children and grandchildren, with whatever signals they ignore, do not outlive it.
func timeout(t *testing.T, r exec.Runner) {
	l := listen(t)
	c := shell(t, "trap '' TERM INT HUP; echo out; ("+l.call()+"sleep 600) & (bash -c '"+l.call()+"sleep 600') & wait")
	c.Timeout = 2 * time.Second
	res := run(t, r, c)
	if res.ExitCode != -1 || res.Killed != "timeout" || string(res.Stdout) != "out\n" {
		t.Errorf("got %+v", res)
	}
	if res.Took < c.Timeout || res.Took > patience {
		t.Errorf("it took %s", res.Took)
	}
	for range 2 {
		gone(t, l.answer(t))
	}
}

func timeoutSessions(t *testing.T, r exec.Runner) {
	need(t, r, "setsid")
	l := listen(t)
	c := shell(t, "setsid -f bash -c '"+l.call()+"setsid sleep 600'; setsid -w bash -c '"+l.call()+"sleep 600'")
	c.Timeout = 2 * time.Second
	if res := run(t, r, c); res.Killed != "timeout" {
		t.Errorf("got %+v", res)
	}
	for range 2 {
		gone(t, l.answer(t))
	}
}

func contextEnds(t *testing.T, r exec.Runner) {
	l := listen(t)
	c := shell(t, l.call()+"sleep 600")
	c.Timeout = 5 * time.Second // a runner that is far away may need it
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done, reason := make(chan error, 1), errors.New("interrupted")
	go func() {
		_, err := r.Run(ctx, c)
		done <- err
	}()
	conn := l.answer(t)
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	gone(t, conn)
}

func contextEnded(t *testing.T, r exec.Runner) {
	c := shell(t, "echo > ran")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
		t.Errorf("it ran: %v, %v", left, err)
	}
}

// background: what holds the command's streams and runs on is killed, and not waited for.
func background(t *testing.T, r exec.Runner) {
	l := listen(t)
	res := run(t, r, shell(t, l.call()+"echo out; sleep 600 & exit 4"))
	if res.ExitCode != 4 || res.Killed != "" || string(res.Stdout) != "out\n" || res.Took > patience {
		t.Errorf("got %+v", res)
	}
	gone(t, l.answer(t))
}

func backgroundSession(t *testing.T, r exec.Runner) {
	need(t, r, "setsid")
	l := listen(t)
	res := run(t, r, shell(t, l.call()+"setsid -f sleep 600; exit 4"))
	if res.ExitCode != 4 || res.Took > patience {
		t.Errorf("got %+v", res)
	}
	gone(t, l.answer(t))
}

const note = 1 << 10 // bytes that the note in the middle may have

func longOutput(t *testing.T, r exec.Runner) {
	for name, tc := range map[string]struct {
		output, ask int
		cut         bool
	}{
		"shorter":            {999, 1000, false},
		"as long":            {1000, 1000, false},
		"longer":             {1001, 1000, true},
		"much longer":        {1_000_000, 1000, true},
		"as long by default": {exec.DefaultOutput, 0, false},
		"longer by default":  {exec.DefaultOutput + 1, 0, true},
	} {
		c := shell(t, fmt.Sprintf("out() { printf first; head -c %d /dev/zero | tr '\\0' x; printf last; }; out; out >&2", tc.output-9))
		c.Output = tc.ask
		res := run(t, r, c)
		most := tc.ask
		if most == 0 {
			most = exec.DefaultOutput
		}
		for _, out := range [][]byte{res.Stdout, res.Stderr} {
			if !bytes.HasPrefix(out, []byte("first")) || !bytes.HasSuffix(out, []byte("last")) {
				t.Errorf("%s: the ends are missing: %.100q", name, out)
			}
			noted := regexp.MustCompile(`x[^x]+x`).Match(out)
			if noted != tc.cut || !tc.cut && len(out) != tc.output || len(out) > most+note || tc.cut && len(out) < most {
				t.Errorf("%s: %d bytes, with a note %t", name, len(out), noted)
			}
		}
	}
}

func endlessOutput(t *testing.T, r exec.Runner) {
	c := shell(t, "yes >&2 & yes")
	c.Timeout, c.Output = time.Second, 100
	res := run(t, r, c)
	if res.Killed != "timeout" || len(res.Stdout) < 100 || len(res.Stdout) > 100+note || len(res.Stderr) < 100 || len(res.Stderr) > 100+note {
		t.Errorf("got %+v", res)
	}
}

func malformed(t *testing.T, r exec.Runner) {
	for name, spoil := range map[string]func(*exec.Command){
		"no arguments":          func(c *exec.Command) { c.Args = nil },
		"no program":            func(c *exec.Command) { c.Args[0] = "" },
		"NUL in an argument":    func(c *exec.Command) { c.Args = append(c.Args, "a\x00b") },
		"no directory":          func(c *exec.Command) { c.Dir = "" },
		"a relative directory":  func(c *exec.Command) { c.Dir = "." },
		"too much input":        func(c *exec.Command) { c.Stdin = make([]byte, exec.MaxStdin+1) },
		"too much time":         func(c *exec.Command) { c.Timeout = exec.MaxTimeout + 1 },
		"negative time":         func(c *exec.Command) { c.Timeout = -1 },
		"negative output":       func(c *exec.Command) { c.Output = -1 },
		"a nameless variable":   func(c *exec.Command) { c.Env = map[string]string{"": "x"} },
		"a variable's = sign":   func(c *exec.Command) { c.Env = map[string]string{"A=B": "x"} },
		"NUL in a variable":     func(c *exec.Command) { c.Env = map[string]string{"A": "a\x00b"} },
		"the runner's variable": func(c *exec.Command) { c.Env = map[string]string{"PATH": "/bin"} },
	} {
		c := shell(t, "echo > ran")
		dir := c.Dir
		spoil(&c)
		if _, err := r.Run(t.Context(), c); bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: it ran: %v, %v", name, left, err)
		}
	}
	c := shell(t, "true")
	c.Dir = filepath.Join(c.Dir, "missing")
	if _, err := r.Run(t.Context(), c); err == nil {
		t.Error("a missing directory: it ran")
	}
}

// missingProgram: it is named, for whoever asked for it can mend that.
func missingProgram(t *testing.T, r exec.Runner) {
	dir := t.TempDir()
	write(t, dir, "plain", "#!/bin/sh\n", 0o600)
	write(t, dir, "folder/x", "", 0o600)
	for _, program := range []string{"no-such-program", "./no-such-program", "/no/such-program", "./plain", "./folder"} {
		_, err := r.Run(t.Context(), exec.Command{Dir: dir, Args: []string{program}})
		if bdkerr.CodeOf(err) != bdkerr.InvalidRequest || !strings.Contains(fmt.Sprint(err), program) {
			t.Errorf("%s: got %v", program, err)
		}
	}
}

func concurrency(t *testing.T, r exec.Runner) {
	var all sync.WaitGroup
	for i := range 8 {
		c := shell(t, "cat > file; echo $N; cat file >&2; exit $N")
		c.Stdin, c.Env = fmt.Append(nil, "in ", i), map[string]string{"N": fmt.Sprint(i)}
		all.Go(func() {
			res, err := r.Run(t.Context(), c)
			if err != nil || res.ExitCode != i || string(res.Stdout) != fmt.Sprintln(i) || !bytes.Equal(res.Stderr, c.Stdin) {
				t.Errorf("%d: got %+v, %v", i, res, err)
			}
		})
	}
	all.Wait()
}
