// Package sfntest is Step Functions for tests: a [Server] that speaks the service's protocol and runs one state machine by
// its definition, calling Go functions in place of Lambda ones.
//
// What it knows of Amazon States Language it does as the service does; a definition with anything else is refused. It knows:
// Task (a function, or lambda:invoke.waitForTaskToken), Choice (StringEquals, IsPresent, And, Not), inline Map, Pass, Succeed, Fail,
// Parameters, ResultSelector, ResultPath, ItemsPath, ItemSelector, Retry, Catch, TimeoutSeconds, and paths of names and indexes.
//
// Jitter is left out: a retry waits for the longest time it may. A Map that is redriven runs all its iterations again, where the service
// runs those that had not succeeded. Time is that of a clock; under testing/synctest, with [Server.Client], no test waits.
package sfntest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
)

// Machine is the ARN of the state machine of every [Server].
const Machine = "arn:aws:states:us-east-1:000000000000:stateMachine:turns"

// A Function stands for a Lambda function: it takes an event and returns what its answer is marshalled from. Its context ends with the
// server only: neither a timeout nor the end of an execution stops a function that is running. A *[Fault] is the error of that name; any other
// error and a panic are what the service makes of those of a function in Go.
type Function func(ctx context.Context, event json.RawMessage) (any, error)

// Handle returns f as a Function.
func Handle[In, Out any](f func(context.Context, In) (Out, error)) Function {
	return func(ctx context.Context, event json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(event, &in); err != nil {
			return nil, err
		}
		return f(ctx, in)
	}
}

// A Fault is an error with a name that a state machine tells apart, such as Lambda.TooManyRequestsException.
type Fault struct{ Name, Cause string } //nolint:errname // as the service calls it

// Error returns the name and the cause.
func (f *Fault) Error() string { return f.Name + ": " + f.Cause }

// Options adjust a Server. The zero value is usable.
type Options struct {
	Clock  clock.Clock // default: the system clock
	Closed string      // the error for a token that nobody waits for any more: TaskTimedOut (default), TaskDoesNotExist or InvalidToken
}

// Server is a fake of the service. It is an [net/http.Handler] and safe for concurrent use.
type Server struct {
	machine   *machine
	functions map[string]Function
	opts      Options
	base      context.Context //nolint:containedctx // of functions: it ends with the server
	cancel    context.CancelFunc
	work      sync.WaitGroup

	mu         sync.Mutex
	executions map[string]*execution // by name
	tokens     map[string]*task
	issued     int
}

// Execution is what is known of an execution.
type Execution struct {
	Status       string // as in the service's API
	Error, Cause string
	Began, Ended time.Time // Ended is zero while it runs
	Transitions  []string  // the names of the states that were entered, in order; one more time for each retry
}

// New returns a server with one state machine, [Machine], that calls functions by their ARNs. Definition is the machine with its
// placeholders replaced.
func New(definition string, functions map[string]Function, opts Options) (*Server, error) {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Closed == "" {
		opts.Closed = "TaskTimedOut"
	}
	m, err := parse(definition, functions)
	if err != nil {
		return nil, err
	}
	base, cancel := context.WithCancel(context.Background())
	return &Server{
		machine: m, functions: functions, opts: opts, base: base, cancel: cancel,
		executions: make(map[string]*execution), tokens: make(map[string]*task),
	}, nil
}

// Close ends all executions and the contexts of the functions that run, and waits for them.
func (s *Server) Close() {
	s.cancel()
	s.work.Wait()
}

// Execution returns what is known of the execution with the given name, the zero Execution if there is none.
func (s *Server) Execution(name string) Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.executions[name]
	if x == nil {
		return Execution{}
	}
	out := x.Execution
	out.Transitions = append([]string(nil), x.Transitions...)
	return out
}

// Wait waits until the execution with the given name does not run, and returns what is known of it then.
func (s *Server) Wait(ctx context.Context, name string) (Execution, error) {
	s.mu.Lock()
	x := s.executions[name]
	if x == nil {
		s.mu.Unlock()
		return Execution{}, fmt.Errorf("there is no execution %q", name)
	}
	over := x.over
	s.mu.Unlock()
	select {
	case <-over:
		return s.Execution(name), nil
	case <-ctx.Done():
		return s.Execution(name), context.Cause(ctx)
	}
}

type execution struct {
	Execution

	name, input string
	redrives    int
	cancel      context.CancelFunc
	over        chan struct{} // closed when it does not run any more
	at          string        // the state it is in, or ended in
	data        any           // the input of that state
}

func (x *execution) arn() string {
	return strings.Replace(Machine, ":stateMachine:", ":execution:", 1) + ":" + x.name
}

