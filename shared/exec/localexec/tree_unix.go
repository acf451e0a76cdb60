//go:build unix && !linux

package localexec

import "syscall"

// attributes returns those of a command: it has a session of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// tree knows nothing of processes.
type tree struct{}

type usage struct {
	alive  []int
	memory int64
	unsure bool
}

func newTree(int, string, bool) *tree { return &tree{} }

func (*tree) look() (u usage) { return u }

func threads() int { return 0 }

func adopt() {}

// KillLeft does nothing on this operating system.
func KillLeft(string) {}
