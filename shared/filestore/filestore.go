// Package filestore keeps files for the code of an agent: those of a session, and those that all its sessions share. An entry of package kv
// names the blobs that a file consists of, so that an append writes what is new and not what was there.
package filestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// The limits of files.
const (
	MaxName = 200      // bytes
	MaxSize = 16 << 20 // bytes
)

const (
	// chunk is the size, in bytes, from which on a part of a file is not written again by an append.
	chunk = 64 << 10
	// salt is how many random bytes a blob begins with: it belongs to one file alone, and goes with it.
	salt = 16
	// maxTries bounds how often a change is tried against others. Each lost try means that another one was stored.
	maxTries = 256
)

// Store keeps the files of an agent. It is safe for concurrent use.
type Store struct {
	kv    *kv.Store
	blobs *blob.Store
	clock clock.Clock
	agent string
	seed  maphash.Seed
	locks [64]sync.Mutex // of files, by a hash of their keys: changes of one process do not get in each other's way
}

// New returns the files of an agent. A nil clock is the system's.
func New(entries *kv.Store, blobs *blob.Store, clk clock.Clock, agent string) *Store {
	if clk == nil {
		clk = clock.System{}
	}
	return &Store{kv: entries, blobs: blobs, clock: clk, agent: agent, seed: maphash.MakeSeed()}
}

// Session returns the files of a session. In a dry run nothing is changed.
func (s *Store) Session(id string, dry bool) bdk.Files { return &scope{s, "s/" + id + "/", dry} }

// Deployment returns the files that all sessions share.
func (s *Store) Deployment() bdk.Files { return &scope{store: s, name: "d/"} }

// scope is the files of a session, or of the deployment.
type scope struct {
	store *Store
	name  string
	dry   bool
}