// run runs an execution from the state it is at. The caller holds mu.
func (s *Server) run(x *execution) {
	ctx, cancel := context.WithCancel(s.base)
	x.Status, x.Error, x.Cause, x.Ended = "RUNNING", "", "", time.Time{}
	x.cancel, x.over = cancel, make(chan struct{})
	s.work.Go(func() {
		defer cancel()
		fault := s.limited(ctx, s.machine.TimeoutSeconds, func(ctx context.Context) *Fault {
			r := &run{Server: s, x: x, ctx: ctx, context: map[string]any{
				"Execution": map[string]any{"Id": x.arn(), "Name": x.name},
			}}
			_, fault := r.states(s.machine.states, x.at, x.data, true)
			return fault
		})
		switch {
		case fault == nil:
			s.end(ctx, x, "SUCCEEDED", Fault{})
		case fault.Name == machineTimeout:
			s.end(ctx, x, "TIMED_OUT", Fault{"States.Timeout", fault.Cause})
		default:
			s.end(ctx, x, "FAILED", *fault)
		}
	})
}

// machineTimeout tells the time limit of the machine from that of a task, which may be caught.
const machineTimeout = "machine timeout"

// limited calls do with a context that ends after the machine's time limit.
func (s *Server) limited(ctx context.Context, seconds int, do func(context.Context) *Fault) *Fault {
	if seconds == 0 {
		return do(ctx)
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	late, stop := s.opts.Clock.After(time.Duration(seconds) * time.Second)
	defer stop()
	var fault *Fault
	done := make(chan struct{})
	s.work.Go(func() {
		defer close(done)
		fault = do(bounded)
	})
	select {
	case <-done:
		return fault
	case <-late:
		cancel()
		<-done
		return &Fault{Name: machineTimeout, Cause: fmt.Sprintf("the execution ran for %d s", seconds)}
	}
}

// end records how an execution ended, unless it was stopped before.
func (s *Server) end(ctx context.Context, x *execution, status string, why Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.leave(x, status, why)
	}
}

// leave makes an execution one that does not run. The caller holds mu.
func (s *Server) leave(x *execution, status string, why Fault) {
	x.Status, x.Error, x.Cause, x.Ended = status, why.Name, why.Cause, s.opts.Clock.Now()
	close(x.over)
}

// call calls a function. It goes on if ctx ends before it does.
func (s *Server) call(ctx context.Context, arn string, event any) (any, *Fault) {
	payload, err := json.Marshal(event)
	if err != nil {
		return nil, runtimeFault("marshalling the event: " + err.Error())
	}
	type answer struct {
		out   any
		fault *Fault
	}
	done := make(chan answer, 1)
	s.work.Go(func() {
		out, fault := invoke(s.base, s.functions[arn], payload)
		done <- answer{out, fault}
	})
	select {
	case a := <-done:
		return a.out, a.fault
	case <-ctx.Done():
		return nil, stopped()
	}
}

// invoke calls f as Lambda does: what it returns has been JSON.
func invoke(ctx context.Context, f Function, event []byte) (out any, fault *Fault) {
	defer func() {
		if p := recover(); p != nil {
			out, fault = nil, returned(reflect.TypeOf(p).Name(), fmt.Sprint(p))
		}
	}()
	got, err := f(ctx, event)
	if err != nil {
		if named, ok := err.(*Fault); ok { //nolint:errorlint // wrapped by the function it is an error of its own
			return nil, named
		}
		name := reflect.TypeOf(err)
		if name.Kind() == reflect.Pointer {
			name = name.Elem()
		}
		return nil, returned(name.Name(), err.Error())
	}
	b, err := json.Marshal(got)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, returned("Runtime.MarshalError", err.Error())
	}
	return out, nil
}

// returned is the fault of a function that returned an error.
func returned(name, message string) *Fault {
	cause, _ := json.Marshal(map[string]string{"errorMessage": message, "errorType": name}) //nolint:errchkjson // strings only
	return &Fault{Name: name, Cause: string(cause)}
}

// A task waits for its token to come back.
type task struct {
	answer chan answer // holds one
	closed bool        // guarded by the server's mu
}

type answer struct {
	out   any
	fault *Fault
}

func (s *Server) newToken() (string, *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	token, t := "token-"+strconv.Itoa(s.issued), &task{answer: make(chan answer, 1)}
	s.tokens[token] = t
	return token, t
}

func (s *Server) closeToken(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.closed = true
}

// validName is what the service takes for the name of an execution, and no more than is wise.
var validName = regexp.MustCompile(`^[0-9A-Za-z_-]{1,80}$`)
