// Package exec is the port to whatever runs an agent's scripts and shell commands: a child process on one machine, a function
// without permissions in the cloud. Adapters live in the packages below it and pass the suite in package exectest.
package exec

import (
	"context"
	"time"
)

// Bounds of a command whose fields are zero, and what no command may exceed.
const (
	DefaultTimeout = time.Minute
	MaxTimeout     = 10 * time.Minute
	DefaultOutput  = 256 << 10 // bytes
	MaxStdin       = 4 << 20   // bytes
)

// Command is one program to run. It sees the files of Dir, a clean environment and nothing else that the host has of its own.
type Command struct {
	Dir     string            // the directory it runs in, absolute; what it changes there is there when Run returns
	Args    []string          // program and arguments; a program without a slash is looked up in the clean PATH
	Stdin   []byte            // at most MaxStdin
	Env     map[string]string // besides PATH, HOME, LANG and TMPDIR
	Timeout time.Duration     // 0: DefaultTimeout; at most MaxTimeout
	Output  int               // bytes that are kept of Stdout and of Stderr, their heads and tails; 0: DefaultOutput
}

// Result is what became of a command that was started.
type Result struct {
	Stdout, Stderr []byte        // cut in the middle, with a note there, if they were longer than Command.Output
	ExitCode       int           // -1 if it was killed
	Killed         string        // why it was killed: "timeout", "memory", "processes", or a signal's name; "" if it was not
	Took           time.Duration // from its start to its end
}

// A Runner runs commands. Implementations are safe for concurrent use.
type Runner interface {
	// Run runs a command to its end and kills what it leaves running. An exit code other than 0 is a Result, not an error. An error
	// means that the command did not run, or that nothing is known of it; it is a *bdkerr.Error of code InvalidRequest if the
	// command is not well formed. If ctx ends the command is killed and the error is that of ctx.
	Run(ctx context.Context, c Command) (Result, error)
}
