package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

// exchange is one request and its answer.
type exchange struct {
	*endpoint

	w      *response
	r      *http.Request
	route  Route
	caller auth.Principal
	row    session.Record // of the session in the path, on routes with owner access

	id     string // request id
	began  time.Time
	read   bool // the body was, at least in part
	cut    bool // the body could not be read to its end
	broken bool // the answer cannot be completed: the connection must be cut
}

// ServeHTTP implements [http.Handler].
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{endpoint: e, w: &response{ResponseWriter: w}, r: r, began: e.opts.Clock.Now(), id: r.Header.Get("X-Request-Id")}
	if x.id == "" || len(x.id) > 128 || !plain(strings.ReplaceAll(x.id, ".", "")) {
		x.id = e.opts.NewID()
	}
	h := w.Header()
	h.Set("X-Request-Id", x.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	x.share()
	defer x.end()
	if err := x.serve(); err != nil {
		x.fail(err)
	}
}

// serve finds the route, admits the caller and runs the handler.
func (x *exchange) serve() error {
	method := x.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route, ok := x.routes[method]
	switch {
	case len(x.routes) == 0:
		return bdkerr.New(bdkerr.NotFound, "no route %.200q: the routes of this host begin with %s", x.r.URL.EscapedPath(), x.roots())
	case x.asksLeave():
		x.giveLeave()
		return nil
	case !ok:
		x.w.Header().Set("Allow", x.allow())
		return bdkerr.New(bdkerr.MethodNotAllowed, "this route takes %s, not %.20q", x.allow(), x.r.Method)
	}
	x.route = route
	if route.Access != Public {
		if err := x.admit(); err != nil {
			return err
		}
	}
	if route.Access == Owner {
		if err := x.own(); err != nil {
			return err
		}
	}
	return route.handle(x)
}

// admit names the caller. Every refusal reads the same.
func (x *exchange) admit() error {
	who, ok := x.opts.Auth(x.r)
	if !ok {
		x.w.Header().Set("WWW-Authenticate", "Bearer")
		return bdkerr.New(bdkerr.Unauthenticated,
			"the caller is not known: send Authorization: Bearer TOKEN with a token of this host (bdk run, bdk call and bdk logs: --bearer-token, or BDK_BEARER_TOKEN); a host without tokens takes requests from its own machine only, by a loopback address and without a proxy")
	}
	x.caller = who
	x.r = x.r.WithContext(auth.NewContext(x.r.Context(), who))
	return nil
}

// own finds the session in the path and checks that it belongs to the caller.
func (x *exchange) own() error {
	if err := x.find(); err != nil {
		return err
	}
	if x.row.Owner != string(x.caller) {
		return notYours()
	}
	return nil
}

func notYours() error { return bdkerr.New(bdkerr.Forbidden, "this session belongs to another caller") }

// find reads the session in the path.
func (x *exchange) find() error {
	id := x.r.PathValue("id")
	row, ok, err := x.session(id)
	switch {
	case err != nil:
		return err
	case !ok:
		return bdkerr.New(bdkerr.NotFound, "no session %.80q", id)
	}
	x.row = row
	return nil
}

// session returns a session of this agent, if it has it.
func (x *exchange) session(id string) (row session.Record, ok bool, err error) {
	if !session.IsID(id) {
		return row, false, nil
	}
	row, err = x.agent.Sessions().Get(x.r.Context(), id)
	if bdkerr.CodeOf(err) == bdkerr.NotFound {
		return row, false, nil
	}
	return row, err == nil && row.Agent == x.slug, err
}

