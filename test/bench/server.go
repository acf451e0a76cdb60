package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// script is the model: it answers at once, and calls a tool first if it is told to.
const script = `rules:
  - when: {toolResult: inspect_pr}
    text: five
  - when: {message: "^tool"}
    calls: [{tool: inspect_pr, args: {prUrl: "https://example.com/acme/checkout/pull/42"}}]
  - when: {message: "^park"}
    calls: [{tool: approve_pr, args: {prUrl: "https://example.com/acme/checkout/pull/42", reason: "x"}}]
  - text: ok
`

func (b *bench) script() string { return filepath.Join(b.dir, "model.yaml") }

// server is the agent being served, as bdk serve does it. Its state outlives its processes.
type server struct {
	*bench

	root string // state root
	base string // URL of the agent
	cmd  *exec.Cmd
	log  *os.File
}

// warm builds the agent, so that later starts find its program.
func (b *bench) warm(ctx context.Context) error {
	s := &server{bench: b, root: filepath.Join(b.dir, "warm")}
	_, err := s.serve(ctx, 5*time.Minute)
	if err = errors.Join(err, s.stop()); err != nil {
		return fmt.Errorf("serving %s: %w\n%s", b.agent, err, s.tail())
	}
	return nil
}

// serve starts a process and returns how long it took until it answered. What ran before is stopped.
func (s *server) serve(ctx context.Context, patience time.Duration) (time.Duration, error) {
	if err := s.stop(); err != nil {
		return 0, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return 0, err
	}
	s.base = "http://127.0.0.1:" + port + "/" + filepath.Base(s.agent)
	if s.log, err = os.Create(s.root + ".log"); err != nil {
		return 0, fmt.Errorf("making a log: %w", err)
	}
	s.cmd = exec.CommandContext(ctx, s.bdk, "serve", "--dir", s.agent, "--port", port, "--state-root", s.root)
	s.cmd.Env = append(os.Environ(), "BDK_MODEL=scripted:"+s.script())
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 15 * time.Second
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return 0, fmt.Errorf("starting %s (make build makes it): %w", s.bdk, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.healthy(ctx, began)
}

func (s *server) healthy(ctx context.Context, began time.Time) (time.Duration, error) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, "GET", s.base+"/v1/health", nil)
		if err != nil {
			return 0, err
		}
		res, err := c.Do(req)
		if err == nil {
			took := time.Since(began)
			if err := res.Body.Close(); err != nil {
				return 0, err
			}
			if res.StatusCode == http.StatusOK {
				return took, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for a healthy answer: %w", context.Cause(ctx))
		case <-time.After(500 * time.Microsecond):
		}
	}
}

// stop ends the process, if there is one, and waits for it.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	err := cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(cmd.WaitDelay, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	return errors.Join(err, cmd.Wait(), s.log.Close())
}

// tail returns the end of the log of the newest process.
func (s *server) tail() string {
	data, _ := os.ReadFile(s.root + ".log")
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-5):], []byte("\n")))
}

// memory returns the resident memory of the process in MiB.
func (s *server) memory(ctx context.Context) (float64, error) {
	pid := strconv.Itoa(s.cmd.Process.Pid)
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", pid).Output()
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %s: %w", pid, err)
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	return kib / 1024, err
}

// disk returns how many bytes the state takes.
func (s *server) disk() (total int64, err error) {
	err = filepath.WalkDir(s.root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
