// Package httpapi is the HTTP surface of a host: sessions, their streams, approvals and artifacts, tools, and what describes the agents.
//
// Every route stands in one table, see [Routes]. Who may call it is checked before its handler runs and before the first
// byte is written: 401 for nobody, 404 for a session that does not exist, 403 for one of another caller. Every error is
// {"ok":false,"error":"<code>","message":"…"} with the code and status of package bdkerr.
package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

// RequestLogged is the message of the log record that each request leaves.
const RequestLogged = "request"

// Agent is what the API asks of one agent. Implementations are safe for concurrent use.
type Agent interface {
	// Project returns the agent as it was discovered.
	Project() bdk.Project
	// Models returns the ids of the agent's model and its fallbacks.
	Models() []string
	// Start records a session and has its first turn run.
	Start(ctx context.Context, in session.Start) (session.Accepted, error)
	// Send records a follow-up and has its turn run.
	Send(ctx context.Context, in session.Message) (session.Accepted, error)
	// Stop ends the active turn of a session, see [session.Store.Stop].
	Stop(ctx context.Context, id, turnID string) (string, error)
	Stores
	Calls
	Timed
}

// Stores is where the API reads of one agent. Implementations are safe for concurrent use.
type Stores interface {
	// Sessions returns the store of the agent's sessions.
	Sessions() *session.Store
	// Artifacts returns the store of what the agent's sessions have made; nil if there is none.
	Artifacts() *artifact.Store
	// Cost adds up what a session used.
	Cost(ctx context.Context, id string) (engine.Cost, error)
}

// Timed is what of one agent happens at its time, and by hand in development. Implementations are safe for concurrent use.
type Timed interface {
	// Dispatch has a schedule happen, see [engine.Engine.Dispatch].
	Dispatch(ctx context.Context, t engine.Tick) (engine.Dispatched, error)
	// Reminders returns the open reminders of all sessions, the next one first.
	Reminders(ctx context.Context, limit int) ([]bdk.ReminderRecord, error)
	// Remind sends a reminder now, see [engine.Engine.Remind].
	Remind(ctx context.Context, id string) error
}

// Calls is what the API asks of one agent about single calls of tools. Implementations are safe for concurrent use.
type Calls interface {
	// Approvals returns the calls of a session that wait for approval and that the caller may see, see [engine.Engine.Approvals].
	Approvals(ctx context.Context, sessionID, caller string) ([]engine.Approval, error)
	// Decide records a decision about a call that waits, see [engine.Engine.Decide].
	Decide(ctx context.Context, d engine.Decision) (engine.Decided, error)
	// CallableTools returns the server tools, in name order.
	CallableTools() []bdk.NamedTool
	// ConnectedTools returns the tools of connections that are offered in a session, in name order, and what is wrong with connections.
	ConnectedTools(ctx context.Context, s bdk.SessionInfo) ([]bdk.NamedTool, []engine.ConnectionFault)
	// ConnectionFaults returns what is wrong with connections, as far as it is known.
	ConnectionFaults() []engine.ConnectionFault
	// CallTool runs a server tool without a model, see [engine.Engine.CallTool].
	CallTool(ctx context.Context, c engine.ToolCall) (engine.ToolOutcome, error)
}

// Logs is where the API reads the host's log. Implementations are safe for concurrent use.
type Logs interface {
	// After returns the records with a number greater than n, oldest first, and the number to ask with the next time.
	After(ctx context.Context, n int64) (records []telemetry.Record, next int64, err error)
}

// Options adjust the API. The zero value serves every agent at /<slug>/v1, to callers on this machine.
type Options struct {
	Auth       auth.Policy // who is calling; default: auth.Loopback()
	Single     bool        // serve the only agent at /v1
	Playground bool        // serve the index routes GET / and GET /v1/agents
	Dev        bool        // serve the routes /v1/dev, and list the sessions of every principal to callers on this machine

	// Origins are those whose pages may read answers in a browser, such as https://app.example.com, or * alone for any;
	// see [CheckOrigins]. They admit nobody: a page sends a bearer token as every caller does, and auth.Loopback admits
	// no page of another origin. Default: none, answers have no CORS headers.
	Origins []string

	Blobs       *blob.Store                // keeps workspace files; nil: sessions with files are refused
	Logs        Logs                       // what GET /v1/logs shows; nil: nothing
	Diagnostics map[string]json.RawMessage // what discovery found, by slug: a JSON array

	Clock clock.Clock   // default: the system clock
	NewID func() string // request ids; default: 130 random bits
	Log   *slog.Logger  // default: nothing is logged

	Closing      <-chan struct{} // closed when the host shuts down: streams end, and soon calls of tools; nil: never
	Grace        time.Duration   // how long calls of tools go on then; default 5 s
	Heartbeat    time.Duration   // silence after which a stream sends an empty line; default 20 s
	WriteTimeout time.Duration   // how long a client may take to read what was written; default 30 s
	MaxStream    time.Duration   // age at which a stream ends; 0: never
	IdleClose    time.Duration   // how long after the last event a stream ends if no turn runs; 0: never
}

type api struct {
	opts   Options
	agents []Agent
	mux    *http.ServeMux
	lost   http.Handler // answers 404
	bufs   sync.Pool    // of *bytes.Buffer
}

// New returns the handler of a host with the given agents. It panics if Options.Single is set and there is not exactly
// one agent, if two agents share a slug, or if Options.Origins do not pass [CheckOrigins].
func New(agents []Agent, opts Options) http.Handler {
	if err := CheckOrigins(opts.Origins); err != nil {
		panic("httpapi: " + err.Error())
	}
	if opts.Single && len(agents) != 1 {
		panic("httpapi: Options.Single needs exactly one agent")
	}
	a := &api{opts: opts.withDefaults(), agents: agents, mux: http.NewServeMux()}
	a.bufs.New = func() any { return new(bytes.Buffer) }
	a.mount()
	return a
}

func (o Options) withDefaults() Options {
	if o.Auth == nil {
		o.Auth = auth.Loopback()
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.NewID == nil {
		o.NewID = func() string { return strings.ToLower(rand.Text()) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 20 * time.Second
	}
	if o.Grace <= 0 {
		o.Grace = 5 * time.Second
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
	return o
}

// ServeHTTP implements [http.Handler].
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !plainPath(r.URL.EscapedPath()) {
		a.lost.ServeHTTP(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// plainPath reports whether the mux matches a path as it is. Others it would answer with a redirect, which clients follow
// with another method or without their body.
func plainPath(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for seg := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
		if seg == "." || seg == ".." || seg == "" && path != "/" {
			return false
		}
	}
	return true
}
