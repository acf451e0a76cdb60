// Package memkv keeps the entries of package kv in memory: for tests, and for hosts that keep nothing.
package memkv

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/kv"
)

var (
	_ kv.Driver  = (*Driver)(nil)
	_ kv.Sweeper = (*Driver)(nil)
)

// Driver is an in-memory [kv.Driver], made by [New]. It is safe for concurrent use.
type Driver struct {
	mu      sync.RWMutex
	entries map[string]kv.Entry // their values are never changed in place
}

// New returns an empty driver.
func New() *Driver { return &Driver{entries: make(map[string]kv.Entry)} }

// Get implements [kv.Driver].
func (d *Driver) Get(_ context.Context, key string) (kv.Entry, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e, ok := d.entries[key]
	if !ok {
		return kv.Entry{}, kv.ErrNotFound
	}
	return clone(e), nil
}

// Create implements [kv.Driver].
func (d *Driver) Create(_ context.Context, e kv.Entry, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, ok := d.entries[e.Key]
	switch {
	case ok && old.Version == e.Version:
		return nil
	case ok && !old.Expired(now):
		return kv.ErrExists
	}
	d.entries[e.Key] = clone(e)
	return nil
}

// Swap implements [kv.Driver].
func (d *Driver) Swap(_ context.Context, e kv.Entry, version int64, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, ok := d.entries[e.Key]
	switch {
	case ok && old.Version == e.Version:
		return nil
	case !ok || old.Version != version || old.Expired(now):
		return kv.ErrVersion
	}
	d.entries[e.Key] = clone(e)
	return nil
}

// Delete implements [kv.Driver].
func (d *Driver) Delete(_ context.Context, key string, version int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.entries[key]; version != 0 && (!ok || old.Version != version) {
		return kv.ErrVersion
	}
	delete(d.entries, key)
	return nil
}

// List implements [kv.Driver].
func (d *Driver) List(_ context.Context, prefix, after string, limit int, now time.Time) ([]kv.Entry, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var list []kv.Entry
	for _, key := range slices.Sorted(maps.Keys(d.entries)) {
		e := d.entries[key]
		if len(list) < limit && key > after && strings.HasPrefix(key, prefix) && !e.Expired(now) {
			list = append(list, clone(e))
		}
	}
	return list, nil
}

// Sweep implements [kv.Sweeper].
func (d *Driver) Sweep(_ context.Context, now time.Time, limit int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for key, e := range d.entries {
		if n < limit && e.Expired(now) {
			delete(d.entries, key)
			n++
		}
	}
	return n, nil
}

func clone(e kv.Entry) kv.Entry {
	e.Value = bytes.Clone(e.Value)
	return e
}
