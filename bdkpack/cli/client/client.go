// Package client talks to a served agent over its HTTP API: it starts a session and follows its events, whatever happens
// to the connection meanwhile, calls tools, and reads the log.
package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
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
	"github.com/bdk-lambda/bdk/shared/event"
)

const (
	attempts = 8 // in a row without any progress
	minWait  = 100 * time.Millisecond
	maxWait  = 5 * time.Second
	steady   = time.Minute // a stream that was open for so long was not refused: servers end streams now and then
	maxBody  = 8 << 20     // of an answer that is not a stream
)

// Client asks one agent. It is safe for concurrent use.
type Client struct {
	url  string // without a slash at the end
	opts Options
}

// Options are all optional.
type Options struct {
	HTTP  *http.Client // without a timeout, which would end streams; default: a new one
	Clock clock.Clock  // default: the machine's
	Token string       // sent as bearer token; default: none
}

// New returns a client of the agent at url, which ends before /v1.
func New(url string, opts *Options) *Client {
	c := &Client{url: strings.TrimRight(url, "/")}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.HTTP == nil {
		c.opts.HTTP = &http.Client{}
	}
	if c.opts.Clock == nil {
		c.opts.Clock = clock.System{}
	}
	return c
}

// Start starts a session with a message and returns its id. It tries again when the server cannot be reached or is
// overloaded; an idempotency key keeps that from starting two.
func (c *Client) Start(ctx context.Context, message string) (session string, err error) {
	body, err := json.Marshal(map[string]string{"message": message})
	if err != nil {
		return "", fmt.Errorf("writing the message: %w", err)
	}
	key := rand.Text()
	var answer struct {
		SessionID string `json:"sessionId"`
	}
	err = c.retry(ctx, func() (bool, error) {
		res, err := c.do(ctx, http.MethodPost, "/v1/session", bytes.NewReader(body), key)
		if err != nil {
			return false, err
		}
		defer res.Body.Close() //nolint:errcheck // read only
		return false, json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&answer)
	})
	if err == nil && answer.SessionID == "" {
		err = fmt.Errorf("starting a session: %s is not the URL of an agent: its answer has no sessionId", c.url)
	}
	return answer.SessionID, err
}

// Follow returns the events of a session from the first, each once and in order, as long as the caller takes them. It
// ends with an error when ctx ends, the server refuses, or cannot be reached for about half a minute.
func (c *Client) Follow(ctx context.Context, session string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		next, stopped := int64(0), false
		err := c.retry(ctx, func() (bool, error) {
			before, began := next, c.opts.Clock.Now()
			res, err := c.do(ctx, http.MethodGet, fmt.Sprintf("/v1/session/%s/stream?startIndex=%d", session, next), nil, "")
			if err != nil {
				return false, err
			}
			defer res.Body.Close() //nolint:errcheck // read only
			err = readEvents(res.Body, func(e event.Event) bool {
				if e.Index < next {
					return true
				}
				next = e.Index + 1
				stopped = !yield(e, nil)
				return !stopped
			})
			if stopped {
				return true, nil
			}
			return next > before || c.opts.Clock.Now().Sub(began) >= steady, fmt.Errorf("the stream was cut: %w", err)
		})
		if err != nil && !stopped {
			yield(event.Event{}, err)
		}
	}
}

// Decide decides about a call that waits for approval, event.Approve or event.Deny. The same decision again does no harm.
func (c *Client) Decide(ctx context.Context, session, callID, decision string) error {
	body, err := json.Marshal(map[string]string{"decision": decision})
	if err != nil {
		return fmt.Errorf("writing the decision: %w", err)
	}
	return c.retry(ctx, func() (bool, error) {
		res, err := c.do(ctx, http.MethodPost, fmt.Sprintf("/v1/session/%s/approvals/%s", session, url.PathEscape(callID)), bytes.NewReader(body), "")
		if err != nil {
			return false, err
		}
		return false, res.Body.Close()
	})
}

