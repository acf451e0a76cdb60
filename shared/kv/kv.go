// Package kv keeps small durable values by key: claims of side effects, cursors, decisions. Every change is a condition on
// one entry, so that of many callers exactly one wins, on any store.
//
// A [Store] holds the rules (keys, sizes, expiry, versions); a [Driver] keeps the entries. What Create, Swap or Delete
// reported as done survives the death of the process and the loss of power. An entry that has expired does not exist for any
// method, whether or not it was removed yet.
package kv

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
)

// Limits of an entry and of a page.
const (
	MaxKey   = 512       // bytes of a key
	MaxValue = 256 << 10 // bytes of a value
	MaxList  = 1000      // entries returned by one List
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound is returned by Get when there is no such entry.
	ErrNotFound = errors.New("no such entry")
	// ErrExists is returned by Create when the key is taken.
	ErrExists = errors.New("entry exists")
	// ErrVersion is returned by Swap and Delete when the entry has another version or is gone.
	ErrVersion = errors.New("entry was changed meanwhile")
)

// Entry is a stored value.
type Entry struct {
	Key       string
	Value     []byte
	Version   int64     // names this value of the key: positive, and never used again for the key
	ExpiresAt time.Time // in UTC and whole milliseconds; zero: never
}

// Expired reports whether e does not exist any more at now.
func (e Entry) Expired(now time.Time) bool { return !e.ExpiresAt.IsZero() && !now.Before(e.ExpiresAt) }

// A Driver stores entries. Adapters implement it and pass the suite in package kvtest; everybody else uses [Store], which passes
// valid keys, values and limits only. Each method but List is one conditional operation on one item. Values are not
// kept or changed by the driver after it returned, nor by its caller.
//
// Implementations are safe for concurrent use by many goroutines and, where the medium is shared, by many processes.
type Driver interface {
	// Get returns the entry of key, expired or not, or ErrNotFound. It sees every change that returned before it was called.
	Get(ctx context.Context, key string) (Entry, error)

	// Create stores e unless an entry of its key exists that has not expired at now: then it fails with ErrExists. If that entry
	// has the version of e, an earlier try of the same call wrote it: Create succeeds and changes nothing.
	Create(ctx context.Context, e Entry, now time.Time) error

	// Swap replaces the entry of e.Key if it has the given version and has not expired at now. Otherwise it fails with
	// ErrVersion, unless the entry has the version of e: then an earlier try of the same call wrote it, and Swap succeeds.
	Swap(ctx context.Context, e Entry, version int64, now time.Time) error

	// Delete removes the entry of key if it has the given version, or whatever version if that is 0. Otherwise, and if version is not
	// 0 and there is no entry, it fails with ErrVersion.
	Delete(ctx context.Context, key string, version int64) error

	// List returns entries whose keys begin with prefix and are greater than after, ordered by the bytes of their keys, leaving
	// out those expired at now. It returns limit of them if there are as many.
	List(ctx context.Context, prefix, after string, limit int, now time.Time) ([]Entry, error)
}

// Sweeper is implemented by drivers whose medium does not remove expired entries by itself.
type Sweeper interface {
	// Sweep removes entries expired at now, at most limit, and returns how many it removed.
	Sweep(ctx context.Context, now time.Time, limit int) (int, error)
}

// Options adjust a Store. The zero value is usable.
type Options struct {
	Clock      clock.Clock  // decides what has expired; default: the system clock
	NewVersion func() int64 // positive and not repeated for a key; default: 62 random bits
}

// Store keeps entries. It is safe for concurrent use.
type Store struct {
	driver Driver
	opts   Options
}

// New returns a store over driver.
func New(driver Driver, opts Options) *Store {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.NewVersion == nil {
		opts.NewVersion = randomVersion
	}
	return &Store{driver: driver, opts: opts}
}

func randomVersion() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                                // never fails
	return int64(binary.LittleEndian.Uint64(b[:])>>1 | 1) //nolint:gosec // the highest bit was shifted out
}

