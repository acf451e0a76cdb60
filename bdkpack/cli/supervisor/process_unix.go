//go:build unix

package supervisor

import "syscall"

// terminate asks the process to finish.
func (p *process) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// kill ends the process and everything in its group.
func (p *process) kill() { _ = syscall.Kill(-p.pid(), syscall.SIGKILL) }
