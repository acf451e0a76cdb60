package localhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

const (
	ringRecords = 2000 // log records that GET /v1/logs can show
	listenFD    = 3    // the listening socket, if the command passes one
	readyFD     = 4    // where the command waits for a byte that says that the program serves
)

// serve answers HTTP until ctx ends, then finishes what it is doing.
func (p *Program) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	policy, err := p.policy()
	if err != nil {
		return err
	}
	if err := httpapi.CheckOrigins(p.Config.Origins); err != nil {
		return err
	}
	listener, err := p.listen(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // it was closed by shutdown in the good case
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	closing := make(chan struct{})
	var conns connections
	server := &http.Server{
		Handler: httpapi.New(s.list(), httpapi.Options{
			Auth: policy, Origins: p.Config.Origins, Single: p.Config.Single, Playground: !p.Config.NoPlayground, Dev: p.Config.Dev,
			Blobs: s.blobs, Logs: s.ring, Diagnostics: p.diagnostics(), Log: slog.New(s.ring), Closing: closing,
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnState:         conns.track,
		ErrorLog:          slog.NewLogLogger(s.ring, slog.LevelWarn),
	}
	s.serve(ctx)
	if !p.Config.Dev { // then people have things happen
		s.wake(ctx)
	}
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(listener)
		close(failed)
	}()
	lost := make(chan error, 1)
	go func() { lost <- s.watch(ctx) }()
	if err = p.ready(listener.Addr(), cancel); err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		case err = <-lost:
		}
	}
	close(closing)
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer stop()
	return errors.Join(err, conns.shutdown(end, server, listener, failed), s.close())
}

func (s *state) list() []httpapi.Agent {
	agents := make([]httpapi.Agent, len(s.agents))
	for i, a := range s.agents {
		agents[i] = a
	}
	return agents
}

func (p *Program) policy() (auth.Policy, error) {
	switch {
	case p.Config.AllowAnonymous:
		return auth.Anonymous(), nil
	case len(p.Config.BearerTokens) > 0:
		return auth.Bearer(p.Config.BearerTokens)
	}
	return auth.Loopback(), nil
}

func (p *Program) listen(ctx context.Context) (net.Listener, error) {
	if p.Config.Listener {
		listener, err := net.FileListener(os.NewFile(listenFD, "listener"))
		if err != nil {
			return nil, fmt.Errorf("taking over the listening socket: %w", err)
		}
		return listener, nil
	}
	address := net.JoinHostPort(orDefault(p.Config.Host, "127.0.0.1"), strconv.Itoa(p.Config.Port))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program: stop it, or choose another --port", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return listener, nil
}

// ready tells the user, and the command that passed the socket, that the program serves. It arranges that the program
// ends when that command is gone.
func (p *Program) ready(address net.Addr, end context.CancelFunc) error {
	if p.Config.Banner != "" {
		_, _ = fmt.Fprint(p.Stdout, strings.ReplaceAll(p.Config.Banner, "{url}", "http://"+address.String()))
	}
	if !p.Config.Listener {
		return nil
	}
	pipe := os.NewFile(readyFD, "ready")
	if _, err := pipe.Write([]byte{1}); err != nil {
		return fmt.Errorf("telling that the program serves: %w", err)
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // returns when the other end is closed
		end()
	}()
	return pipe.Close()
}

// diagnostics returns what discovery found, by slug.
func (p *Program) diagnostics() map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, len(p.Projects))
	for _, project := range p.Projects {
		all[project.Slug] = p.Config.Diagnostics
	}
	return all
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
