// Package values keeps JSON values for the code of an agent, in entries of package kv.
package values

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/kv"
)

// maxKey bounds the keys of values, in bytes.
const maxKey = 256

// values are the values of an agent.
type values struct {
	store  *kv.Store
	prefix string
}

// New returns the values of an agent.
func New(store *kv.Store, agent string) bdk.KV { return &values{store, "values/" + agent + "/"} }

var _ bdk.KV = (*values)(nil)

func (v *values) key(key string) (string, error) {
	if key == "" || len(key) > maxKey {
		return "", bdkerr.New(bdkerr.InvalidRequest, "the key %.40q has %d bytes: it must have 1 to %d", key, len(key), maxKey)
	}
	return v.prefix + key, nil
}

// Get implements [bdk.KV].
func (v *values) Get(ctx context.Context, key string) (bdk.Entry, error) {
	full, err := v.key(key)
	if err != nil {
		return bdk.Entry{}, err
	}
	e, err := v.store.Get(ctx, full)
	if errors.Is(err, kv.ErrNotFound) {
		return bdk.Entry{}, fmt.Errorf("key %q: %w", key, bdk.ErrNotFound)
	}
	return bdk.Entry{Key: key, Value: e.Value, Version: e.Version}, err
}

// maxSets bounds how often Set tries against others. Each lost try means that another one was stored.
const maxSets = 64

// Set implements [bdk.KV].
func (v *values) Set(ctx context.Context, key string, value any) error {
	for range maxSets {
		old, err := v.Get(ctx, key)
		if err != nil && !errors.Is(err, bdk.ErrNotFound) {
			return err
		}
		if err = v.Swap(ctx, key, old.Version, value); !errors.Is(err, bdk.ErrChanged) {
			return err
		}
	}
	return bdkerr.New(bdkerr.Conflict, "the key %q changes too fast", key)
}

// Swap implements [bdk.KV].
func (v *values) Swap(ctx context.Context, key string, version int64, value any) error {
	full, err := v.key(key)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding the value of %q: %w", key, err)
	}
	if version == 0 {
		err = v.store.Create(ctx, full, raw, 0)
	} else {
		err = v.store.Swap(ctx, full, version, raw, 0)
	}
	if errors.Is(err, kv.ErrExists) || errors.Is(err, kv.ErrVersion) {
		return fmt.Errorf("key %q: %w", key, bdk.ErrChanged)
	}
	return err
}

// Delete implements [bdk.KV].
func (v *values) Delete(ctx context.Context, key string) error {
	full, err := v.key(key)
	if err != nil {
		return err
	}
	return v.store.Delete(ctx, full, 0)
}

// List implements [bdk.KV].
func (v *values) List(ctx context.Context, prefix, after string, limit int) ([]bdk.Entry, error) {
	if after != "" {
		after = v.prefix + after
	}
	list, err := v.store.List(ctx, v.prefix+prefix, after, limit)
	if err != nil {
		return nil, err
	}
	entries := make([]bdk.Entry, len(list))
	for i, e := range list {
		entries[i] = bdk.Entry{Key: strings.TrimPrefix(e.Key, v.prefix), Value: e.Value, Version: e.Version}
	}
	return entries, nil
}
