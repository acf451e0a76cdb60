package localexec_test

import (
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/localexec"
)

const orphansEnv = "LOCALEXEC_ORPHANS" // set in the process that takes init's place

// TestOrphansAreBuried: a process that takes the place of init, as in a container, keeps no dead children of commands, and its own.
func TestOrphansAreBuried(t *testing.T) {
	if os.Getenv(orphansEnv) != "" {
		orphans(t)
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.CommandContext(t.Context(), self, "-test.run=^TestOrphansAreBuried$")
	cmd.Env = append(os.Environ(), orphansEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// orphans is the test in that process.
func orphans(t *testing.T) {
	t.Helper()
	const becomeInit = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, no := syscall.RawSyscall(syscall.SYS_PRCTL, becomeInit, 1, 0); no != 0 {
		t.Fatal(no)
	}
	own := osexec.CommandContext(t.Context(), "sh", "-c", "exit 3") // its end is waited for after the commands'
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"(sleep 600 & sleep 600 &); setsid -f sleep 600", "(sleep 0 &); sleep 0.2"} {
		run(t, localexec.Options{}, bash(t, script))
	}
	if _ = own.Wait(); own.ProcessState.ExitCode() != 3 {
		t.Error("its own child was taken away")
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("there is a child: %d, %v", pid, err)
	}
}

const aloneEnv = "LOCALEXEC_ALONE" // set in the process that runs nothing but commands

// TestAlone: nothing gets away from a process that runs nothing but commands.
func TestAlone(t *testing.T) {
	if os.Getenv(aloneEnv) == "" {
		t.Parallel()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := osexec.CommandContext(t.Context(), self, "-test.run=^TestAlone$")
		cmd.Env = append(os.Environ(), aloneEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	l, call := listen(t)
	res := run(t, localexec.Options{Alone: true}, bash(t, "setsid -f env -i bash -c '"+call+"echo >ready; (setsid -f sleep 600); sleep 600'; until [ -e ready ]; do :; done; exit 4"))
	if res.ExitCode != 4 {
		t.Errorf("got %+v", res)
	}
	gone(t, l)
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("there is a child: %d, %v", pid, err)
	}
}

const killedEnv = "LOCALEXEC_KILLED" // set in the process that is killed: the directory it works in

// TestKillLeft: what a killed process leaves is found by the directory it worked in.
func TestKillLeft(t *testing.T) {
	if dir := os.Getenv(killedEnv); dir != "" {
		c := exec.Command{Dir: dir, Args: []string{"bash", "-c", os.Getenv("SCRIPT")}}
		_, err := localexec.New(localexec.Options{Temp: dir}).Run(t.Context(), c)
		t.Fatal("it was not killed", err)
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l, call := listen(t)
	cmd := osexec.CommandContext(t.Context(), self, "-test.run=^TestKillLeft$")
	cmd.Env = append(os.Environ(), killedEnv+"="+dir, "SCRIPT=setsid -f bash -c '"+call+"sleep 600'; sleep 600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	localexec.KillLeft(dir)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("it lives: %v", err)
	}
}

// TestClearedEnvironment: a process with a session of its own and nothing in its environment is known by the parent that it had.
func TestClearedEnvironment(t *testing.T) {
	t.Parallel()
	l, call := listen(t)
	res := run(t, localexec.Options{}, bash(t, "(setsid env -i bash -c '"+call+"sleep 600' & sleep 0.5); exit 4"))
	if res.ExitCode != 4 {
		t.Errorf("got %+v", res)
	}
	gone(t, l)
}

// TestWhoGetsAwayIsNotWaitedFor: even if it holds the command's streams.
func TestWhoGetsAwayIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	start := time.Now()
	res := run(t, localexec.Options{}, bash(t, "echo out; setsid -f env -i sleep 15; sleep 0.03"))
	if took := time.Since(start); string(res.Stdout) != "out\n" || took > 10*time.Second {
		t.Errorf("after %s: got %+v", took, res)
	}
}
