// Package blob keeps immutable bytes by their content: workspaces, artifacts, payloads too large for the event log.
//
// A [Store] computes and verifies the names; a [Driver] keeps the bytes. A blob whose Put returned survives the death of the
// process and the loss of power. Putting the same bytes again is harmless and cheap.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// MaxSize is the largest blob, in bytes.
const MaxSize = 64 << 20

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound is returned by Get when there is no such blob.
	ErrNotFound = errors.New("no such blob")
	// ErrCorrupt is returned by Get when the stored bytes are not those that were put. Putting them again mends the blob.
	ErrCorrupt = errors.New("blob is corrupt")
)

// Ref names a blob: the SHA-256 of its bytes, 64 lower-case hexadecimal digits.
type Ref string

// RefOf returns the name of data.
func RefOf(data []byte) Ref {
	sum := sha256.Sum256(data)
	return Ref(hex.EncodeToString(sum[:]))
}

// Check returns a bdkerr.InvalidRequest error unless r has the form of a name.
func (r Ref) Check() error {
	if len(r) != 2*sha256.Size {
		return bdkerr.New(bdkerr.InvalidRequest, "the blob reference %.80q has %d characters, want %d", string(r), len(r), 2*sha256.Size)
	}
	for _, c := range []byte(r) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return bdkerr.New(bdkerr.InvalidRequest, "the blob reference %q is not lower-case hexadecimal", string(r))
		}
	}
	return nil
}

// A Driver stores blobs. Adapters implement it and pass the suite in package blobtest; everybody else uses [Store], which
// passes names of the right form only. Bytes are not kept or changed by the driver after it returned, nor by its caller.
//
// Implementations are safe for concurrent use by many goroutines and processes, also for one blob.
type Driver interface {
	// Put stores data under ref, the name of data, and returns when it is durable. It may leave what is stored already only if
	// that is known to be data. A reader sees all of a blob or none of it.
	Put(ctx context.Context, ref Ref, data []byte) error

	// Get returns what is stored under ref, damaged or not, or ErrNotFound.
	Get(ctx context.Context, ref Ref) ([]byte, error)

	// Has reports whether something is stored under ref.
	Has(ctx context.Context, ref Ref) (bool, error)

	// Delete removes what is stored under ref. It is no error if there is nothing.
	Delete(ctx context.Context, ref Ref) error
}

// Store keeps blobs. It is safe for concurrent use.
type Store struct{ driver Driver }

// New returns a store over driver.
func New(driver Driver) *Store { return &Store{driver: driver} }

// Put stores data and returns its name. More than [MaxSize] bytes are a bdkerr.PayloadTooLarge error.
func (s *Store) Put(ctx context.Context, data []byte) (Ref, error) {
	if len(data) > MaxSize {
		return "", bdkerr.New(bdkerr.PayloadTooLarge, "the blob has %d bytes: at most %d are allowed", len(data), MaxSize)
	}
	ref := RefOf(data)
	if err := s.driver.Put(ctx, ref, data); err != nil {
		return "", fmt.Errorf("putting blob %s: %w", ref, err)
	}
	return ref, nil
}

// Get returns the bytes of ref, [ErrNotFound] or [ErrCorrupt].
func (s *Store) Get(ctx context.Context, ref Ref) ([]byte, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	data, err := s.driver.Get(ctx, ref)
	if err == nil && RefOf(data) != ref {
		err = fmt.Errorf("%w: got %d bytes of another content", ErrCorrupt, len(data))
	}
	if err != nil {
		return nil, fmt.Errorf("getting blob %s: %w", ref, err)
	}
	return data, nil
}

// Has reports whether ref is stored, without verifying its bytes.
func (s *Store) Has(ctx context.Context, ref Ref) (bool, error) {
	if err := ref.Check(); err != nil {
		return false, err
	}
	ok, err := s.driver.Has(ctx, ref)
	if err != nil {
		return false, fmt.Errorf("looking for blob %s: %w", ref, err)
	}
	return ok, nil
}

// Delete removes ref, if it is there. Everybody who put the same bytes loses them.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	if err := ref.Check(); err != nil {
		return err
	}
	if err := s.driver.Delete(ctx, ref); err != nil {
		return fmt.Errorf("deleting blob %s: %w", ref, err)
	}
	return nil
}
