package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
)

// fakeAgent accepts messages and leaves their turns to the test.
type fakeAgent struct {
	project bdk.Project
	store   *session.Store
	cost    engine.Cost
	onStart func(context.Context) // called before a start is recorded
}

func newAgent(slug string) *fakeAgent {
	return &fakeAgent{project: bdk.Project{Slug: slug}, store: session.New(memsession.New(), session.Options{})}
}

func (a *fakeAgent) Project() bdk.Project     { return a.project }
func (a *fakeAgent) Models() []string         { return []string{"scripted:a.yaml", "openai:b"} }
func (a *fakeAgent) Sessions() *session.Store { return a.store }

func (a *fakeAgent) Start(ctx context.Context, in session.Start) (session.Accepted, error) {
	if a.onStart != nil {
		a.onStart(ctx)
	}
	return a.store.Start(ctx, in)
}

func (a *fakeAgent) Send(ctx context.Context, in session.Message) (session.Accepted, error) {
	return a.store.Send(ctx, in)
}

func (a *fakeAgent) Stop(ctx context.Context, id, turnID string) (string, error) {
	return a.store.Stop(ctx, id, turnID)
}

func (a *fakeAgent) Cost(context.Context, string) (engine.Cost, error) { return a.cost, nil }

// begin starts a session in the store and returns the writer of its first turn.
func (a *fakeAgent) begin(t testing.TB, owner string, mode session.Mode) (session.Accepted, *session.Writer) {
	t.Helper()
	acc, err := a.store.Start(t.Context(), session.Start{Agent: a.project.Slug, Owner: owner, Message: "hello", Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.store.Open(t.Context(), acc.SessionID, acc.TurnID)
	if err == nil {
		err = w.Replay(t.Context(), 0, func(event.Event) error { return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	return acc, w
}

func add(t testing.TB, w *session.Writer, data ...event.Data) {
	t.Helper()
	if _, err := w.Append(t.Context(), data...); err != nil {
		t.Fatal(err)
	}
}

func finish(t testing.TB, w *session.Writer, data ...event.Data) {
	t.Helper()
	if _, err := w.Finish(t.Context(), data...); err != nil {
		t.Fatal(err)
	}
}

// byName is a policy for tests: the caller is who the header X-Caller says.
func byName(r *http.Request) (auth.Principal, bool) {
	who := r.Header.Get("X-Caller")
	return auth.Principal(who), who != ""
}

// client sends requests to a handler without a network.
type client struct {
	t testing.TB
	h http.Handler
}

func newClient(t testing.TB, opts httpapi.Options, agents ...*fakeAgent) client {
	t.Helper()
	if opts.Auth == nil {
		opts.Auth = byName
	}
	return client{t, httpapi.New(asAgents(agents), opts)}
}

func asAgents(agents []*fakeAgent) []httpapi.Agent {
	list := make([]httpapi.Agent, len(agents))
	for i, a := range agents {
		list[i] = a
	}
	return list
}

// answer is what came back. Body is nil unless it is a JSON object.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (a answer) text(key string) string {
	s, _ := a.body[key].(string)
	return s
}

// do sends a request as caller ann. Headers are pairs; a later value of a name replaces an earlier one.
func (c client) do(method, target, body string, headers ...string) answer {
	c.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("X-Caller", "ann")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	return c.serve(r)
}

// raw sends a request line as it is, as a server would read it.
func (c client) raw(line string) answer {
	c.t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line + " HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\n\r\n")))
	if err != nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	return c.serve(r)
}

func (c client) serve(r *http.Request) answer {
	c.t.Helper()
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), raw: w.Body.String()}
	if json.Unmarshal(w.Body.Bytes(), &a.body) != nil {
		a.body = nil
	}
	return a
}

// refused checks that an answer is the envelope of an error and returns its message.
func refused(t testing.TB, a answer, status int, code string) string {
	t.Helper()
	message := a.text("message")
	if a.status != status || a.body["ok"] != false || a.text("error") != code || message == "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %.300s; want %d with the envelope of %s", a.status, a.raw, status, code)
	}
	return message
}

func eventLines(t testing.TB, raw string) (events []event.Event) {
	t.Helper()
	for line := range strings.Lines(raw) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

func indexes(events []event.Event) []int64 {
	got := []int64{}
	for _, e := range events {
		got = append(got, e.Index)
	}
	return got
}
