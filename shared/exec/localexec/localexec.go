// Package localexec runs commands as child processes of this one.
//
// A command has a session and two directories of its own, an environment that holds nothing of this process's, and limits. At its end
// everything that it started is killed: what is in its session; on Linux also its descendants with another session, which are known by
// their parents while these live, and by their environment.
//
// It keeps mistakes in, not malice. A command runs as this process's user, and may read, change and reach over the network what that
// user may. A process that makes a session of its own, clears its environment and loses its parent within a fraction of a second gets
// away, but for Options.Alone. If this process is killed, the first process of each command dies with it, and [KillLeft] finds the others. The memory and the number of processes are looked at some times a second, and on Linux alone: both are exceeded for a moment. What
// starts processes as fast as it can is stopped by the system as well, but not if this process is root's: then it may take all that
// the machine has before it is seen. On Windows no command runs.
package localexec

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/exec"
)

// Options of a [Runner]. The limits are those of one command with all that it starts, if not said otherwise.
type Options struct {
	Temp      string      // where commands' own directories are made; "": the system's directory for temporary files
	Memory    int64       // bytes that its processes have for themselves; 0: 1 GiB. More: it is killed, "memory"
	Processes int         // that run at once; 0: 256. More: it is killed, "processes"
	FileSize  int64       // bytes of any file that it writes; 0: 1 GiB. More: the writing process is killed by SIGXFSZ
	OpenFiles int         // of each of its processes; 0: 1024. More: it gets an error
	Clock     clock.Clock // nil: the system's

	// Alone says that this process starts nothing but commands, one at a time. Then whatever it is the parent of is the command's, and on
	// Linux it becomes the parent of what has lost its own: nothing gets away.
	Alone bool
}

// Runner is an [exec.Runner] on this machine, made by [New]. It is safe for concurrent use.
type Runner struct{ opts Options }

var _ exec.Runner = (*Runner)(nil)

// New returns a runner.
func New(opts Options) *Runner {
	opts.Memory = cmp.Or(opts.Memory, 1<<30)
	opts.Processes = cmp.Or(opts.Processes, 256)
	opts.FileSize = cmp.Or(opts.FileSize, 1<<30)
	opts.OpenFiles = cmp.Or(opts.OpenFiles, 1024)
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Alone {
		adopt()
	}
	return &Runner{opts}
}

// Run implements [exec.Runner]. A program that is missing or not executable is an InvalidRequest; one whose interpreter is missing ends
// with exit code 126 or 127, as in a shell. PATH, HOME, LANG and TMPDIR cannot be set by the command.
func (r *Runner) Run(ctx context.Context, c exec.Command) (res exec.Result, err error) {
	if ctx.Err() != nil {
		return res, ended(ctx)
	}
	c.Timeout, c.Output = cmp.Or(c.Timeout, exec.DefaultTimeout), cmp.Or(c.Output, exec.DefaultOutput)
	if err := check(c); err != nil {
		return res, err
	}
	path := searchPath()
	if err := checkProgram(c.Dir, c.Args[0], path); err != nil {
		return res, err
	}
	own, err := os.MkdirTemp(r.opts.Temp, "bdk-run-")
	if err != nil {
		return res, fmt.Errorf("making a command's own directory: %w", err)
	}
	defer remove(own)
	env := []string{"PATH=" + strings.Join(path, ":"), "LANG=C.UTF-8"}
	for name, dir := range map[string]string{"HOME": "home", "TMPDIR": "tmp"} {
		dir = filepath.Join(own, dir)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return res, fmt.Errorf("making a command's own directory: %w", err)
		}
		env = append(env, name+"="+dir)
	}
	for name, value := range c.Env {
		env = append(env, name+"="+value)
	}
	return r.run(ctx, c, env, own)
}

// ended returns the error of a command whose context has ended.
func ended(ctx context.Context) error {
	return fmt.Errorf("running a command: %w", context.Cause(ctx))
}

// searchPath returns where programs are looked up.
func searchPath() []string {
	path := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	if runtime.GOOS == "darwin" {
		path = append([]string{"/opt/homebrew/bin"}, path...)
	}
	const managed = "/var/lang/bin" // Python's, in a function
	if _, err := os.Stat(managed); err == nil {
		path = append([]string{managed}, path...)
	}
	return path
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check fails for a command that is not well formed.
func check(c exec.Command) error {
	switch {
	case !filepath.IsAbs(c.Dir) || strings.Contains(c.Dir, "\x00"):
		return bdkerr.New(bdkerr.InvalidRequest, "the directory %.100q of the command is not an absolute path", c.Dir)
	case len(c.Args) == 0 || c.Args[0] == "":
		return bdkerr.New(bdkerr.InvalidRequest, "the command names no program")
	case len(c.Stdin) > exec.MaxStdin:
		return bdkerr.New(bdkerr.InvalidRequest, "the command's standard input has %d bytes: at most %d are allowed", len(c.Stdin), exec.MaxStdin)
	case c.Timeout < 0 || c.Timeout > exec.MaxTimeout:
		return bdkerr.New(bdkerr.InvalidRequest, "the command's timeout is %s: it must be from 0 to %s", c.Timeout, exec.MaxTimeout)
	case c.Output < 0:
		return bdkerr.New(bdkerr.InvalidRequest, "the command asks for %d bytes of output", c.Output)
	}
	for i, arg := range c.Args {
		if strings.Contains(arg, "\x00") {
			return bdkerr.New(bdkerr.InvalidRequest, "argument %d of the command has a NUL byte", i)
		}
	}
	for name, value := range c.Env {
		switch {
		case !envName.MatchString(name):
			return bdkerr.New(bdkerr.InvalidRequest, "%.100q is no name of an environment variable", name)
		case name == "PATH" || name == "HOME" || name == "LANG" || name == "TMPDIR":
			return bdkerr.New(bdkerr.InvalidRequest, "the environment variable %s is not the command's to set", name)
		case strings.Contains(value, "\x00"):
			return bdkerr.New(bdkerr.InvalidRequest, "the environment variable %.100s has a NUL byte", name)
		}
	}
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return bdkerr.New(bdkerr.InvalidRequest, "the directory %.100q of the command is not there", c.Dir)
	}
	return nil
}

// checkProgram fails if the program that a name stands for cannot be run.
func checkProgram(dir, name string, path []string) error {
	if !strings.Contains(name, "/") {
		for _, p := range path {
			if info, err := os.Stat(filepath.Join(p, name)); err == nil && executable(info) {
				return nil
			}
		}
		return bdkerr.New(bdkerr.InvalidRequest, "there is no program %.100q in %s", name, strings.Join(path, ":"))
	}
	file := name
	if !filepath.IsAbs(name) {
		file = filepath.Join(dir, name)
	}
	switch info, err := os.Stat(file); {
	case err != nil:
		return bdkerr.New(bdkerr.InvalidRequest, "there is no program %.100q", name)
	case !executable(info):
		return bdkerr.New(bdkerr.InvalidRequest, "%.100q is no executable file", name)
	}
	return nil
}

func executable(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// remove removes a directory, whatever permissions a command has left in it. What is not this user's stays.
func remove(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // so that it can be removed
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
