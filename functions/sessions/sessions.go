// Package sessions is the function that starts, continues, stops and lists sessions.
package sessions

import (
	"net/http"

	"github.com/bdk-lambda/bdk/functions/gateway"
)

// New returns the Lambda handler of the API.
func New(api http.Handler, opts gateway.Options) gateway.Handler { return gateway.Buffered(api, opts) }
