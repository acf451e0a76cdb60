//go:build unix

package localexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/exec"
)

// limited is the shell's script that sets limits, which it is given in blocks of 512 bytes, files and processes, and becomes the
// program. A limit that is above what this process has itself changes nothing. Some shells call that of processes -p.
const limited = `{ ulimit -c 0; ulimit -f "$1"; ulimit -n "$2"; [ "$3" = 0 ] || ulimit -u "$3" || ulimit -p "$3"; } 2>/dev/null; shift 3; exec "$@"`

const (
	interval = 50 * time.Millisecond // how often processes are looked at
	drain    = time.Second           // how long output is read when all that is known to write it is dead
)

// process is a command that runs.
type process struct {
	pid     int // of its first process, and of its session
	tree    *tree
	out     [2]clip
	pipes   []*os.File     // our ends
	copying sync.WaitGroup // through them

	done  chan struct{} // closed when state and err are set
	state *os.ProcessState
	err   error
}

// run runs a well-formed command with an environment, whose directories are below own.
func (r *Runner) run(ctx context.Context, c exec.Command, env []string, own string) (exec.Result, error) {
	runtime.LockOSThread() // where there is a parent's death signal, it is the thread's
	defer runtime.UnlockOSThread()
	start := r.opts.Clock.Now()
	p, err := r.start(c, env, own)
	if err != nil {
		return exec.Result{}, err
	}
	why := r.watch(ctx, p, c.Timeout)
	if why != "" {
		r.kill(ctx, p)
		<-p.done
	}
	took := r.opts.Clock.Now().Sub(start)
	r.kill(ctx, p) // what it left
	r.drain(p)
	if why == ctxEnded {
		return exec.Result{}, ended(ctx)
	}
	if p.err != nil {
		return exec.Result{}, fmt.Errorf("waiting for a command: %w", p.err)
	}
	res := exec.Result{Stdout: p.out[0].bytes(), Stderr: p.out[1].bytes(), ExitCode: p.state.ExitCode(), Took: took}
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		res.Killed = why
		if why == "" {
			res.Killed = signalName(status.Signal())
		}
	}
	return res, nil
}

// start starts a command.
func (r *Runner) start(c exec.Command, env []string, own string) (*process, error) {
	p := &process{done: make(chan struct{}), out: [2]clip{{limit: c.Output}, {limit: c.Output}}}
	files := make([]*os.File, 0, 3) // the command's ends
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for i := range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, fmt.Errorf("making a pipe for a command: %w", err)
		}
		if i == 0 {
			read, write = write, read
		}
		p.pipes, files = append(p.pipes, read), append(files, write)
	}
	args := []string{"sh", "-c", limited, "sh", strconv.FormatInt(r.opts.FileSize/512, 10), strconv.Itoa(r.opts.OpenFiles), "0"}
	if n := threads(); n > 0 { // the system counts all that the user has, other commands too
		args[len(args)-1] = strconv.Itoa(n + 8*r.opts.Processes)
	}
	child, err := os.StartProcess("/bin/sh", append(args, c.Args...), &os.ProcAttr{Dir: c.Dir, Env: env, Files: files, Sys: attributes()})
	if err != nil {
		p.close()
		if errors.Is(err, syscall.E2BIG) {
			return nil, bdkerr.New(bdkerr.InvalidRequest, "the command's arguments and environment are too long for this system")
		}
		return nil, fmt.Errorf("starting a command: %w", err)
	}
	p.pid, p.tree = child.Pid, newTree(child.Pid, own, r.opts.Alone)
	go func() {
		p.state, p.err = child.Wait()
		close(p.done)
	}()
	p.copying.Go(func() {
		_, _ = io.Copy(p.pipes[0], bytes.NewReader(c.Stdin)) // it need not be read
		_ = p.pipes[0].Close()
	})
	for i := range p.out {
		p.copying.Go(func() { _, _ = io.Copy(&p.out[i], p.pipes[i+1]) }) // what was read is all there is
	}
	return p, nil
}

func (p *process) close() {
	for _, f := range p.pipes {
		_ = f.Close()
	}
}

// ctxEnded is why a command is killed if nobody waits for it any more.
const ctxEnded = "context"

// watch waits for the end of a command and returns "", or why it should be killed.
func (r *Runner) watch(ctx context.Context, p *process, timeout time.Duration) string {
	late, stop := r.opts.Clock.After(timeout)
	defer stop()
	for pause := interval; ; {
		tick, stop := r.opts.Clock.After(pause)
		select {
		case <-tick:
		case <-p.done:
			stop()
			return ""
		case <-ctx.Done():
			stop()
			return ctxEnded
		case <-late:
			stop()
			return "timeout"
		}
		before := r.opts.Clock.Now()
		use := p.tree.look()
		switch {
		case use.memory > r.opts.Memory:
			return "memory"
		case len(use.alive) > r.opts.Processes:
			return "processes"
		}
		pause = max(interval, 4*r.opts.Clock.Now().Sub(before)) // on a machine with many processes it takes a while
	}
}

// kill kills what is alive of a command.
func (r *Runner) kill(ctx context.Context, p *process) {
	ctx = context.WithoutCancel(ctx)
	const rounds, patient = 12, 3 // about four seconds, for processes that cannot be killed; a few milliseconds to be sure
	for i := range rounds {
		_ = syscall.Kill(-p.pid, syscall.SIGSTOP) // all at once: they start no others while they are looked for
		use := p.tree.look()
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		for _, pid := range use.alive {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(use.alive) == 0 && (!use.unsure || i == patient) {
			return
		}
		_ = clock.Sleep(ctx, r.opts.Clock, time.Millisecond<<i) // never ends early
	}
}

// drain waits for the rest of the output.
func (r *Runner) drain(p *process) {
	all := make(chan struct{})
	go func() {
		p.copying.Wait()
		close(all)
	}()
	late, stop := r.opts.Clock.After(drain)
	defer stop()
	select {
	case <-all:
	case <-late: // somebody who got away holds a pipe
	}
	p.close()
	<-all
}

// signalName returns how a signal is called everywhere.
func signalName(s syscall.Signal) string {
	name, ok := map[syscall.Signal]string{
		syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE", syscall.SIGHUP: "SIGHUP",
		syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL", syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT",
		syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS", syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1",
		syscall.SIGUSR2: "SIGUSR2", syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
	}[s]
	if !ok {
		return "signal " + strconv.Itoa(int(s))
	}
	return name
}
