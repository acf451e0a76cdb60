// Package discovery is the function that tells what the agent is and how it does, and answers every path that is none.
package discovery

import (
	"net/http"

	"github.com/bdk-lambda/bdk/functions/gateway"
)

// New returns the Lambda handler of the API.
func New(api http.Handler, opts gateway.Options) gateway.Handler { return gateway.Buffered(api, opts) }
