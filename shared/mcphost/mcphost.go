// Package mcphost serves an agent to clients of the Model Context Protocol: as somebody to talk to, and as the tools it has.
//
// Every message is answered by itself, with one JSON answer: nothing of a client is remembered between two of them, so any process
// can take any message. Who is calling, and whether they may, is for package httpapi; an [Endpoint] finds the caller in the context.
package mcphost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Agent is what an endpoint asks of its agent. Implementations are safe for concurrent use.
type Agent interface {
	// Project returns the agent as it was discovered.
	Project() bdk.Project
	// Sessions returns the store of the agent's sessions.
	Sessions() *session.Store
	// Start records a session and has its first turn run.
	Start(ctx context.Context, in session.Start) (session.Accepted, error)
	// Send records a follow-up and has its turn run.
	Send(ctx context.Context, in session.Message) (session.Accepted, error)
	// Approvals returns the calls of a session that wait for approval, see [engine.Engine.Approvals].
	Approvals(ctx context.Context, sessionID, caller string) ([]engine.Approval, error)
	// CallTool runs a server tool without a model, see [engine.Engine.CallTool].
	CallTool(ctx context.Context, c engine.ToolCall) (engine.ToolOutcome, error)
}

// Channel is the channel of the sessions that clients start here.
const Channel = "mcp"

// Endpoint serves one agent. It is safe for concurrent use.
type Endpoint struct {
	agent Agent
	opts  Options
	chat  http.Handler
	tools http.Handler
}

// Options adjust an endpoint. The zero value is usable.
type Options struct {
	MaxWait time.Duration // the longest an answer may be waited for, whatever the client says; default, and at most: 4 minutes
	Log     *slog.Logger  // default: nothing is logged
}

// New returns the endpoint of an agent.
func New(agent Agent, opts Options) *Endpoint {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.MaxWait <= 0 || opts.MaxWait > mostWait {
		opts.MaxWait = mostWait
	}
	e := &Endpoint{agent: agent, opts: opts}
	e.chat, e.tools = e.handler(e.chatServer()), e.handler(e.toolServer())
	return e
}

// Request is a message of a client.
type Request struct {
	HTTP *http.Request   // its context lasts as long as the work may take, and carries the caller; its body is not read
	Body []byte          // of the request
	Gone <-chan struct{} // closed when nobody waits for the answer any more; nil: never
	ID   string          // names the request in the log
}

// Chat answers a message to the agent as somebody to talk to.
func (e *Endpoint) Chat(r Request) Answer { return answer(e.chat, r) }

// Tools answers a message to the agent as a set of tools.
func (e *Endpoint) Tools(r Request) Answer { return answer(e.tools, r) }

type requestKey struct{}

// requestOf returns the request that a call belongs to.
func requestOf(ctx context.Context) Request {
	r, _ := ctx.Value(requestKey{}).(Request)
	return r
}

// server returns a server without tools.
func (e *Endpoint) server(instructions string) *mcp.Server {
	p := e.agent.Project()
	name := mcp.Implementation{Name: p.Slug, Title: p.Agent.Name, Version: version}
	s := mcp.NewServer(&name, &mcp.ServerOptions{
		Instructions: instructions,
		PageSize:     10_000, // an agent's tools are a few
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	s.AddReceivingMiddleware(refuseSubscriptions)
	return s
}

// version is that of the surface, which clients show.
const version = "1"

// refuseSubscriptions answers that nothing is told later: every message is answered by itself.
func refuseSubscriptions(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "subscriptions/listen" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server has no subscriptions: its tools change with the agent only"}
		}
		return next(ctx, method, req)
	}
}

func (e *Endpoint) handler(s *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: e.opts.Log,
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1, // both are for who admits callers
	})
}

// Answer is an answer to a message.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// answer has the handler answer a message, in JSON whatever it says.
func answer(h http.Handler, r Request) Answer {
	in := r.HTTP.WithContext(context.WithValue(r.HTTP.Context(), requestKey{}, r))
	in.Header = in.Header.Clone()
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	in.Header.Set("Accept", "application/json, text/event-stream") // there is one form of answers
	w := &recorder{header: http.Header{}}
	h.ServeHTTP(w, in)
	a := Answer{Status: w.status, Header: w.header, Body: w.body.Bytes()}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Status >= http.StatusBadRequest && a.Header.Get("Content-Type") != "application/json" {
		a.translate(r.Body)
	}
	if len(a.Body) > 0 {
		a.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	return a
}

// translate makes an answer that is a text one of JSON-RPC.
func (a *Answer) translate(message []byte) {
	var in struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(message, &in) // a message that has no id is answered to nobody
	text := string(bytes.TrimSpace(a.Body))
	code := int64(jsonrpc.CodeInvalidRequest)
	switch {
	case !json.Valid(message):
		code = jsonrpc.CodeParseError
	case strings.HasPrefix(text, "JSON RPC not handled") && in.ID != nil:
		code, a.Status = jsonrpc.CodeMethodNotFound, http.StatusOK
	}
	a.Body = fault(in.ID, code, text)
	a.Header.Set("Content-Type", "application/json")
}

// Fault returns the answer to a message that is not understood, or not admitted, with a code of JSON-RPC.
func Fault(code int64, message string) []byte { return fault(nil, code, message) }

func fault(id json.RawMessage, code int64, message string) []byte {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message}})
	if err != nil {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"error"}}`, code)
	}
	return raw
}

// recorder is an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *recorder) Flush() {}
