// Package supervisor keeps one server program running on a listening socket that it owns, and replaces the program
// without a gap: the old process answers until the new one says that it is ready.
//
// The contract with a program: descriptor 3 is the listening socket; it writes a byte to descriptor 4 once it serves;
// on SIGTERM it finishes what it is doing and ends; when its standard input ends, the supervisor is gone and it ends too.
// On Linux the kernel also kills it then.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
)

// Program is what to run.
type Program struct {
	Path string
	Args []string // without the program's name
	Env  []string // the whole environment
	Dir  string   // the working directory; default: that of this process

	Wanted time.Time // when it was asked for, which may be before it was built; default: when it is started
}

// Kind says what a [Notice] is about.
type Kind string

// The kinds of notice.
const (
	Ready    Kind = "ready"    // the program serves; the one before is being drained
	Rejected Kind = "rejected" // a new program never became ready; the one before goes on
	Crashed  Kind = "crashed"  // the serving program ended by itself
)

// Notice says what happened to a program.
type Notice struct {
	Kind Kind
	PID  int
	Err  error         // how the process ended, or why it was given up; nil for Ready
	Wait time.Duration // until the last program that served is started again; 0 if that is not planned
	Took time.Duration // Ready: since it was wanted
}

// Options are all optional.
type Options struct {
	Stdout, Stderr io.Writer     // of the programs; default: discarded
	Clock          clock.Clock   // default: the machine's
	ReadyTimeout   time.Duration // a program that is not ready by then is given up; default: 30 s
	DrainTimeout   time.Duration // what the old program has for finishing its requests; default: 30 s
	StopTimeout    time.Duration // what programs have for ending when Run ends; default: 1.5 s
	MinWait        time.Duration // before a crashed program is started again, doubled with each crash; default: 200 ms
	MaxWait        time.Duration // at most; default: 10 s
	Notify         func(Notice)  // is told what happens, from one goroutine; default: nobody
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Notify == nil {
		c.Notify = func(Notice) {}
	}
	for _, d := range []struct {
		field    *time.Duration
		fallback time.Duration
	}{
		{&c.ReadyTimeout, 30 * time.Second},
		{&c.DrainTimeout, 30 * time.Second},
		{&c.StopTimeout, 1500 * time.Millisecond},
		{&c.MinWait, 200 * time.Millisecond},
		{&c.MaxWait, 10 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.fallback
		}
	}
	return c
}

// Run runs each program that comes from programs in place of the one before, until ctx ends. It returns when no process
// of it is left. Connections wait in the socket while no program serves.
func Run(ctx context.Context, socket *os.File, programs <-chan Program, opts *Options) error {
	// The kernel ends the processes when the thread that started them does, so one thread starts them all.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	alive, lifeline, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making the lifeline of the programs: %w", err)
	}
	defer alive.Close()    //nolint:errcheck // nothing was written
	defer lifeline.Close() //nolint:errcheck // nothing was written
	s := &supervisor{
		opts: opts.withDefaults(), socket: socket, alive: alive,
		procs: map[*process]struct{}{}, ready: make(chan *process), exited: make(chan *process),
	}
	s.loop(ctx, programs)
	s.stop()
	return nil
}

// supervisor is used by one goroutine.
type supervisor struct {
	opts   Options
	socket *os.File
	alive  *os.File // the programs' standard input; it ends with this process

	procs   map[*process]struct{} // all that have not ended
	next    *process              // started, not ready; may be nil
	current *process              // serves; may be nil
	good    *Program              // the last one that served; it is started again when it crashes
	crashes int                   // since a program last served for long
	retry   <-chan time.Time      // when to start good again; nil if that is not due

	ready  chan *process
	exited chan *process
}

func (s *supervisor) loop(ctx context.Context, programs <-chan Program) {
	for {
		var late <-chan time.Time
		if s.next != nil {
			late = s.next.late
		}
		select {
		case <-ctx.Done():
			return
		case p := <-programs:
			s.crashes = 0
			s.start(p)
		case p := <-s.ready:
			s.promote(p)
		case p := <-s.exited:
			s.bury(p)
		case <-late:
			s.reject(fmt.Errorf("it was not ready within %s", s.opts.ReadyTimeout))
		case <-s.retry:
			s.start(*s.good)
		}
	}
}

// start starts a program that will take over once it is ready.
func (s *supervisor) start(p Program) {
	s.retry = nil
	if s.next != nil { // overtaken; it may have accepted a request already
		s.drain(s.next)
		s.next = nil
	}
	proc, err := s.spawn(p)
	if err != nil {
		s.opts.Notify(Notice{Kind: Rejected, Err: err, Wait: s.retryLater()})
		return
	}
	s.next = proc
}

// promote lets a program that is ready take over.
func (s *supervisor) promote(p *process) {
	if p != s.next {
		return // overtaken meanwhile
	}
	old := s.current
	wanted := p.program.Wanted
	if wanted.IsZero() {
		wanted = p.started
	}
	p.program.Wanted = time.Time{} // when it is started again that is because it crashed
	s.current, s.next, s.good = p, nil, &p.program
	s.opts.Notify(Notice{Kind: Ready, PID: p.pid(), Took: s.opts.Clock.Now().Sub(wanted)})
	if old != nil {
		s.drain(old)
	}
}

// bury notes that a process has ended.
func (s *supervisor) bury(p *process) {
	delete(s.procs, p)
	switch p {
	case s.next:
		s.next = nil
		s.opts.Notify(Notice{Kind: Rejected, PID: p.pid(), Err: p.end(), Wait: s.retryLater()})
	case s.current:
		s.current = nil
		if s.opts.Clock.Now().Sub(p.started) > s.opts.MaxWait {
			s.crashes = 0
		}
		s.opts.Notify(Notice{Kind: Crashed, PID: p.pid(), Err: p.end(), Wait: s.retryLater()})
	}
}

// reject gives up the program that is starting.
func (s *supervisor) reject(why error) {
	p := s.next
	s.next = nil
	s.drain(p)
	s.opts.Notify(Notice{Kind: Rejected, PID: p.pid(), Err: why, Wait: s.retryLater()})
}

// retryLater arranges that the last good program is started again if nothing serves or is about to. It returns when.
func (s *supervisor) retryLater() time.Duration {
	if s.current != nil || s.next != nil || s.good == nil {
		return 0
	}
	wait := min(s.opts.MinWait<<min(s.crashes, 20), s.opts.MaxWait)
	s.retry, _ = s.opts.Clock.After(wait)
	s.crashes++
	return wait
}

// drain asks a process to finish, and kills it if it takes too long.
func (s *supervisor) drain(p *process) {
	p.terminate()
	expired, stop := s.opts.Clock.After(s.opts.DrainTimeout)
	go func() {
		defer stop()
		select {
		case <-expired:
			p.kill()
		case <-p.done:
		}
	}()
}

// stop ends all processes.
func (s *supervisor) stop() {
	for p := range s.procs {
		p.terminate()
	}
	expired, cancel := s.opts.Clock.After(s.opts.StopTimeout)
	defer cancel()
	for len(s.procs) > 0 {
		select {
		case <-s.ready:
		case p := <-s.exited:
			delete(s.procs, p)
		case <-expired:
			for p := range s.procs {
				p.kill()
			}
		}
	}
}

var errEnded = errors.New("it ended without an error")