// record is what is kept of a file.
type record struct {
	Parts     []part    `json:"parts"`
	Size      int64     `json:"size"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// part is a blob of a file.
type part struct {
	Ref  blob.Ref `json:"ref"`
	Size int64    `json:"size"` // without the salt
}

// Deployment implements [bdk.Files].
func (f *scope) Deployment() bdk.Files { return &scope{f.store, "d/", f.dry} }

// Read implements [bdk.Files].
func (f *scope) Read(ctx context.Context, name string) ([]byte, error) {
	for range maxTries {
		r, version, err := f.get(ctx, name)
		if err != nil {
			return nil, err
		}
		if version == 0 {
			return nil, fmt.Errorf("file %q: %w", name, bdk.ErrNotFound)
		}
		data, err := f.parts(ctx, r.Parts)
		if !errors.Is(err, blob.ErrNotFound) {
			return data, err
		}
		// it was changed meanwhile: its parts went
	}
	return nil, bdkerr.New(bdkerr.Conflict, "the file %q changes too fast", name)
}

func (f *scope) parts(ctx context.Context, parts []part) ([]byte, error) {
	data := []byte{}
	for _, p := range parts {
		raw, err := f.store.blobs.Get(ctx, p.Ref)
		if err != nil {
			return nil, fmt.Errorf("reading a file: %w", err)
		}
		data = append(data, raw[min(salt, len(raw)):]...)
	}
	return data, nil
}

// Write implements [bdk.Files].
func (f *scope) Write(ctx context.Context, name string, data []byte) error {
	return f.change(ctx, name, func(record) (record, []part, error) {
		var r record
		for rest := data; len(rest) > 0; {
			n := min(len(rest), blob.MaxSize-salt)
			p, err := f.put(ctx, rest[:n])
			if err != nil {
				return r, r.Parts, err
			}
			r.Parts, rest = append(r.Parts, p), rest[n:]
		}
		return r, r.Parts, nil
	})
}

// Append implements [bdk.Files].
func (f *scope) Append(ctx context.Context, name string, data []byte) error {
	return f.change(ctx, name, func(old record) (record, []part, error) {
		r, tail := record{Parts: old.Parts}, data
		if n := len(old.Parts); n > 0 && old.Parts[n-1].Size < chunk {
			last, err := f.parts(ctx, old.Parts[n-1:])
			if err != nil {
				return r, nil, err
			}
			r.Parts, tail = old.Parts[:n-1:n-1], append(last, data...)
		}
		if len(tail) == 0 {
			return old, nil, nil
		}
		p, err := f.put(ctx, tail)
		r.Parts = append(slices.Clip(r.Parts), p)
		return r, []part{p}, err
	})
}

// Remove implements [bdk.Files].
func (f *scope) Remove(ctx context.Context, name string) error {
	if f.dry {
		return bdk.ErrDryRun
	}
	r, version, err := f.get(ctx, name)
	if err != nil || version == 0 {
		return err
	}
	if err := f.store.kv.Delete(ctx, f.key(name), 0); err != nil {
		return err
	}
	return f.drop(ctx, r.Parts, nil)
}

// List implements [bdk.Files].
func (f *scope) List(ctx context.Context, prefix, after string, limit int) ([]bdk.StoredFile, error) {
	if after != "" {
		after = f.key(after)
	}
	entries, err := f.store.kv.List(ctx, f.key(prefix), after, limit)
	if err != nil {
		return nil, err
	}
	files := make([]bdk.StoredFile, len(entries))
	for i, e := range entries {
		var r record
		if err := json.Unmarshal(e.Value, &r); err != nil {
			return nil, fmt.Errorf("reading what is known of a file: %w", err)
		}
		files[i] = bdk.StoredFile{Name: strings.TrimPrefix(e.Key, f.key("")), Size: r.Size, UpdatedAt: r.UpdatedAt}
	}
	return files, nil
}

// change replaces what a file consists of by what next makes of it, again on what is there then whenever another change was faster.
// Next also returns the parts that it has made, which go if they are not used.
func (f *scope) change(ctx context.Context, name string, next func(record) (record, []part, error)) error {
	if f.dry {
		return bdk.ErrDryRun
	}
	lock := &f.store.locks[maphash.String(f.store.seed, f.key(name))%uint64(len(f.store.locks))]
	lock.Lock()
	defer lock.Unlock()
	for range maxTries {
		old, version, err := f.get(ctx, name)
		if err != nil {
			return err
		}
		r, made, err := next(old)
		if errors.Is(err, blob.ErrNotFound) {
			continue // it was changed meanwhile: its parts went
		}
		if err == nil {
			err = f.store.set(ctx, f.key(name), version, r)
		}
		switch {
		case err == nil:
			return f.drop(ctx, old.Parts, r.Parts)
		case !errors.Is(err, kv.ErrExists) && !errors.Is(err, kv.ErrVersion):
			return errors.Join(err, f.drop(context.WithoutCancel(ctx), made, nil))
		}
		if err := f.drop(ctx, made, nil); err != nil {
			return err
		}
	}
	return bdkerr.New(bdkerr.Conflict, "the file %q changes too fast", name)
}

// set stores what a file consists of, if it has the version, 0 for no file.
func (s *Store) set(ctx context.Context, key string, version int64, r record) error {
	r.Size, r.UpdatedAt = 0, s.clock.Now().UTC().Truncate(time.Millisecond)
	for _, p := range r.Parts {
		r.Size += p.Size
	}
	if r.Size > MaxSize {
		return bdkerr.New(bdkerr.PayloadTooLarge, "the file would have %d bytes: at most %d are allowed", r.Size, MaxSize)
	}
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding what is known of a file: %w", err)
	}
	if version == 0 {
		return s.kv.Create(ctx, key, value, 0)
	}
	return s.kv.Swap(ctx, key, version, value, 0)
}

// put stores a part.
func (f *scope) put(ctx context.Context, data []byte) (part, error) {
	if len(data) > MaxSize {
		return part{}, bdkerr.New(bdkerr.PayloadTooLarge, "the file would have more than %d bytes", MaxSize)
	}
	raw := make([]byte, salt, salt+len(data))
	_, _ = rand.Read(raw) // never fails
	ref, err := f.store.blobs.Put(ctx, append(raw, data...))
	if err != nil {
		return part{}, fmt.Errorf("storing a file: %w", err)
	}
	return part{ref, int64(len(data))}, nil
}

// drop removes the parts that are not kept. Who is reading them finds that the file has changed.
func (f *scope) drop(ctx context.Context, parts, kept []part) error {
	used := map[blob.Ref]bool{}
	for _, p := range kept {
		used[p.Ref] = true
	}
	var errs []error
	for _, p := range parts {
		if !used[p.Ref] && p.Ref != "" {
			errs = append(errs, f.store.blobs.Delete(ctx, p.Ref))
		}
	}
	return errors.Join(errs...)
}

func (f *scope) key(name string) string { return "file/" + f.store.agent + "/" + f.name + name }

// get returns what is known of a file, and the version 0 if there is none.
func (f *scope) get(ctx context.Context, name string) (record, int64, error) {
	if len(name) > MaxName {
		return record{}, 0, bdkerr.New(bdkerr.InvalidRequest, "the name %.40q… of the file has %d bytes: at most %d are allowed", name, len(name), MaxName)
	}
	if err := workspace.CheckPath(name); err != nil {
		return record{}, 0, err
	}
	var r record
	e, err := f.store.kv.Get(ctx, f.key(name))
	if errors.Is(err, kv.ErrNotFound) {
		return r, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &r)
	}
	if err != nil {
		return r, 0, fmt.Errorf("looking for a file: %w", err)
	}
	return r, e.Version, nil
}

const (
	// MemoryDir is where files of the deployment are that the model is shown.
	MemoryDir = "memory"
	maxMemory = 1 << 20 // bytes of them
)

// Memory returns the files of the deployment that the model is shown, up to 1 MiB: the ends of the last written ones first.
func (s *Store) Memory(ctx context.Context) (map[string][]byte, error) {
	files := s.Deployment()
	list, err := files.List(ctx, MemoryDir+"/", "", 0)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	newestFirst(list)
	shown, room := map[string][]byte{}, maxMemory
	for _, f := range list {
		if room == 0 {
			break
		}
		data, err := files.Read(ctx, f.Name)
		if errors.Is(err, bdk.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data = end(data, room)
		shown[f.Name], room = data, room-len(data)
	}
	return shown, nil
}

func newestFirst(list []bdk.StoredFile) {
	slices.SortStableFunc(list, func(a, b bdk.StoredFile) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
}

// end returns the last lines of a text, of at most a number of bytes.
func end(data []byte, most int) []byte {
	if len(data) <= most {
		return data
	}
	data = data[len(data)-most:]
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[i+1:]
	}
	return data
}
