// Package post sends a JSON request over HTTP and reads the server-sent events of the answer, with every fault mapped to a
// model error.
package post

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/fault"
	"github.com/bdk-lambda/bdk/shared/model/internal/sse"
)

// maxErrorBody is how many bytes of an error answer are read.
const maxErrorBody = 64 << 10

// A Client sends requests. It is safe for concurrent use.
type Client struct {
	HTTP    *http.Client
	Clock   clock.Clock // for Retry-After dates
	URL     string
	Header  http.Header // sent with each request
	Secrets []string    // kept out of errors

	// Last reports whether e ends the answer. What follows it is not waited for longer than 200 ms: enough to let the
	// connection be used again, and little for a server that keeps it open.
	Last func(e sse.Event) bool
}

// Events posts body and yields the events of the answer. Faults are yielded once, as the last pair: the cause of ctx's end when
// it ended, else a [*model.Error]. There are no retries. Breaking off closes the connection.
func (c *Client) Events(ctx context.Context, body any) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		resp, err := c.send(ctx, body)
		if err != nil {
			yield(sse.Event{}, c.Mend(ctx, err))
			return
		}
		defer resp.Body.Close() //nolint:errcheck // the answer was read as far as it is wanted
		for e, err := range sse.Events(resp.Body) {
			if err != nil {
				yield(sse.Event{}, c.Mend(ctx, unavailable("reading the answer", err)))
				return
			}
			last := c.Last(e)
			if !yield(e, nil) {
				return
			}
			if last {
				c.drain(resp.Body)
				return
			}
		}
	}
}

// drain reads body to its end, so that its connection is used again, but gives up after a while.
func (c *Client) drain(body io.ReadCloser) {
	const patience = 200 * time.Millisecond
	timeout, stop := c.Clock.After(patience)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxErrorBody)) // the answer is complete whatever comes here
	}()
	select {
	case <-ended:
	case <-timeout:
		_ = body.Close() // ends the copy
		<-ended
	}
}

func (c *Client) send(ctx context.Context, body any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: "encoding the request: " + err.Error(), Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(b))
	if err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: "the base URL of the provider is not a URL"}
	}
	req.Header = c.Header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	client := *c.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // another host must not get the credentials
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, unavailable("asking "+req.URL.Host, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close() //nolint:errcheck // nothing more is read
	return nil, c.refusal(resp)
}

func (c *Client) refusal(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came before a cut still tells something
	e := fault.FromBody(max(resp.StatusCode, http.StatusBadRequest), []byte(c.redact(string(b))))
	e.Message = fmt.Sprintf("%s (HTTP %d)", e.Message, resp.StatusCode)
	if e.Retryable() {
		e.RetryAfter = fault.RetryAfter(resp.Header, c.Clock.Now())
	}
	return e
}

// Mend returns the cause of ctx's end if it ended, else err without secrets.
func (c *Client) Mend(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		e.Message = c.redact(e.Message)
	}
	return err
}

// redact returns s without the secrets.
func (c *Client) redact(s string) string {
	const shortest = 4 // bytes; anything shorter is no secret
	for _, secret := range c.Secrets {
		if len(secret) >= shortest {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	return s
}

// unavailable drops the URL from err, which may hold credentials.
func unavailable(doing string, err error) *model.Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &model.Error{Kind: model.Unavailable, Message: doing + ": " + err.Error(), Err: err}
}