// Get returns the entry of key, or [ErrNotFound].
func (s *Store) Get(ctx context.Context, key string) (Entry, error) {
	if err := checkKey(key); err != nil {
		return Entry{}, err
	}
	e, err := s.driver.Get(ctx, key)
	if err == nil && e.Expired(s.opts.Clock.Now()) {
		err = ErrNotFound
	}
	if err != nil {
		return Entry{}, fmt.Errorf("getting %q: %w", key, err)
	}
	return e, nil
}

// Create stores a new entry, or fails with [ErrExists]: of all callers that create a key, one succeeds. The entry expires
// after ttl, a positive time that is rounded up to milliseconds; 0 means never.
func (s *Store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	e, now, err := s.entry(key, value, ttl)
	if err != nil {
		return err
	}
	if err := s.driver.Create(ctx, e, now); err != nil {
		return fmt.Errorf("creating %q: %w", key, err)
	}
	return nil
}

// Swap replaces the value that Get returned with the given version, or fails with [ErrVersion]. The new value expires after ttl,
// as in Create, counted from now.
func (s *Store) Swap(ctx context.Context, key string, version int64, value []byte, ttl time.Duration) error {
	e, now, err := s.entry(key, value, ttl)
	if err != nil {
		return err
	}
	if err := s.driver.Swap(ctx, e, version, now); err != nil {
		return fmt.Errorf("swapping %q: %w", key, err)
	}
	return nil
}

// Delete removes the value that Get returned with the given version, or fails with [ErrVersion]. Version 0 removes whatever there is, and it is
// no error if there is nothing.
func (s *Store) Delete(ctx context.Context, key string, version int64) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := s.driver.Delete(ctx, key, version); err != nil {
		return fmt.Errorf("deleting %q: %w", key, err)
	}
	return nil
}

// List returns the entries whose keys begin with prefix and are greater than after, in the order of the bytes of their keys: at most
// limit of them, which is cut to [MaxList]; 0 means [MaxList]. To page, pass the last key as after until fewer than limit come.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]Entry, error) {
	if limit <= 0 || limit > MaxList {
		limit = MaxList
	}
	list, err := s.driver.List(ctx, prefix, after, limit, s.opts.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("listing %q: %w", prefix, err)
	}
	return list, nil
}

// Sweep removes all expired entries and returns how many there were. On a medium that does so by itself it does nothing.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	const page = 500
	sweeper, ok := s.driver.(Sweeper)
	if !ok {
		return 0, nil
	}
	now := s.opts.Clock.Now()
	for {
		n, err := sweeper.Sweep(ctx, now, page)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("sweeping expired entries: %w", err)
		}
		if n < page {
			return removed, nil
		}
	}
}

// entry checks the arguments of a change and gives the value its version and expiry.
func (s *Store) entry(key string, value []byte, ttl time.Duration) (Entry, time.Time, error) {
	now := s.opts.Clock.Now()
	if err := checkKey(key); err != nil {
		return Entry{}, now, err
	}
	if len(value) > MaxValue {
		return Entry{}, now, bdkerr.New(bdkerr.PayloadTooLarge, "the value of %q has %d bytes: at most %d are allowed", key, len(value), MaxValue)
	}
	if ttl < 0 {
		return Entry{}, now, bdkerr.New(bdkerr.InvalidRequest, "the entry %q would live for %v: give a positive time, or 0 for ever", key, ttl)
	}
	e := Entry{Key: key, Value: value, Version: s.opts.NewVersion()}
	if ttl > 0 {
		e.ExpiresAt = now.Add(ttl + time.Millisecond - 1).Truncate(time.Millisecond).UTC()
	}
	return e, now, nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return bdkerr.New(bdkerr.InvalidRequest, "the key is empty")
	case len(key) > MaxKey:
		return bdkerr.New(bdkerr.InvalidRequest, "the key %.40q… has %d bytes: at most %d are allowed", key, len(key), MaxKey)
	case !utf8.ValidString(key):
		return bdkerr.New(bdkerr.InvalidRequest, "the key %q is not valid UTF-8", key)
	case strings.ContainsRune(key, 0):
		return bdkerr.New(bdkerr.InvalidRequest, "the key %q contains a NUL", key)
	}
	return nil
}
