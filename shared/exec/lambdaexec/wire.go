package lambdaexec

import (
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
)

// Limits of what is sent. Lambda takes 6 MB for an event, and for an answer: base64 makes three bytes four.
const (
	MaxOutput = 1 << 20 // bytes of exec.Command.Output: an answer has that twice

	maxInline = 3_000_000 / 4 * 3 // of files, or of files and standard input, that travel in an event or an answer
	maxText   = 500               // bytes of a text of the function's that is shown
)

// Request is the event of the function.
type Request struct {
	Args    []string          `json:"args"`
	Stdin   Part              `json:"stdin,omitzero"`
	Env     map[string]string `json:"env,omitempty"`
	Timeout int64             `json:"timeoutMs,omitempty"` // 0: exec.DefaultTimeout
	Output  int               `json:"output,omitempty"`    // 0: exec.DefaultOutput
	End     int64             `json:"end,omitempty"`       // when nobody waits for the answer any more, in milliseconds of Unix time; 0: never
	Files   Part              `json:"files,omitzero"`      // an archive of the directory that the command runs in
	Put     string            `json:"put,omitempty"`       // where an archive of changes goes that is too large for the answer
}

// Part is bytes, or where they are to be had.
type Part struct {
	Data []byte `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Answer is what the function answers.
type Answer struct {
	Stdout   []byte `json:"stdout,omitempty"`
	Stderr   []byte `json:"stderr,omitempty"`
	ExitCode int    `json:"exitCode"`
	Killed   string `json:"killed,omitempty"`
	Took     int64  `json:"tookMs"`
	Changes  []byte `json:"changes,omitempty"` // an archive of what has changed
	Stored   int64  `json:"stored,omitempty"`  // its bytes, if it was put where the request says instead
	Fault    *Fault `json:"fault,omitempty"`   // why all else is empty
}

// Fault is why there is no result.
type Fault struct {
	Code    bdkerr.Code `json:"code"` // bdkerr.Internal, or what the caller can mend
	Message string      `json:"message"`
}

// command returns what is to be run in a directory.
func (r Request) command(dir string, stdin []byte) exec.Command {
	return exec.Command{
		Dir: dir, Args: r.Args, Stdin: stdin, Env: r.Env, Timeout: time.Duration(r.Timeout) * time.Millisecond, Output: r.Output,
	}
}

// result returns what became of a command, unless the answer cannot be one to it.
func (a Answer) result(output int) (res exec.Result, ok bool) {
	if output == 0 {
		output = exec.DefaultOutput
	}
	const note = 1 << 10 // of what was cut
	most := output + note
	if len(a.Stdout) > most || len(a.Stderr) > most || len(a.Killed) > maxText || a.Took < 0 || a.Took > patience.Milliseconds() {
		return res, false
	}
	return exec.Result{
		Stdout: a.Stdout, Stderr: a.Stderr, ExitCode: a.ExitCode, Killed: a.Killed, Took: time.Duration(a.Took) * time.Millisecond,
	}, true
}
