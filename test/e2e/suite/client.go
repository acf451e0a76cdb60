package suite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
)

// patience is how long anything may take that ought to happen at once, on a busy machine.
const patience = 20 * time.Second

// Client is a caller of one agent. What cannot be sent, or is not answered in JSON, ends the test.
type Client struct {
	t    *testing.T
	base string
	sign func(*http.Request) // nil: without credentials
	http *http.Client
}

// Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Raw    string
	t      *testing.T
}

// Field returns a field of an answer that is a JSON object, nil if it has none of that name.
func (a Answer) Field(name string) any {
	a.t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(a.Raw), &fields); err != nil {
		a.t.Fatalf("the answer is no JSON object: %d %.500s", a.Status, a.Raw)
	}
	return fields[name]
}

// Text returns a field that is a string, "" if it is not.
func (a Answer) Text(name string) string {
	a.t.Helper()
	s, _ := a.Field(name).(string)
	return s
}

// Refused checks that the answer is the envelope of an error.
func (a Answer) Refused(what string, status int, code string) {
	a.t.Helper()
	if a.Status != status || a.Text("error") != code || a.Text("message") == "" || a.Field("ok") != false {
		a.t.Errorf("%s: got %d %.500s; want %d %s", what, a.Status, a.Raw, status, code)
	}
}

// request returns a request with the headers given as pairs.
func (c *Client) request(ctx context.Context, method, path string, body io.Reader, header ...string) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	if c.sign != nil {
		c.sign(r)
	}
	return r
}

// Do sends a request and reads the answer. Headers are given as pairs.
func (c *Client) Do(method, path, body string, header ...string) Answer {
	c.t.Helper()
	a, err := c.try(method, path, body, header...)
	if err != nil {
		c.t.Fatalf("%s %.100s: %v", method, path, err)
	}
	return a
}

func (c *Client) try(method, path, body string, header ...string) (Answer, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	res, err := c.http.Do(c.request(ctx, method, path, reader, header...))
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, string(raw), c.t}, err
}

// post sends a JSON object.
func (c *Client) post(path string, body map[string]any, header ...string) Answer {
	c.t.Helper()
	return c.Do("POST", path, encode(body), header...)
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a mistake in a test
	}
	return string(raw)
}

// Session is a conversation that a client has started.
type Session struct {
	*Client

	ID, Token, TurnID string

	log []event.Event // what Ended has read
}

// Path returns the path of a route of the session.
func (s *Session) Path(route string) string { return "/v1/session/" + s.ID + route }

// Start starts a session with a message and, if given, other fields.
func (c *Client) Start(message string, fields ...map[string]any) *Session {
	c.t.Helper()
	body := map[string]any{"message": message}
	for _, more := range fields {
		maps.Copy(body, more)
	}
	return c.Started(c.post("/v1/session", body))
}

// Try starts a session with a message and an idempotency key, or fails because the host is gone.
func (c *Client) Try(message, key string) (Answer, error) {
	c.t.Helper()
	return c.try("POST", "/v1/session", encode(map[string]any{"message": message}), "Idempotency-Key", key)
}

// Resume returns a session that was started before, on this target or on one with its state.
func (target Target) Resume(t *testing.T, s *Session) *Session {
	t.Helper()
	return &Session{Client: target.Ann(t), ID: s.ID, Token: s.Token, TurnID: s.TurnID}
}

// Started reads the answer to a message that has to be accepted.
func (c *Client) Started(a Answer) *Session {
	c.t.Helper()
	s := &Session{Client: c, ID: a.Text("sessionId"), Token: a.Text("continuationToken"), TurnID: a.Text("turnId")}
	if a.Status != http.StatusAccepted || s.ID == "" || s.Token == "" || s.TurnID == "" {
		c.t.Fatalf("not accepted: %d %.500s", a.Status, a.Raw)
	}
	return s
}

// Say sends a follow-up with the newest token.
func (s *Session) Say(message string) *Session {
	s.t.Helper()
	next := s.Started(s.send(s.Token, message))
	s.Token, s.TurnID = next.Token, next.TurnID
	return s
}

func (s *Session) send(token, message string, header ...string) Answer {
	s.t.Helper()
	return s.post(s.Path(""), map[string]any{"message": message, "continuationToken": token}, header...)
}