// Call runs a tool without a model: it sends body to POST /v1/tools/{name} and returns the answer, a JSON object with the field
// ok, also if the server refuses. It tries once: the tool may have run though no answer came.
func (c *Client) Call(ctx context.Context, tool string, body []byte) ([]byte, error) {
	res, err := c.send(ctx, http.MethodPost, "/v1/tools/"+url.PathEscape(tool), bytes.NewReader(body), "")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the answer, which breaks off: %w; the tool may have run", err)
	}
	var envelope struct {
		OK *bool `json:"ok"`
	}
	if json.Unmarshal(answer, &envelope) == nil && envelope.OK != nil {
		return answer, nil
	}
	if res.StatusCode < 300 {
		return nil, fmt.Errorf("%s is not the URL of an agent: its answer has no field ok", c.url)
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	return nil, answerError(res)
}

// Record is a record of the server's log.
type Record struct {
	Time    time.Time                  `json:"time"`
	Level   string                     `json:"level"`
	Message string                     `json:"message"`
	Attrs   map[string]json.RawMessage `json:"attrs"`
}

// Logs returns the records that the server has logged about the agent after the one that next of an earlier answer stands
// for, oldest first; 0 asks for all that it remembers.
func (c *Client) Logs(ctx context.Context, after int64) (records []Record, next int64, err error) {
	var answer struct {
		Logs []Record `json:"logs"`
		Next int64    `json:"next"`
	}
	err = c.retry(ctx, func() (bool, error) {
		res, err := c.do(ctx, http.MethodGet, fmt.Sprintf("/v1/logs?after=%d", after), nil, "")
		if err != nil {
			return false, err
		}
		defer res.Body.Close() //nolint:errcheck // read only
		return false, json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&answer)
	})
	return answer.Logs, answer.Next, err
}

// readEvents calls yield for each line of a stream until it returns false; a stream that ends by itself is an error. Empty lines keep the connection alive.
func readEvents(r io.Reader, yield func(event.Event) bool) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err // the last line, without an end, is not whole
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return &refusal{err: fmt.Errorf("reading an event: %w", err)}
		}
		if !yield(e) {
			return nil
		}
	}
}

// refusal is an error that trying again does not mend.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// retry calls try until it succeeds, is refused, or has failed many times in a row without progress.
func (c *Client) retry(ctx context.Context, try func() (progress bool, err error)) error {
	for failed := 0; ; {
		progress, err := try()
		var refused *refusal
		if err == nil || errors.As(err, &refused) {
			return err
		}
		if progress {
			failed = 0
		}
		if failed++; failed >= attempts {
			return fmt.Errorf("asking %s: %w", c.url, err)
		}
		if err := clock.Sleep(ctx, c.opts.Clock, min(minWait<<failed, maxWait)); err != nil {
			return err
		}
	}
}

// do sends a request. An answer that is no success is an error.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader, key string) (*http.Response, error) {
	res, err := c.send(ctx, method, path, body, key)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	err = answerError(res)
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500 {
		return nil, err
	}
	return nil, &refusal{err}
}

// send sends a request, with an idempotency key unless it is empty.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader, key string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, &refusal{err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	return c.opts.HTTP.Do(req)
}

// answerError returns what a server says about a failure.
func answerError(res *http.Response) error {
	var envelope struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	switch {
	case err != nil || json.Unmarshal(text, &envelope) != nil || envelope.Error == "" && envelope.Message == "":
		return fmt.Errorf("the server answers %s", res.Status)
	case envelope.Error == "": // what is before the agent speaks, such as a gateway
		return fmt.Errorf("the server answers %s: %s", res.Status, envelope.Message)
	case envelope.Message == "":
		return fmt.Errorf("the server answers %s: %s", res.Status, envelope.Error)
	}
	return fmt.Errorf("the server answers %s: %s (%s)", res.Status, envelope.Message, envelope.Error)
}
