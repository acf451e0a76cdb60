package bdk

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

// Errors that callers tell apart with errors.Is.
var (
	ErrNotFound = errors.New("bdk: not found")         // there is no such session, entry or artifact
	ErrChanged  = errors.New("bdk: changed meanwhile") // the entry has another version, or is gone, or is there already
	ErrDryRun   = errors.New("bdk: not in a dry run")  // the session of the call answers writes without running them
)

// Services are what a host offers to an agent's code, whoever calls it. In the zero value there are none. What belongs to a session
// belongs to that of the caller.
type Services struct {
	KV        KV           // values that all sessions of the agent share
	Files     Files        // files of the session and of the deployment, beside the workspace
	Artifacts Artifacts    // what the session has made for people
	MCP       MCP          // servers of tools and other agents that the agent is connected to
	Reminders Reminders    // of the session; nil for callers without one
	StateRoot string       // a directory that is shared by all sessions of the agent and survives restarts; "" where the host has none
	Logger    *slog.Logger // set by the host; call Log
}

// Log returns a logger whose records carry the ids of the caller. That of the zero Services discards them.
func (s *Services) Log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// Sessions are the conversations of the agent, which a call may begin, continue and watch. It is safe for concurrent use.
type Sessions interface {
	// Send starts a session, or continues one, and returns once the message is durable: its turn ends in exactly one way, whatever
	// becomes of the call. The same message sent again by the same call is sent once, also after a crash. A running turn of the
	// session that is continued is stopped. The error is ErrDryRun in a dry-run session.
	Send(ctx context.Context, m Message) (Sent, error)
	// Get returns what is known of a session of the agent, whoever it belongs to; ErrNotFound if there is none.
	Get(ctx context.Context, id string) (SessionState, error)
	// Wait waits until a turn has ended, or ctx ends: a tool has its Timeout.
	Wait(ctx context.Context, id, turnID string) (TurnResult, error)
}

// Message is what [Sessions].Send sends. Only Text is required.
type Message struct {
	Text  string // of the user
	Token string // the continuation token of the session to continue; "" starts one
	Title string // of a session that is started; default: none
	Task  bool   // a session that is started ends with its turn
	As    string // the principal it is sent as, who owns a session that is started; default: the owner of the call's session
}

// Sent is a message that was accepted.
type Sent struct {
	SessionID string // the session, new or continued
	TurnID    string // the turn that answers it
	Token     string // continues the session
}

// SessionState is what is known of a session.
type SessionState struct {
	ID      string // the session id of the HTTP API
	Title   string // "" if it has none
	Channel string // "http" for the built-in channel
	Owner   string // a principal
	Status  string // running, waiting, completed or failed
	TurnID  string // the turn that runs; "" if none does
}

// TurnResult is how a turn ended.
type TurnResult struct {
	Status string // finished, failed or cancelled
	Result string // the last text of a turn that finished
	Error  string // why it did not
}

// Tools are the server tools of the agent, for code that is no tool itself. It is safe for concurrent use.
type Tools interface {
	// Call runs a tool with an input that is encoded as JSON; nil stands for {}. The result is a JSON string for text, any JSON otherwise.
	// What the tool returns as an error, or panics with, is the error. The call belongs to no session: it has files of its own, and a
	// tool that needs approval can only be called by whom it names as an approver.
	Call(ctx context.Context, name string, input any) (json.RawMessage, error)
}

// Reminders have a conversation go on at a later time: its owner's agent is sent a message then, in the session that the reminder was
// created for, and answers it in a turn of its own. A turn that runs at that time is not interrupted: the reminder waits for its end.
// It is safe for concurrent use.
type Reminders interface {
	// Create makes a reminder of the session, and returns it. It is durable by then, and sent exactly once, on AWS in the first minute after
	// its time. One with the same key that is still open is replaced. A session has at most 100 that are open.
	// The error is ErrDryRun in a dry-run session.
	Create(ctx context.Context, r Reminder) (ReminderRecord, error)
	// List returns those of the session that are open, the next one first.
	List(ctx context.Context) ([]ReminderRecord, error)
	// Cancel removes one of the session that is open; the error is ErrNotFound if there is none, because it was sent, or is being sent, too. The error is
	// ErrDryRun in a dry-run session.
	Cancel(ctx context.Context, id string) error
}

