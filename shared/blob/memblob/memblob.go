// Package memblob keeps the blobs of package blob in memory: for tests, and for hosts that keep nothing.
package memblob

import (
	"bytes"
	"context"
	"sync"

	"github.com/bdk-lambda/bdk/shared/blob"
)

var _ blob.Driver = (*Driver)(nil)

// Driver is an in-memory [blob.Driver], made by [New]. It is safe for concurrent use.
type Driver struct {
	mu    sync.RWMutex
	blobs map[blob.Ref][]byte // never changed in place
}

// New returns an empty driver.
func New() *Driver { return &Driver{blobs: make(map[blob.Ref][]byte)} }

// Put implements [blob.Driver].
func (d *Driver) Put(_ context.Context, ref blob.Ref, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blobs[ref] = bytes.Clone(data)
	return nil
}

// Get implements [blob.Driver].
func (d *Driver) Get(_ context.Context, ref blob.Ref) ([]byte, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	data, ok := d.blobs[ref]
	if !ok {
		return nil, blob.ErrNotFound
	}
	return bytes.Clone(data), nil
}

// Has implements [blob.Driver].
func (d *Driver) Has(_ context.Context, ref blob.Ref) (bool, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, ok := d.blobs[ref]
	return ok, nil
}

// Delete implements [blob.Driver].
func (d *Driver) Delete(_ context.Context, ref blob.Ref) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.blobs, ref)
	return nil
}
