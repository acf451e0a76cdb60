// Package stream is the function whose answers are long or take long: the events of sessions, and logs.
package stream

import (
	"net/http"

	"github.com/bdk-lambda/bdk/functions/gateway"
)

// New returns the Lambda handler of the API, for an integration that streams.
func New(api http.Handler, opts gateway.Options) gateway.StreamHandler {
	return gateway.Streamed(api, opts)
}

// NewBuffered returns the Lambda handler of the API for an integration that does not stream.
func NewBuffered(api http.Handler, opts gateway.Options) gateway.Handler {
	return gateway.Buffered(api, opts)
}
