// Package tools is the function that tells of tools and runs them without a model: answers may take as long as a tool does.
package tools

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