// Reminder is what [Reminders].Create makes. Message is required, and exactly one of At and After.
type Reminder struct {
	Message string        // what the session is sent: at most 16 KiB
	At      time.Time     // when: at most a year ahead; a time that has passed is now
	After   time.Duration // how long from now
	Key     string        // names it among those of the session, at most 256 bytes; default: the reminder replaces no other
}

// ReminderRecord is a reminder as it is kept.
type ReminderRecord struct {
	ID        string    `json:"id"`            // begins with rem_
	Key       string    `json:"key,omitempty"` // as it was given
	SessionID string    `json:"sessionId"`     // that is sent the message
	Message   string    `json:"message"`       // as it was given
	At        time.Time `json:"at"`            // in UTC and whole milliseconds
	CreatedAt time.Time `json:"createdAt"`     // in UTC
}

// KV keeps small JSON values for all sessions of the agent, durably. Keys have at most 256 bytes, values 256 KiB. It is safe for
// concurrent use.
type KV interface {
	// Get returns the entry of a key, ErrNotFound if there is none.
	Get(ctx context.Context, key string) (Entry, error)
	// Set stores a value, which is encoded as JSON, whatever there was.
	Set(ctx context.Context, key string, value any) error
	// Swap stores a value if the entry has the version, 0 for no entry. Otherwise the error is ErrChanged: of many who swap one wins.
	Swap(ctx context.Context, key string, version int64, value any) error
	// Delete removes an entry. It is no error if there is none.
	Delete(ctx context.Context, key string) error
	// List returns the entries whose keys begin with prefix and come after another key, in the order of the bytes of their keys:
	// at most limit, which is cut to 1,000; 0 means 1,000.
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
}

// Entry is a value of a [KV].
type Entry struct {
	Key     string          // as it was stored
	Value   json.RawMessage // any JSON
	Version int64           // names this value of the key; never 0
}

// Artifacts are what the sessions of the agent have made and people look for: a report, a link, a file. They last longer than
// their sessions. It is safe for concurrent use.
type Artifacts interface {
	// Tag records an artifact of the call's session, in the place of the one of the same kind and key that its owner has, and returns
	// its id. The event artifact.tagged tells.
	Tag(ctx context.Context, a Artifact) (id string, err error)
	// List returns the artifacts of the owner of the call's session, the newest update first.
	List(ctx context.Context, q ArtifactQuery) ([]ArtifactRecord, error)
}

// Artifact is what [Artifacts].Tag records. Kind and Key are required.
type Artifact struct {
	Kind  string // such as report: at most 64 lower-case letters, digits, - and _
	Key   string // names it among those of its kind: at most 256 bytes
	Title string // what people read; default: the key
	Data  any    // JSON of at most 64 KiB; default: none
	Path  string // a file of the workspace that is kept with it, as it is now; "" for none
}

// ArtifactQuery selects artifacts. The zero value selects the newest 100.
type ArtifactQuery struct {
	Kind      string // "" for all
	SessionID string // "" for all
	Limit     int    // 0: 100; at most 1,000
}

// ArtifactRecord is an artifact as it is kept.
type ArtifactRecord struct {
	ID        string          `json:"id"`              // art_ and what follows from owner, kind and key
	Kind      string          `json:"kind"`            // as it was tagged
	Key       string          `json:"key"`             // as it was tagged
	Title     string          `json:"title"`           // the key if none was given
	SessionID string          `json:"sessionId"`       // that tagged it last
	Owner     string          `json:"owner"`           // a principal
	Data      json.RawMessage `json:"data,omitempty"`  // as it was tagged
	File      string          `json:"file,omitempty"`  // the name of its file; "" if it has none
	Bytes     int64           `json:"bytes,omitempty"` // of the file
	CreatedAt time.Time       `json:"createdAt"`       // when it was tagged first, in UTC
	UpdatedAt time.Time       `json:"updatedAt"`       // when it was tagged last, in UTC
}
