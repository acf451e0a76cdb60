package awsloop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// mark is the variable that all processes of an account have in their environment, with the folder of its state.
const mark = "BDK_AWSLOOP="

// separate puts the program into a group of its own, which ends when the test is killed.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // gone already is as good

// Kill ends all processes of the function with the given handler at once, those that work and those that wait, as a crash does,
// and returns how many. It returns when they are gone. "" is for all functions.
func (l *Loop) Kill(handler string) int {
	pids := l.processes(handler)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
	}
	for range 100 {
		if len(l.processes(handler)) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return len(pids)
}

// processes returns the ids of the processes of the function with the given handler, "" for all functions.
func (l *Loop) processes(handler string) []int {
	var pids []int
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err != nil || !has(env, mark+l.dir) || handler != "" && !has(env, "_HANDLER="+handler) {
			continue // a zombie's is empty
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func has(env []byte, variable string) bool {
	return bytes.Contains(append([]byte{0}, env...), []byte("\x00"+variable+"\x00"))
}
