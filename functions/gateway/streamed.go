package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Streamed returns the Lambda handler of an integration with the response transfer mode STREAM. It answers while h writes: what
// each Write and the first Flush send leaves at once. Status and headers are fixed by the first Write, Flush or WriteHeader.
//
// Before the first byte, what h does not complete becomes an error of the API's own form; afterwards reading the body fails, so
// that nobody takes what came for the whole. Writing fails when the body was closed or the invocation is over.
func Streamed(h http.Handler, opts Options) StreamHandler {
	return func(ctx context.Context, e events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse, error) {
		r, cancel, err := newRequest(ctx, e, opts.Stage)
		if err != nil {
			cancel()
			return whole(refusal(err, nil)), nil
		}
		read, write := io.Pipe()
		ended := make(chan struct{})
		b := &body{read, func() { cancel(); <-ended }}
		began := make(chan *events.APIGatewayProxyStreamingResponse, 1)
		w := newWriter(r.Method, write, func(status int, header http.Header) {
			began <- &events.APIGatewayProxyStreamingResponse{StatusCode: status, MultiValueHeaders: header, Body: b}
		})
		// a Write that nobody takes must not outlast the invocation
		release := context.AfterFunc(ctx, func() { _ = write.CloseWithError(context.Cause(ctx)) })
		go func() {
			defer close(ended)
			defer cancel()
			defer release()
			err := opts.serve(h, w, r)
			if err != nil && !w.begun {
				began <- whole(refusal(err, w.Header()))
			}
			_ = write.CloseWithError(err) // never fails; without an error the body just ends
		}()
		return <-began, nil
	}
}

// body is the body of an answer. Its handler has ended when Close returns.
type body struct {
	*io.PipeReader

	end func()
}

// Close implements [io.Closer].
func (b *body) Close() error {
	err := b.CloseWithError(errors.New("nobody reads the answer any more"))
	b.end()
	return err
}

// whole returns an answer that is there already.
func whole(a events.APIGatewayProxyResponse) *events.APIGatewayProxyStreamingResponse {
	return &events.APIGatewayProxyStreamingResponse{StatusCode: a.StatusCode, MultiValueHeaders: a.MultiValueHeaders, Body: strings.NewReader(a.Body)}
}
