package mcphost

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/bdk-lambda/bdk/shared/auth"
)

// As returns what carries messages of a caller in this process to the agent as somebody to talk to.
func (e *Endpoint) As(caller auth.Principal) http.RoundTripper { return local{e, caller} }

type local struct {
	to     *Endpoint
	caller auth.Principal
}

// RoundTrip implements [http.RoundTripper].
func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	res := &http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody, Header: http.Header{}}
	if r.Method != http.MethodPost {
		res.StatusCode = http.StatusMethodNotAllowed
		return res, nil
	}
	defer r.Body.Close() //nolint:errcheck // it is in memory
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	// a message that was sent is recorded, also if whoever sent it waits no longer
	ctx, cancel := context.WithTimeout(auth.NewContext(context.WithoutCancel(r.Context()), l.caller), mostWait+time.Minute)
	defer cancel()
	a := l.to.Chat(Request{HTTP: r.WithContext(ctx), Body: body, Gone: r.Context().Done(), ID: "local"})
	res.StatusCode, res.Header, res.Body, res.ContentLength = a.Status, a.Header, io.NopCloser(bytes.NewReader(a.Body)), int64(len(a.Body))
	return res, nil
}
