package supervisor

import "syscall"

// A socket cannot be passed to a process here: spawn fails before any of this is used.

func (p *process) terminate() { _ = p.cmd.Process.Kill() }

func (p *process) kill() { _ = p.cmd.Process.Kill() }

func ownGroup() *syscall.SysProcAttr { return nil }
