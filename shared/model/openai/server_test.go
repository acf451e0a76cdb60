package openai_test

import (
	"io"
	"net/http"
	"strings"
)

// server is a transport that answers every request with wire.
type server struct {
	wire string
	seen chan *http.Request // may be nil
}

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.seen != nil {
		s.seen <- r
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(s.wire)), Request: r}, nil
}