// Usable checks that the session takes a follow-up and answers it.
func (s *Session) Usable() {
	s.t.Helper()
	s.Say("still there?")
	s.Completed()
}

// Completed waits until the newest turn has ended well and returns the log until then.
func (s *Session) Completed() []event.Event {
	s.t.Helper()
	log := s.Ended()
	if last := ending(log, s.TurnID); last.Type != event.TypeTurnCompleted {
		s.t.Errorf("the turn ended with %s %s", last.Type, last.Data)
	}
	return log
}

// Failed waits until the newest turn has failed and returns how.
func (s *Session) Failed() event.TurnFailed {
	s.t.Helper()
	failed, err := event.Decode[event.TurnFailed](ending(s.Ended(), s.TurnID))
	if err != nil {
		s.t.Errorf("the turn did not fail: %v", err)
	}
	return failed
}

// Ended follows the stream until the newest turn has ended and the session waits, and returns the log, which it checks.
func (s *Session) Ended() []event.Event {
	s.t.Helper()
	if isEnd(ending(s.log, s.TurnID)) {
		return slices.Clone(s.log)
	}
	ended := false
	s.follow(int64(len(s.log)), func(e event.Event) bool {
		s.log = append(s.log, e)
		ended = ended || isEnd(e) && e.TurnID == s.TurnID
		return !ended || e.Type != event.TypeSessionWaiting
	})
	if !ended {
		s.t.Fatalf("the stream ended before the turn: %d events", len(s.log))
	}
	Check(s.t, s.log)
	return slices.Clone(s.log)
}

// Until follows the stream until the newest turn has an event of the given type.
func (s *Session) Until(kind event.Type) {
	s.t.Helper()
	s.follow(0, func(e event.Event) bool { return e.TurnID != s.TurnID || e.Type != kind })
}

// follow passes the events of the stream from an index on, until each returns false or the stream ends. One without an event
// for long ends the test.
func (s *Session) follow(from int64, each func(event.Event) bool) {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errors.New("the stream is silent")) })
	defer silence.Stop()
	err := s.read(ctx, from, func(e event.Event) bool {
		silence.Reset(patience)
		return each(e)
	})
	if err != nil {
		s.t.Fatalf("%v: %v", err, context.Cause(ctx))
	}
}

func (s *Session) read(ctx context.Context, from int64, each func(event.Event) bool) error {
	s.t.Helper()
	res, err := s.http.Do(s.request(ctx, "GET", s.Path("/stream?startIndex="+encode(from)), nil))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/x-ndjson" {
		s.t.Errorf("the stream: got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err == io.EOF && line == "":
			return nil
		case err != nil:
			return err
		case line == "\n":
			continue // a heartbeat
		}
		if !each(s.event(line)) {
			return nil
		}
	}
}

func (s *Session) event(line string) event.Event {
	s.t.Helper()
	var e event.Event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		s.t.Fatalf("%.200q is no event: %v", line, err)
	}
	return e
}

// Events returns the log as it is now.
func (s *Session) Events(query string) []event.Event {
	s.t.Helper()
	a := s.Do("GET", s.Path("/events"+query), "")
	if a.Status != http.StatusOK {
		s.t.Fatalf("the events: got %d %.500s", a.Status, a.Raw)
	}
	var log []event.Event
	for line := range strings.Lines(a.Raw) {
		log = append(log, s.event(line))
	}
	return log
}

// Sessions returns how many sessions the caller has, at most 1,000.
func (c *Client) Sessions() int {
	c.t.Helper()
	list, _ := c.Do("GET", "/v1/sessions?limit=1000", "").Field("sessions").([]any)
	return len(list)
}

// Notes returns how often each write ran, by call id.
func (c *Client) Notes() map[string]int {
	c.t.Helper()
	results := Results(c.Start("notes").Completed())
	var ids []string
	if len(results) != 1 || json.Unmarshal(results[0].Output, &ids) != nil {
		c.t.Fatalf("the notes cannot be read: %v", results)
	}
	ran := make(map[string]int)
	for _, id := range ids {
		ran[id]++
	}
	return ran
}