// plain reports whether s has only ASCII letters, digits, _ and -.
func plain(s string) bool {
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// fail answers with the envelope of err, or cuts the connection if the answer has begun.
func (x *exchange) fail(err error) {
	code := bdkerr.CodeOf(err)
	if code.Status() >= http.StatusInternalServerError {
		level := slog.LevelError
		if x.r.Context().Err() != nil { // nobody waits for the answer
			level = slog.LevelDebug
		}
		x.log(level, "request failed", slog.Any("error", err))
	}
	if x.w.status != 0 {
		x.broken = true
		return
	}
	message := fmt.Sprintf("the host could not do this; its log has the reason under request %s", x.id)
	if e, ok := faultOf(err); ok && code != bdkerr.Internal {
		message = e.Message
	}
	if code == bdkerr.Unavailable {
		x.w.Header().Set("Retry-After", "1")
	}
	control := http.NewResponseController(x.w)
	early := control.EnableFullDuplex() == nil
	whole := early || x.drain()
	if !whole || x.cut {
		x.w.Header().Set("Connection", "close")
	}
	var unknown *unknownToolError
	_ = errors.As(err, &unknown)
	if x.routes[http.MethodPost].RPC {
		x.rpcFault(code, message)
	} else {
		x.json(code.Status(), failure{Error: code, Message: message, Available: unknown.available()})
	}
	if early {
		_ = control.Flush() // a reader that is gone: nobody to tell
		// What is left of a body must never be taken for the next request.
		x.broken = x.cut || !x.drain()
	}
}

type failure struct {
	OK        bool        `json:"ok"`
	Error     bdkerr.Code `json:"error"`
	Message   string      `json:"message"`
	Available []string    `json:"available,omitzero"` // of unknown_tool: the names there are
}

// end recovers from a panic of the handler, logs the request, and cuts the connection of an answer that cannot be completed.
func (x *exchange) end() {
	if v := recover(); v != nil {
		x.log(slog.LevelError, "handler panicked", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		x.fail(fmt.Errorf("recovered: %v", v))
	}
	level := slog.LevelInfo
	if x.route.Pattern == "/v1/health" || x.route.Pattern == "/v1/logs" { // polled
		level = slog.LevelDebug
	}
	x.log(level, RequestLogged, slog.Int("status", x.w.status), slog.Duration("duration", x.opts.Clock.Now().Sub(x.began)))
	if x.broken {
		panic(http.ErrAbortHandler)
	}
}

func (x *exchange) log(level slog.Level, message string, attrs ...slog.Attr) {
	ctx := x.r.Context()
	if !x.opts.Log.Enabled(ctx, level) {
		return
	}
	all := append(make([]slog.Attr, 0, 12), slog.String("method", x.r.Method), slog.String("route", x.route.Pattern), slog.String("request_id", x.id))
	for _, a := range []slog.Attr{slog.String(telemetry.SlugKey, x.slug), slog.String("principal", string(x.caller)), slog.String("session_id", x.row.ID)} {
		if a.Value.String() != "" {
			all = append(all, a)
		}
	}
	x.opts.Log.LogAttrs(ctx, level, message, append(all, attrs...)...) //nolint:sloglint // the callers pass literals
}

// json answers with v.
func (x *exchange) json(status int, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // nobody may take it for a page: see the content type and nosniff
	if err := enc.Encode(v); err != nil {
		x.log(slog.LevelError, "answer is not JSON", slog.Any("error", err))
		status = http.StatusInternalServerError
		body.Reset()
		body.WriteString(`{"ok":false,"error":"internal","message":"the answer could not be written"}` + "\n")
	}
	x.raw(status, body.Bytes())
}

// raw answers with what is JSON already.
func (x *exchange) raw(status int, body []byte) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.extend()
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // the reader is gone: nobody to tell
}

// extend gives the client the time for one more write. Deadlines of sockets are on the machine's own clock.
func (x *exchange) extend() {
	_ = http.NewResponseController(x.w).SetWriteDeadline(clock.System{}.Now().Add(x.opts.WriteTimeout)) // not every host has deadlines
}

// Bounds of what is read of a request.
const (
	maxBody  = 4 << 20
	maxDrain = 64 << 20
	bodyTime = time.Minute
)

// drain reads the rest of the body, within bounds: a client that still sends when the connection closes may never see the
// answer. Where the host can do both, the answer comes first. It reports whether the body was read to its end.
func (x *exchange) drain() bool {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return true
	}
	if !x.read && x.r.Header.Get("Expect") != "" { // the client waits for leave to send
		return false
	}
	x.limitRead()
	_, err := io.CopyN(io.Discard, x.r.Body, maxDrain)
	return errors.Is(err, io.EOF)
}

func (x *exchange) limitRead() {
	_ = http.NewResponseController(x.w).SetReadDeadline(clock.System{}.Now().Add(bodyTime)) // not every host has deadlines
}

// durable returns a context for work that must not stop half-way when the client goes away, and takes no longer than a minute.
// It ends when the host does.
func (x *exchange) durable() (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(x.r.Context())
	if end, ok := x.r.Context().Deadline(); ok {
		return context.WithDeadline(ctx, end)
	}
	return context.WithTimeout(ctx, time.Minute)
}

// lasting returns a context like [exchange.durable], for work that takes as long as it takes. When the host shuts down it goes on
// for a grace period.
func (x *exchange) lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	if end, ok := x.r.Context().Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, end)
	}
	go func() {
		select {
		case <-x.opts.Closing:
			_ = clock.Sleep(ctx, x.opts.Clock, x.opts.Grace)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// base returns the address of the host as the client knows it.
func (x *exchange) base() string {
	if x.r.TLS != nil || x.r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + x.r.Host
	}
	return "http://" + x.r.Host
}

func (a *api) prefix(slug string) string {
	if a.opts.Single {
		return ""
	}
	return "/" + slug
}

// response remembers what was answered.
type response struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// roots returns what the paths of the agents begin with.
func (x *exchange) roots() string {
	roots := make([]string, len(x.agents))
	for i, a := range x.agents {
		roots[i] = x.prefix(a.Project().Slug) + "/v1/"
	}
	return strings.Join(roots, ", ")
}
