package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/cli/supervisor"
	"github.com/bdk-lambda/bdk/bdkpack/cli/watcher"
	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

func newDevCmd(io *IO) *cobra.Command {
	opts := serving{dev: true}
	cmd := &cobra.Command{
		Use:   "dev [dir]",
		Short: "serve an agent and restart it when its files change",
		Long: "dev serves the agents in a folder like `bdk serve --dev` and watches their files. After a change it builds them\n" +
			"again; the old program answers until the new one is ready, and sessions go on. While there are mistakes, the last\n" +
			"good build keeps serving.",
		Args: oneFolder(&opts.dir),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return devRun(cmd.Context(), io, opts, func(ctx context.Context) (*maingen.Program, *project.Workspace, diag.List, error) {
				return load(ctx, io, opts.dir)
			})
		},
	}
	opts.flags(cmd)
	return cmd
}

// buildFunc is [load] of one folder.
type buildFunc func(context.Context) (*maingen.Program, *project.Workspace, diag.List, error)

func devRun(ctx context.Context, io *IO, opts serving, build buildFunc) error {
	if err := opts.check(io); err != nil {
		return err
	}
	ln, err := opts.listen(ctx)
	if err != nil {
		return err
	}
	defer ln.Close() //nolint:errcheck // the process ends
	socket, err := socketFile(ln)
	if err != nil {
		return err
	}
	defer socket.Close() //nolint:errcheck // the process ends
	watch, err := watcher.New(io.Clock)
	if err != nil {
		return err
	}
	defer watch.Close() //nolint:errcheck // the process ends
	d := &dev{
		io: io, opts: opts, build: build, url: baseURL(ln, opts.host), watch: watch, programs: make(chan supervisor.Program),
	}
	return d.run(ctx, socket)
}

func socketFile(ln net.Listener) (*os.File, error) {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return nil, errors.New("the socket cannot be passed to a program")
	}
	return tcp.File()
}

// baseURL returns the URL of a server for somebody on this machine.
func baseURL(ln net.Listener, host string) string {
	_, port, _ := net.SplitHostPort(ln.Addr().String()) // the address of a listener has a port
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// dev builds and watches in one goroutine, while a supervisor runs what was built in another, which calls notice.
type dev struct {
	io       *IO
	opts     serving
	build    buildFunc
	url      string
	watch    *watcher.Watcher
	programs chan supervisor.Program

	inputs project.Inputs // of the last build
	seen   string         // their fingerprint before it; "" if that is not known

	started bool        // a program was handed to the supervisor
	hint    string      // what to print when the first program serves; set before it is handed over
	greeted atomic.Bool // it was printed, so there is a good build
}

func (d *dev) run(ctx context.Context, socket *os.File) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := supervisor.Run(ctx, socket, d.programs, &supervisor.Options{
			Stdout: d.io.Out, Stderr: d.io.Err, Clock: d.io.Clock, Notify: d.notice,
		})
		cancel(err)
		ended <- err
	}()
	err := d.loop(ctx)
	cancel(err)
	return errors.Join(err, <-ended)
}

// loop builds after every change until ctx ends.
func (d *dev) loop(ctx context.Context) error {
	for {
		switch err := d.rebuild(ctx); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !d.started:
			return err
		case err != nil:
			fmt.Fprintf(d.io.Err, "%v\n", err)
			d.keepServing()
		}
		changed, err := d.wait(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.io.Err, "%s changed\n", d.names(changed))
	}
}

// wait returns the files that changed, once the program may be another one.
func (d *dev) wait(ctx context.Context) ([]string, error) {
	for {
		changed, err := d.watch.Wait(ctx)
		if err != nil {
			return nil, err
		}
		for range 3 { // folders may have come to be watched meanwhile
			if now, _ := d.inputs.Fingerprint(); now == "" || now != d.seen { // "" if it cannot be read, as the build will say
				return changed, nil
			}
			if !d.watchInputs() {
				break
			}
		}
	}
}

// rebuild builds and starts a program. Mistakes of the author are shown and no error.
func (d *dev) rebuild(ctx context.Context) error {
	began := d.io.Clock.Now()
	const rounds = 5 // files may appear in folders that are not watched yet: look again once they are
	for range rounds {
		before, _ := d.inputs.Fingerprint() // what cannot be read is found out by the build
		program, ws, diags, err := d.build(ctx)
		added := false
		if ws != nil {
			known := d.inputs
			d.inputs = d.withScript(ws.Inputs)
			added = d.watchInputs()
			if !reflect.DeepEqual(known, d.inputs) {
				before = ""
			}
		}
		d.seen = before
		if err != nil {
			d.seen = ""
			return err
		}
		if added {
			continue
		}
		showDiagnostics(d.io, diags)
		if program == nil {
			d.keepServing()
			return nil
		}
		return d.start(ctx, program, began)
	}
	return errors.New("the files change faster than they can be built")
}

