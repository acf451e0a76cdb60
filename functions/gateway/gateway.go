// Package gateway lets an [http.Handler] answer the REST proxy events of API Gateway: with a whole answer, see [Buffered],
// or with one that leaves while it is written, see [Streamed].
//
// Handlers see what they see behind a server of net/http. The path begins with the API's stage, which events leave out, also where
// a custom domain has another base path, and keeps its escapes; Host is the one the client asked for; RemoteAddr is its address, with port 0, which API Gateway does not
// tell; the context ends a second before the invocation does. A caller whose signature API Gateway has verified is in the
// context for [auth.IAM]. A request without an X-Request-Id has API Gateway's id. Deadlines of the connection, HTTP trailers and
// hijacking are not supported.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/events"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// Options adjust a handler. Stage is required.
type Options struct {
	Stage string       // name of the API's stage: what paths begin with, which events leave out
	Log   *slog.Logger // gets the panics of handlers; default: none
}

// Handler is a Lambda handler of REST proxy events. It is safe for concurrent use if its http.Handler is.
type Handler func(ctx context.Context, e events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// StreamHandler is a [Handler] for an integration with the response transfer mode STREAM. The body of its answer must be closed,
// as the runtime does: that ends the http.Handler, if it still runs, and waits for it.
type StreamHandler func(ctx context.Context, e events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse, error)

// serve has h answer, and completes the answer. It fails if h panicked: the answer is not whole.
func (o Options) serve(h http.Handler, w *writer, r *http.Request) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err = bdkerr.New(bdkerr.Internal, "the answer could not be completed; the host's log has the reason")
		if v != http.ErrAbortHandler && o.Log != nil { //nolint:errorlint,err113 // it is not wrapped; its thrower has logged why
			o.Log.ErrorContext(r.Context(), "handler panicked", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	h.ServeHTTP(w, r)
	w.begin()
	return nil
}

// refusal returns the answer that tells of an error as package httpapi does. Of the answer in whose place it comes, it keeps the
// request's id and what lets pages read it.
func refusal(err error, instead http.Header) events.APIGatewayProxyResponse {
	code, message := bdkerr.CodeOf(err), "the host could not do this; its log has the reason"
	if e, ok := errors.AsType[*bdkerr.Error](err); ok {
		message = e.Message
	}
	body, _ := json.Marshal(struct { //nolint:errchkjson // strings only
		OK      bool        `json:"ok"`
		Error   bdkerr.Code `json:"error"`
		Message string      `json:"message"`
	}{Error: code, Message: message})
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}}
	for _, name := range []string{"X-Request-Id", "Vary", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"} {
		if values := instead.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	return events.APIGatewayProxyResponse{StatusCode: code.Status(), MultiValueHeaders: header, Body: string(body) + "\n"}
}
