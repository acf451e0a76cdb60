// Package secret is the port to the secret of a deployment: the bearer tokens that its API admits, and variables that must
// not be readable in its configuration, such as the keys of model providers.
//
// The secret is a JSON object of strings. A key bearer:<name> holds the token of the principal bearer:<name>, any other key
// is the name of a variable. While the secret is being replaced its last two versions are valid, so that callers can
// change to the new tokens in their own time.
package secret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
)

// BearerPrefix begins the keys of bearer tokens; the name of the principal follows.
const BearerPrefix = "bearer:"

// Values are the keys and values of one version of the secret. Those that a [Store] returns must not be changed.
type Values map[string]string

// Driver is a medium that keeps a secret. Implementations are safe for concurrent use.
type Driver interface {
	// Read returns the versions that are valid now, newest first, each as it is stored. It fails if there is none.
	Read(ctx context.Context) ([]string, error)
}

const (
	defaultTTL = 5 * time.Minute
	retryAfter = 15 * time.Second // after a read that failed, if there are older values
	readTime   = 10 * time.Second // bounds one read
)

// Options adjust a store. The zero value works.
type Options struct {
	Clock clock.Clock   // default: the system clock
	TTL   time.Duration // how long values are used before they are read again; default 5 min
	Log   *slog.Logger  // is told what does not stop the store; default: nobody is
}

// Store reads a secret and keeps what it has read for a while. It is safe for concurrent use.
type Store struct {
	driver Driver
	opts   Options

	mu      sync.Mutex // guards what follows
	values  []Values   // nil before the first good read
	due     time.Time  // when to read again
	current *reading   // nil if nobody reads
}

// reading is one read, for all who wait for it. Its result is set before done is closed.
type reading struct {
	done   chan struct{}
	values []Values
	err    error
}

// New returns a store over a driver. It reads nothing yet.
func New(driver Driver, opts Options) *Store {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.TTL <= 0 {
		opts.TTL = defaultTTL
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{driver: driver, opts: opts}
}

// Get returns the versions that are valid, newest first, at least one. It fails if the secret cannot be read, if no
// version is of the form that the package describes, or if ctx ends while another caller reads; errors name keys and
// never show values. A version of another form is left out and logged: a mistake in the newest one locks nobody out.
//
// What was read is used for the TTL, and beyond it for as long as reading fails: that is logged and tried again every 15
// seconds. Callers at the same time share one read, which takes 10 seconds at most and does not end with the ctx of the
// caller that happened to begin it; those that have older values do not wait for another caller's read.
func (s *Store) Get(ctx context.Context) ([]Values, error) {
	s.mu.Lock()
	if s.values != nil && (s.current != nil || s.now().Before(s.due)) {
		defer s.mu.Unlock()
		return s.values, nil
	}
	r := s.current
	if r == nil {
		r = &reading{done: make(chan struct{})}
		s.current = r
		s.mu.Unlock()
		s.read(ctx, r)
		return r.values, r.err
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.values, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Lookup returns the value that the newest version has for a variable, "" if it has none. It fails like Get.
func (s *Store) Lookup(ctx context.Context, name string) (string, error) {
	values, err := s.Get(ctx)
	if err != nil {
		return "", err
	}
	return values[0][name], nil
}

// now returns the time of the wall: a process that was frozen for a while may have missed the monotonic one.
func (s *Store) now() time.Time { return s.opts.Clock.Now().Round(0) }

// read fills in r and ends it.
func (s *Store) read(ctx context.Context, r *reading) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	err := errors.New("the driver panicked") // the others must not wait for ever
	defer func() {
		if r.err = err; s.settle(r) {
			s.opts.Log.WarnContext(ctx, "secret could not be read again, its last values stay valid", slog.Any("error", err))
		}
		close(r.done)
	}()
	r.values, err = s.versions(ctx)
}

// settle takes over the result of r. If that is a failure and there are older values, it puts them in its place and returns true.
func (s *Store) settle(r *reading) (kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
	if r.err == nil {
		s.values, s.due = r.values, s.now().Add(s.opts.TTL)
		return false
	}
	if s.values == nil {
		return false
	}
	s.due = s.now().Add(retryAfter)
	r.values, r.err = s.values, nil
	return true
}

func (s *Store) versions(ctx context.Context) ([]Values, error) {
	texts, err := s.driver.Read(ctx)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, errors.New("the secret has no version")
	}
	versions := make([]Values, 0, len(texts))
	var mistake error // of the newest version that has one
	for _, text := range texts {
		v, err := decode(text)
		if err == nil {
			versions = append(versions, v)
			continue
		}
		s.opts.Log.WarnContext(ctx, "a version of the secret is left out", slog.Any("error", err))
		mistake = cmp.Or(mistake, err)
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("decoding the secret: %w", mistake)
	}
	return versions, nil
}