// withScript adds the script of the model that the environment names.
func (d *dev) withScript(in project.Inputs) project.Inputs {
	if file, ok := strings.CutPrefix(d.io.env("BDK_MODEL"), "scripted:"); ok {
		if path, err := filepath.Abs(file); err == nil {
			return in.With(path)
		}
	}
	return in
}

func (d *dev) watchInputs() (added bool) {
	added, err := d.watch.Set(d.inputs.Folders(), d.inputs.Matters)
	if err != nil {
		fmt.Fprintf(d.io.Err, "some changes will not be seen: %v\n", err)
	}
	return added
}

func (d *dev) keepServing() {
	if !d.greeted.Load() {
		fmt.Fprintln(d.io.Err, "waiting for a change")
		return
	}
	fmt.Fprintln(d.io.Err, "the last good build keeps serving")
}

func (d *dev) start(ctx context.Context, program *maingen.Program, began time.Time) error {
	c, err := d.opts.config(program)
	if err != nil {
		return err
	}
	c.Listener = true
	env, err := programEnv(d.io, c)
	if err != nil {
		return err
	}
	if !d.started {
		d.hint, d.started = d.welcome(program), true
	}
	select {
	case d.programs <- supervisor.Program{Path: program.Path, Env: env, Wanted: began}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// notice shows what became of a program.
func (d *dev) notice(n supervisor.Notice) {
	switch n.Kind {
	case supervisor.Ready:
		fmt.Fprintf(d.io.Err, "ready after %s\n", roundly(n.Took))
		if !d.greeted.Swap(true) {
			fmt.Fprint(d.io.Out, d.hint)
		}
	case supervisor.Rejected:
		fmt.Fprintf(d.io.Err, "the new program did not become ready: %v%s\n", n.Err, again(n.Wait))
		if n.Wait == 0 {
			d.keepServing()
		}
	case supervisor.Crashed:
		fmt.Fprintf(d.io.Err, "the agent program ended: %v%s\n", n.Err, again(n.Wait))
	}
}

// roundly returns a duration without more digits than matter.
func roundly(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second / 10)
}

func again(wait time.Duration) string {
	if wait == 0 {
		return ""
	}
	return fmt.Sprintf("; starting the last good one in %s", wait)
}

// welcome returns where the agents are and how to talk to the first one.
func (d *dev) welcome(program *maingen.Program) string {
	var b strings.Builder
	for _, a := range program.Workspace.Agents {
		fmt.Fprintf(&b, "%s is served at %s\n", a.Slug, d.opts.agentURL(d.url, a.Slug))
	}
	if len(program.Workspace.Agents) == 0 {
		return b.String()
	}
	first := program.Workspace.Agents[0]
	api := d.opts.agentURL(d.url, first.Slug) + "/v1/session"
	auth := ""
	if len(d.opts.bearerTokens) > 0 {
		auth = " -H \"authorization: Bearer $" + tokenEnv + "\""
	}
	fmt.Fprintf(&b, "\nStart a session:\n  curl -s%s %s -H 'content-type: application/json' -d '{\"message\":\"%s\"}'\n", auth, api, exampleMessage(first.Dir))
	fmt.Fprintf(&b, "Follow it, with the sessionId of the answer:\n  curl -N%s %s/SESSION_ID/stream\n", auth, api)
	fmt.Fprint(&b, "\nWatching for changes; Ctrl-C stops.\n")
	return b.String()
}

// exampleMessage returns the first message that the agent's README shows, so that the example fits the agent.
func exampleMessage(dir string) string {
	readme, _ := os.ReadFile(filepath.Join(dir, "README.md")) // without one there is a fallback
	if m := regexp.MustCompile(`"message":"([^"\\']{1,200})"`).FindSubmatch(readme); m != nil {
		return string(m[1])
	}
	return "What can you do?"
}

// names returns a few of the changed files, as seen from the agent's folder.
func (d *dev) names(files []string) string {
	const show = 3
	dir, _ := filepath.Abs(d.opts.dir) // as given is good enough
	var b strings.Builder
	for i, file := range files[:min(show, len(files))] {
		if i > 0 {
			b.WriteString(", ")
		}
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
		b.WriteString(file)
	}
	if len(files) > show {
		fmt.Fprintf(&b, " and %d more", len(files)-show)
	}
	return b.String()
}
