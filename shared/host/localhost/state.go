package localhost

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/fileblob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/connection"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/exec/localexec"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/host"
	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/sqlitekv"
	"github.com/bdk-lambda/bdk/shared/mcphost"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/sqlitesession"
	"github.com/bdk-lambda/bdk/shared/telemetry"
	"github.com/bdk-lambda/bdk/shared/turn/localturn"
)

const (
	// lease is how long a process may be stopped, by a sleeping laptop or a debugger, before another one takes its turns.
	lease = time.Minute
	// drain is how long turns may take to come to a point where another process can go on.
	drain = 10 * time.Second
	// expireEvery is how often what has expired is removed, expireSlice how much of it at once.
	expireEvery = time.Minute
	expireSlice = 200
	// watchEvery is how often it is looked whether the database is still where it was opened.
	watchEvery = 2 * time.Second
)

// state is an open state root and the agents that work on it.
type state struct {
	root    string
	db      *sqlitex.DB
	file    os.FileInfo // of the database, when it was opened
	holders *holders
	temp    string // of this process
	kv      *kv.Store
	blobs   *blob.Store
	models  host.Models
	ring    *telemetry.Ring
	clock   clock.Clock
	agents  []*agent
	ended   chan struct{} // closed by close
	expiry  chan struct{} // closed when the loop that expires has ended
	alarms  alarms
}

// agent is an engine and the runner of its turns.
type agent struct {
	*engine.Engine
	runner *localturn.Runner
	told   *hook.Dispatcher

	connections *connection.Set
	chat        *mcphost.Endpoint // for other agents of this process
}

// open opens the state root, with a directory for each purpose in it, and sets up the agents. Their turns run from serve on.
func (p *Program) open(ctx context.Context) (_ *state, err error) {
	s := &state{root: p.Config.StateRoot, clock: clock.System{}, ended: make(chan struct{}), expiry: make(chan struct{})}
	if p.Clock != nil {
		s.clock = p.Clock
	}
	if s.root == "" {
		return nil, errors.New("no state root is given")
	}
	s.ring = telemetry.NewRing(ringRecords, p.log())
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	s.db, err = sqlitex.Open(ctx, s.dbFile(), sqlitex.Options{
		Schemas: []sqlitex.Schema{sqlitesession.Schema(), sqlitekv.Schema()}, Program: "bdk",
		BeforeCommit: p.BeforeCommit, AfterCommit: p.AfterCommit,
	})
	if err != nil {
		return nil, err
	}
	if s.file, err = os.Stat(s.dbFile()); err != nil {
		return nil, fmt.Errorf("looking at the database: %w", err)
	}
	self := fmt.Sprintf("%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:10]))
	if s.holders, err = join(s.root, self); err != nil {
		return nil, err
	}
	if n := s.holders.others(); n > 0 && !p.Config.Listener {
		slog.New(s.ring).WarnContext(ctx, "other processes work on this state root: each may run the turns of the others", slog.Int("others", n))
	}
	if err := s.makeTemp(); err != nil {
		return nil, err
	}
	files, err := fileblob.Open(filepath.Join(s.root, "blobs"), s.clock.Now())
	if err != nil {
		return nil, err
	}
	s.kv, s.blobs = kv.New(sqlitekv.New(s.db), kv.Options{}), blob.New(files)
	s.models = host.Models{Client: host.ModelClient(), Clock: s.clock, Getenv: p.Getenv, NamesOnly: p.Config.Command == "call"}
	for _, project := range p.Projects {
		a, err := s.agent(ctx, project, p.Config.Roots[project.Slug])
		if err != nil {
			return nil, fmt.Errorf("agent %s: %w", project.Slug, err)
		}
		s.agents = append(s.agents, a)
	}
	return s, nil
}

func (s *state) agent(ctx context.Context, project bdk.Project, root string) (*agent, error) {
	dir := filepath.Join(s.root, "agents", project.Slug)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the agent's directory: %w", err)
	}
	log := slog.New(s.ring).With(slog.String(telemetry.SlugKey, project.Slug))
	opts := session.Options{Holder: s.holders.self, Lease: lease, TTL: project.Agent.SessionTTL}
	var sessions *session.Store
	told := hook.NewDispatcher(ctx, hook.Options{Sessions: func() *session.Store { return sessions }, Log: log})
	if len(project.Hooks) > 0 {
		opts.Committed = told.Told
	}
	sessions = session.New(sqlitesession.New(s.db), opts)
	runner := localturn.New(localturn.Options{
		Sessions: sessions, Agent: project.Slug, Log: log, Limit: project.Agent.WithDefaults().Limits.RunningTurns,
		Holder: s.holders.self, Lease: lease, Alive: s.holders.alive,
	})
	connections, err := s.connect(project, root, log)
	if err != nil {
		return nil, err
	}
	e, err := host.NewEngine(ctx, project, root, host.Parts{
		Connections: connections,
		Sessions:    sessions, KV: s.kv, Blobs: s.blobs, Runner: runner, Scripts: localexec.New(localexec.Options{Temp: s.temp}),
		Models: s.models, Clock: s.clock, Log: log, Temp: s.temp, StateRoot: dir,
	})
	if err != nil {
		return nil, err
	}
	told.Subscribe(e.Subscribers()...)
	return &agent{Engine: e, runner: runner, told: told, connections: connections, chat: mcphost.New(e, mcphost.Options{Log: log})}, nil
}

