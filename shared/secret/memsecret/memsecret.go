// Package memsecret keeps the secret of package secret in memory: for tests, and for hosts that have it from elsewhere.
package memsecret

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/bdk-lambda/bdk/shared/secret"
)

var _ secret.Driver = (*Driver)(nil)

const kept = 2 // versions

// Driver is an in-memory [secret.Driver]. Its zero value has no version. It is safe for concurrent use.
type Driver struct {
	mu       sync.Mutex
	versions []string // newest first
}

// Put makes version the newest one. The newest one before stays valid.
func (d *Driver) Put(version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.versions = slices.Insert(d.versions[:min(len(d.versions), kept-1)], 0, version)
}

// Read implements [secret.Driver].
func (d *Driver) Read(ctx context.Context) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.versions) == 0 {
		return nil, errors.New("the secret has no version")
	}
	return slices.Clone(d.versions), nil
}
