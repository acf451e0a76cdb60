package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// process is a running program. It leads a process group, so that what it starts ends with it.
type process struct {
	program Program
	cmd     *exec.Cmd
	started time.Time
	late    <-chan time.Time // when it should have been ready
	done    chan struct{}    // closed when it has ended
	err     error            // how it ended; set before done is closed
}

// spawn starts a program and arranges that its readiness and its end are told to the loop.
func (s *supervisor) spawn(program Program) (*process, error) {
	ready, told, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the pipe for readiness: %w", err)
	}
	defer told.Close() //nolint:errcheck // the program has its own
	cmd := exec.CommandContext(context.Background(), program.Path, program.Args...)
	cmd.Env, cmd.Dir = program.Env, program.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.alive, s.opts.Stdout, s.opts.Stderr
	cmd.ExtraFiles = []*os.File{s.socket, told}
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = time.Second // for output that a grandchild holds open
	p := &process{program: program, cmd: cmd, started: s.opts.Clock.Now(), done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		_ = ready.Close()
		return nil, fmt.Errorf("starting the agent program: %w", err)
	}
	late, stop := s.opts.Clock.After(s.opts.ReadyTimeout)
	p.late = late
	s.procs[p] = struct{}{}
	go func() {
		defer stop()
		defer ready.Close() //nolint:errcheck // read only
		if n, _ := ready.Read(make([]byte, 1)); n == 1 {
			s.ready <- p
		}
		p.err = cmd.Wait()
		p.kill() // whatever of its group is left
		close(p.done)
		s.exited <- p
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// end returns how the process ended, never nil.
func (p *process) end() error {
	if p.err == nil {
		return errEnded
	}
	return p.err
}
