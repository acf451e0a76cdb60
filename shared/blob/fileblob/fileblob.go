// Package fileblob keeps the blobs of package blob as files: ab/cdef… for the blob abcdef…, below a directory that several
// processes may share. A file appears under its name only when its bytes are on the disk.
package fileblob

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/bdk-lambda/bdk/shared/blob"
)

var _ blob.Driver = (*Driver)(nil)

// Files are written in tmpDir and moved to their place. What a killed process leaves there is removed when it is older than staleAfter.
const (
	tmpDir     = "tmp"
	staleAfter = time.Hour
)

// Driver is a [blob.Driver] over a directory, made by [Open]. It is safe for concurrent use.
type Driver struct{ root *os.Root }

// Open returns a driver over the directory dir, which is created with mode 0700 if it is missing. Now is the time by which
// files left by a killed process are judged. The caller must Close the driver.
func Open(dir string, now time.Time) (*Driver, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the blob directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the blob directory: %w", err)
	}
	d := &Driver{root: root}
	if err := d.removeStale(now); err != nil {
		return nil, errors.Join(fmt.Errorf("clearing the blob directory %s: %w", dir, err), root.Close())
	}
	return d, nil
}

func (d *Driver) removeStale(now time.Time) error {
	if err := d.mkdir(tmpDir); err != nil {
		return err
	}
	entries, err := fs.ReadDir(d.root.FS(), tmpDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < staleAfter {
			continue // gone, or still being written
		}
		if err := d.root.Remove(path.Join(tmpDir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close releases the directory. The driver must not be used any more.
func (d *Driver) Close() error { return d.root.Close() }

// Put implements [blob.Driver].
func (d *Driver) Put(ctx context.Context, ref blob.Ref, data []byte) error {
	stored, err := d.Get(ctx, ref)
	switch {
	case err == nil && bytes.Equal(stored, data):
		return d.sync(dirOf(ref)) // whoever wrote it may not have got that far
	case err != nil && !errors.Is(err, blob.ErrNotFound):
		return err
	}
	if err := d.mkdir(dirOf(ref)); err != nil {
		return err
	}
	tmp := path.Join(tmpDir, rand.Text())
	if err := d.write(tmp, data); err != nil {
		return errors.Join(err, d.remove(tmp))
	}
	if err := d.root.Rename(tmp, fileOf(ref)); err != nil {
		return errors.Join(err, d.remove(tmp))
	}
	return d.sync(dirOf(ref))
}

// write makes a new file whose bytes are on the disk.
func (d *Driver) write(name string, data []byte) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// mkdir makes a directory whose name is on the disk.
func (d *Driver) mkdir(name string) error {
	if err := d.root.Mkdir(name, 0o700); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return d.sync(".")
}

// sync flushes the names in a directory.
func (d *Driver) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get implements [blob.Driver]. Of a file that grew beyond the largest blob it returns the beginning.
func (d *Driver) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f, err := d.root.Open(fileOf(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, blob.MaxSize+1))
	return data, errors.Join(err, f.Close())
}

// Has implements [blob.Driver].
func (d *Driver) Has(ctx context.Context, ref blob.Ref) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	_, err := d.root.Lstat(fileOf(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Delete implements [blob.Driver]. A loss of power may bring the blob back.
func (d *Driver) Delete(ctx context.Context, ref blob.Ref) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return d.remove(fileOf(ref))
}

func (d *Driver) remove(name string) error {
	if err := d.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func dirOf(ref blob.Ref) string { return string(ref[:2]) }

func fileOf(ref blob.Ref) string { return path.Join(string(ref[:2]), string(ref[2:])) }