// connect returns the connections of an agent. Other agents of this process are reached without a socket.
func (s *state) connect(project bdk.Project, root string, log *slog.Logger) (*connection.Set, error) {
	return connection.New(project, connection.Options{
		Dir: root, Clock: s.clock, Log: log,
		Lookup: func(_ context.Context, name string) (string, error) { return s.models.Getenv(name), nil },
		Peer: func(slug, owner string) http.RoundTripper {
			for _, a := range s.agents {
				if a.Project().Slug == slug {
					return a.chat.As(auth.Principal(owner))
				}
			}
			return nil
		},
	})
}

// serve begins to run turns, also those that a process before this one left.
func (s *state) serve(ctx context.Context) {
	for _, a := range s.agents {
		a.runner.Serve(ctx, a.Step, a.Fail)
	}
	go s.expire(context.WithoutCancel(ctx))
}

// expire removes what has expired, slice by slice, so that no turn waits for it.
func (s *state) expire(ctx context.Context) {
	defer close(s.expiry)
	log := slog.New(s.ring)
	for {
		tick, stop := s.clock.After(expireEvery)
		select {
		case <-tick:
		case <-s.ended:
			stop()
			return
		}
		if _, err := s.agents[0].Sessions().Expire(ctx, expireSlice); err != nil {
			log.WarnContext(ctx, "removing expired sessions", slog.Any("error", err))
		}
		if _, err := s.kv.Sweep(ctx); err != nil {
			log.WarnContext(ctx, "removing expired entries", slog.Any("error", err))
		}
	}
}

// makeTemp makes the directory for what this process keeps as long as it lives, and removes what
// processes that have ended left: theirs, and the commands that were running in them.
func (s *state) makeTemp() error {
	all := filepath.Join(s.root, "tmp")
	s.temp = filepath.Join(all, s.holders.self)
	if err := os.MkdirAll(s.temp, 0o700); err != nil {
		return fmt.Errorf("creating the directory for temporary files: %w", err)
	}
	entries, err := os.ReadDir(all)
	if err != nil {
		return fmt.Errorf("looking for temporary files: %w", err)
	}
	for _, e := range entries {
		if name := e.Name(); name != s.holders.self && !s.holders.alive(name) {
			localexec.KillLeft(filepath.Join(all, name))
			if err := os.RemoveAll(filepath.Join(all, name)); err != nil {
				slog.New(s.ring).Warn("temporary files of an earlier process stay", slog.Any("error", err))
			}
		}
	}
	return nil
}

func (s *state) dbFile() string { return filepath.Join(s.root, "bdk.db") }

// watch returns an error once the database was removed or replaced: what is written to it then is lost, and nothing may be
// accepted any more. It returns nil when ctx ends.
func (s *state) watch(ctx context.Context) error {
	for clock.Sleep(ctx, s.clock, watchEvery) == nil {
		if now, err := os.Stat(s.dbFile()); err != nil || !os.SameFile(now, s.file) {
			return fmt.Errorf("%s was removed or replaced while it was in use: start again, with the state root as it should be", s.dbFile())
		}
	}
	return nil
}

// close hands the turns over to the next process, and what is left after that.
func (s *state) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	s.alarms.close(ctx)
	for _, a := range s.agents {
		a.runner.Close(ctx)
		a.told.Close(ctx)
	}
	close(s.ended)
	<-s.expiry
	return s.release()
}

func (s *state) release() error {
	var errs []error
	for _, a := range s.agents {
		a.connections.Close()
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.temp != "" {
		errs = append(errs, os.RemoveAll(s.temp))
	}
	if s.holders != nil {
		errs = append(errs, s.holders.leave())
	}
	return errors.Join(errs...)
}
