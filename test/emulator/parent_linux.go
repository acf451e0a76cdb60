package emulator

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the program end when the test is killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
