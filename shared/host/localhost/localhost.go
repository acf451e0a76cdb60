// Package localhost runs agents on one machine: SQLite and files for what must last, this process for the rest.
package localhost

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// Program is an agent program: the agents that were built into it and what it gets from its process.
type Program struct {
	Projects       []bdk.Project
	Config         launch.Config
	Getenv         func(string) string
	Stdin          io.Reader // read by the commands call and run alone
	Stdout, Stderr io.Writer

	// Clock is that of what happens at its time. Default: the system clock.
	Clock clock.Clock

	// BeforeCommit and AfterCommit are called around each write to the database, counted from 1: a seam for crash tests.
	BeforeCommit, AfterCommit func(n int64)
}

// Main is the whole main function of a generated agent program: it does what the [launch.Config] in its environment says
// and returns the exit code, 0 for success.
func Main(projects []bdk.Project) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // whoever read the log may go away: no reason to end
	text := os.Getenv(launch.Env)
	_ = os.Unsetenv(launch.Env)
	if text == "" {
		_, _ = fmt.Fprintf(os.Stderr, "This program is started by the bdk command: use bdk serve, bdk dev, bdk run or bdk call.\n")
		return 2
	}
	config, err := launch.Decode(text)
	if err == nil {
		p := Program{Projects: projects, Config: config, Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		if config.Command == "call" {
			os.Stdout = os.Stderr // what a tool prints is not the answer
		}
		err = p.Run(ctx)
	}
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "bdk: %v\n", err)
		return 1
	}
	return 0
}

// Run does what the Config says, until it is done or ctx ends.
func (p *Program) Run(ctx context.Context) error {
	switch p.Config.Command {
	case "", "serve":
		return p.serve(ctx)
	case "run":
		return p.run(ctx)
	case "call":
		return p.call(ctx)
	case "info":
		return p.info(ctx)
	}
	return fmt.Errorf("unknown command %q: this program and the bdk command are of different versions", p.Config.Command)
}

// log returns where the program's log goes, besides GET /v1/logs: all of it, for machines; in development what a person
// wants to follow, and in a terminal only what is wrong.
func (p *Program) log() slog.Handler {
	switch {
	case p.Config.Command == "run", p.Config.Command == "call":
		return slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})
	case p.Config.Dev:
		return quiet{slog.NewTextHandler(p.Stderr, nil)}
	}
	return slog.NewJSONHandler(p.Stderr, nil)
}

// quiet is a handler that leaves out the requests that went well.
type quiet struct{ slog.Handler }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo && r.Message == httpapi.RequestLogged {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

// project returns the project of the given slug, or the only one.
func (p *Program) project(slug string) (bdk.Project, error) {
	var names []string
	for _, project := range p.Projects {
		if project.Slug == slug || slug == "" && len(p.Projects) == 1 {
			return project, nil
		}
		names = append(names, project.Slug)
	}
	return bdk.Project{}, fmt.Errorf("no agent %q: choose one of %v", slug, names)
}
