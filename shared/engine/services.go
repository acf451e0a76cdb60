package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/session"
)

// conversations are the sessions of the agent as one call has them.
type conversations struct {
	*Engine

	call *bdk.Call
}

var _ bdk.Sessions = (*conversations)(nil)

// Send implements [bdk.Sessions].
func (c *conversations) Send(ctx context.Context, m bdk.Message) (bdk.Sent, error) {
	switch {
	case c.call.Session.DryRun:
		return bdk.Sent{}, bdk.ErrDryRun
	case strings.TrimSpace(m.Text) == "":
		return bdk.Sent{}, bdkerr.New(bdkerr.InvalidRequest, "the message has no Text")
	case m.As == "":
		m.As = c.call.Session.Owner
	}
	body := fmt.Appendf(nil, "%q", []string{m.Text, m.Token, m.Title, m.As, fmt.Sprint(m.Task)})
	sum := sha256.Sum256(body)
	key := session.RequestKey{Name: c.call.ID + "/" + hex.EncodeToString(sum[:]), Body: body}
	var acc session.Accepted
	var err error
	if m.Token == "" {
		mode := session.Chat
		if m.Task {
			mode = session.Task
		}
		acc, err = c.Start(ctx, session.Start{Owner: m.As, Message: m.Text, Title: m.Title, Mode: mode, Key: key})
	} else {
		acc, err = c.resume(ctx, m, key)
	}
	return bdk.Sent{SessionID: acc.SessionID, TurnID: acc.TurnID, Token: acc.Token}, err
}

func (c *conversations) resume(ctx context.Context, m bdk.Message, key session.RequestKey) (session.Accepted, error) {
	id := session.SessionOf(m.Token)
	switch id {
	case "":
		return session.Accepted{}, bdkerr.New(bdkerr.BadToken, "the Token %.80q is no continuation token", m.Token)
	case c.call.Session.ID:
		return session.Accepted{}, bdkerr.New(bdkerr.InvalidRequest, "a call cannot send to its own session: that would stop its turn")
	}
	if _, err := c.Get(ctx, id); err != nil {
		return session.Accepted{}, err
	}
	return c.Engine.Send(ctx, session.Message{SessionID: id, Owner: m.As, Token: m.Token, Text: m.Text, Key: key})
}

// Get implements [bdk.Sessions].
func (c *conversations) Get(ctx context.Context, id string) (bdk.SessionState, error) {
	row, err := c.deps.Sessions.Get(ctx, id)
	if bdkerr.CodeOf(err) == bdkerr.NotFound || err == nil && row.Agent != c.project.Slug {
		return bdk.SessionState{}, fmt.Errorf("session %.80q: %w", id, bdk.ErrNotFound)
	}
	if err != nil {
		return bdk.SessionState{}, err
	}
	return bdk.SessionState{ID: row.ID, Title: row.Title, Channel: row.Channel, Owner: row.Owner, Status: row.Status(), TurnID: row.Turn.ID}, nil
}

// Wait implements [bdk.Sessions].
func (c *conversations) Wait(ctx context.Context, id, turnID string) (bdk.TurnResult, error) {
	if _, err := c.Get(ctx, id); err != nil {
		return bdk.TurnResult{}, err
	}
	cursor := c.deps.Sessions.Cursor(id, 0)
	defer cursor.Close()
	for {
		events, err := cursor.Read(ctx)
		if err != nil {
			return bdk.TurnResult{}, err
		}
		for _, e := range events {
			if e.TurnID != turnID {
				continue
			}
			if result, ended, err := turnResult(e); ended || err != nil {
				return result, err
			}
		}
		if len(events) > 0 {
			continue
		}
		if err := cursor.Wait(ctx); err != nil {
			return bdk.TurnResult{}, fmt.Errorf("waiting for turn %.80q: %w", turnID, err)
		}
	}
}

// turnResult returns how a turn ended, if an event says so.
func turnResult(e event.Event) (r bdk.TurnResult, ended bool, err error) {
	switch e.Type {
	case event.TypeTurnCompleted:
		err = with(e, func(d event.TurnCompleted) { r = bdk.TurnResult{Status: "finished", Result: d.Result} })
	case event.TypeTurnFailed:
		err = with(e, func(d event.TurnFailed) {
			r = bdk.TurnResult{Status: "failed", Error: d.Message}
			if d.Status == event.StatusCancelled {
				r.Status = event.StatusCancelled
			}
		})
	default:
		return r, false, nil
	}
	return r, true, err
}

// maxKey bounds the keys of values, in bytes.
const maxKey = 256

// values are the values of an agent.
type values struct {
	store  *kv.Store
	prefix string
}

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

// made is what one call records for people.
type made struct {
	*Engine

	call   *bdk.Call
	record func(context.Context, ...event.Data) error // in the log of the call's session
}

var _ bdk.Artifacts = (*made)(nil)

// Tag implements [bdk.Artifacts].
func (m *made) Tag(ctx context.Context, a bdk.Artifact) (string, error) {
	in := artifact.Tagged{Kind: a.Kind, Key: a.Key, Title: a.Title, Owner: m.call.Session.Owner, SessionID: m.call.Session.ID}
	var err error
	if a.Data != nil {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false) // it would count against the limit
		if err := encoder.Encode(a.Data); err != nil {
			return "", fmt.Errorf("encoding the data of an artifact: %w", err)
		}
		in.Data = b.Bytes()
	}
	if a.Path != "" {
		in.File = path.Base(a.Path)
		if in.Content, err = m.call.Workspace.ReadFile(ctx, a.Path); err != nil {
			return "", fmt.Errorf("reading the file of an artifact: %w", err)
		}
	}
	kept, err := m.deps.Artifacts.Tag(ctx, in)
	if err != nil {
		return "", err
	}
	return kept.ID, m.record(ctx, event.ArtifactTagged{ID: kept.ID, Kind: kept.Kind, Key: kept.Key, Title: kept.Title})
}

// List implements [bdk.Artifacts].
func (m *made) List(ctx context.Context, q bdk.ArtifactQuery) ([]bdk.ArtifactRecord, error) {
	return m.deps.Artifacts.List(ctx, artifact.Query{Owner: m.call.Session.Owner, Kind: q.Kind, SessionID: q.SessionID, Limit: q.Limit})
}
