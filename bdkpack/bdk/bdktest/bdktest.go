// Package bdktest helps to test what agents are made of: it has the services of a host, in memory, and makes events.
package bdktest

import (
	"log/slog"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/filestore"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/values"
)

// Event returns an event as a session records it, of the turn turn_1 of the session ses_1, at the current time.
func Event(data bdk.EventData) bdk.Event {
	e := event.New("turn_1", data)
	e.SessionID, e.At = "ses_1", clock.System{}.Now().UTC()
	return e
}

// Services returns services with KV, Files, a state root that is removed after the test, and a log that the test shows. What one keeps, others do
// not see.
func Services(t testing.TB) bdk.Services {
	t.Helper()
	const agent, session = "test", "ses_1"
	entries, blobs := kv.New(memkv.New(), kv.Options{}), blob.New(memblob.New())
	return bdk.Services{
		KV: values.New(entries, agent), Files: filestore.New(entries, blobs, nil, agent).Session(session, false), StateRoot: t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// HookContext returns the context of a hook in the session ses_1 of local, with the services of [Services].
func HookContext(t testing.TB) *bdk.HookContext {
	t.Helper()
	return &bdk.HookContext{
		Services: Services(t), Agent: "test", Channel: bdk.HookChannel{ID: "http"},
		Session: bdk.SessionInfo{ID: "ses_1", TurnID: "turn_1", Agent: "test", Channel: "http", Mode: "chat", Purpose: "chat", Owner: "local"},
	}
}

// Call returns a call in the session ses_1 of local, with the services of [Services] and no workspace.
func Call(t testing.TB) *bdk.Call {
	t.Helper()
	return &bdk.Call{ID: "call_1", Services: Services(t), Session: HookContext(t).Session}
}
