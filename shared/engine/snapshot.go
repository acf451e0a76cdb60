package engine

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/bdk-lambda/bdk/shared/session"
)

// A snapshot is taken when at least snapshotEvents events follow the one before, or one for every snapshotBytes of the
// conversation if that is more: so writing it costs little beside the events, and what is left to read does not grow with
// the log, because compaction bounds the conversation.
const (
	snapshotEvents = 128
	snapshotBytes  = 256
)

// load returns the transcript of a session up to some event: from the cache, the latest snapshot, or empty.
func (e *Engine) load(ctx context.Context, id string, next int64) (*transcript, error) {
	if t := e.cache.take(id); t != nil {
		return t, nil
	}
	var snap session.Snapshot
	if next >= snapshotEvents {
		var err error
		if snap, err = e.deps.Sessions.Snapshot(ctx, id); err != nil {
			return nil, err
		}
	}
	t := revive(snap)
	t.limit(e.project.Agent.Limits.ToolOutput)
	return t, nil
}

// keep caches the transcript and, once enough has happened since the last one, stores a snapshot.
func (e *Engine) keep(ctx context.Context, r *run) {
	t := r.t
	if since := t.Next - t.kept; since >= int64(max(snapshotEvents, t.Bytes/snapshotBytes)) {
		snap, err := freeze(t)
		if err == nil {
			err = e.deps.Sessions.PutSnapshot(ctx, r.ref.SessionID, snap)
		}
		if err != nil {
			r.log.WarnContext(ctx, "snapshot not stored", slog.Any("error", err))
		} else {
			t.kept = t.Next
		}
	}
	e.cache.put(r.ref.SessionID, t)
}

// frozen is a transcript in a snapshot. Form changes whenever that of the transcript does.
type frozen struct {
	Form       int         `json:"form"`
	Transcript *transcript `json:"transcript"`
}

const form = 2

func freeze(t *transcript) (session.Snapshot, error) {
	data, err := json.Marshal(frozen{form, t})
	return session.Snapshot{Next: t.Next, Data: data}, err
}

// revive returns the transcript of a snapshot, an empty one if it cannot be used: the log has it all.
func revive(snap session.Snapshot) *transcript {
	var f frozen
	if json.Unmarshal(snap.Data, &f) != nil || f.Form != form || f.Transcript == nil || f.Transcript.Next != snap.Next {
		return &transcript{}
	}
	f.Transcript.kept = snap.Next
	return f.Transcript
}
