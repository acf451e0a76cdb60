package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
)

// target returns the address of a route for a session.
func target(r httpapi.Route, id string) string {
	path := strings.NewReplacer("{id}", id, "{$}", "", "{callId}", "call_1", "{name}", "look").Replace(r.Pattern)
	if r.Host {
		return path
	}
	return "/demo" + path
}

// TestEveryRouteChecksItsCaller walks the router: what is not in the list of public routes answers 401 without
// credentials, and what belongs to a session answers 403 to another principal.
func TestEveryRouteChecksItsCaller(t *testing.T) {
	t.Parallel()
	public := map[string]bool{"GET /{$} host": true, "GET /v1/agents host": true, "GET /v1/health host": true, "GET /v1/health": true}
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	agent.waiting = []parked{{Approval: engine.Approval{CallID: "call_1"}, session: acc.SessionID}}
	c := newClient(t, httpapi.Options{Playground: true, Dev: true}, agent)
	for _, r := range httpapi.Routes() {
		name := r.Method + " " + r.Pattern
		if r.Host {
			name += " host"
		}
		methods := []string{r.Method}
		if r.Method == "GET" {
			methods = append(methods, "HEAD")
		}
		for _, m := range methods {
			a := c.do(m, target(r, acc.SessionID), "", "X-Caller", "")
			switch {
			case public[name]:
				if a.status != 200 {
					t.Errorf("%s: got %d without credentials; it is public", name, a.status)
				}
			case a.status != 401 || a.header.Get("WWW-Authenticate") != "Bearer":
				t.Errorf("%s: got %d without credentials, challenge %q; want 401", name, a.status, a.header.Get("WWW-Authenticate"))
			case m != "HEAD" && !r.RPC: // which have faults of another form
				refused(t, a, 401, "unauthenticated")
			}
			if public[name] != (r.Access == httpapi.Public) {
				t.Errorf("%s: access %v; it must be public: %v", name, r.Access, public[name])
			}
			if !strings.Contains(r.Pattern, "/session/{id}") {
				continue
			}
			decides := strings.Contains(r.Pattern, "/approvals") // who may decide need not be the owner: the engine says who may
			if (r.Access != httpapi.Owner) != decides {
				t.Errorf("%s: a session's route has access %v", name, r.Access)
			}
			body := `{"continuationToken":"` + acc.Token + `","message":"x"}`
			if decides {
				body = `{"decision":"approve"}`
			}
			if a := c.do(m, target(r, acc.SessionID), body, "X-Caller", "bob"); a.status != 403 {
				t.Errorf("%s: got %d for another principal; want 403", name, a.status)
			}
			if a := c.do(m, target(r, "ses_unknown"), ""); a.status != 404 {
				t.Errorf("%s: got %d for an unknown session; want 404", name, a.status)
			}
		}
	}
	refused(t, c.do("GET", "/demo/v1/session/"+acc.SessionID+"/events", "", "X-Caller", "bob"), 403, "forbidden")
	refused(t, c.do("GET", "/demo/v1/session/ses_unknown/events", ""), 404, "not_found")
	if len(agent.decided) > 0 {
		t.Errorf("strangers decided %v", agent.decided)
	}
	if tail, err := agent.store.Tail(t.Context(), acc.SessionID); err != nil || tail != 2 {
		t.Errorf("the session has %d events, error %v; the strangers changed it", tail, err)
	}
}

func TestASessionIsReachedThroughItsOwnAgentOnly(t *testing.T) {
	t.Parallel()
	shared := session.New(memsession.New(), session.Options{})
	one, two := newAgent("one"), newAgent("two")
	one.store, two.store = shared, shared
	acc, _ := one.begin(t, "ann", session.Chat)
	c := newClient(t, httpapi.Options{}, one, two)
	if a := c.do("GET", "/one/v1/session/"+acc.SessionID+"/events", ""); a.status != 200 {
		t.Errorf("got %d through its own agent", a.status)
	}
	refused(t, c.do("GET", "/two/v1/session/"+acc.SessionID+"/events", ""), 404, "not_found")
	refused(t, c.do("GET", "/two/v1/session/"+acc.SessionID+"/approvals", ""), 404, "not_found")
	refused(t, c.do("POST", "/two/v1/session/"+acc.SessionID+"/approvals/call_1", `{"decision":"deny"}`), 404, "not_found")
	refused(t, c.do("GET", "/two/v1/tools?session="+acc.SessionID, ""), 404, "session_not_found")
}

func TestUnauthenticatedAnswersReadTheSame(t *testing.T) {
	t.Parallel()
	bearer, err := auth.Bearer([]string{"ci:secret"})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, httpapi.Options{Auth: auth.Chain(bearer, auth.Loopback())}, newAgent("demo"))
	first := refused(t, c.do("GET", "/demo/v1/info", ""), 401, "unauthenticated")
	for _, h := range []string{"Bearer secres", "Bearer", "Basic x", "Bearer ci:secret"} {
		if got := refused(t, c.do("GET", "/demo/v1/info", "", "Authorization", h), 401, "unauthenticated"); got != first {
			t.Errorf("%q: the refusal reads otherwise: %s", h, got)
		}
	}
	if a := c.do("GET", "/demo/v1/info", "", "Authorization", "Bearer secret"); a.status != 200 {
		t.Errorf("got %d with the token; want 200", a.status)
	}
}

func TestWrongMethods(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	c := newClient(t, httpapi.Options{Playground: true}, agent)
	for _, tc := range []struct{ method, path, allow string }{
		{"POST", "/", "GET, HEAD"},
		{"DELETE", "/v1/agents", "GET, HEAD"},
		{"PUT", "/v1/health", "GET, HEAD"},
		{"GET", "/demo/v1/session", "POST"},
		{"HEAD", "/demo/v1/session", "POST"},
		{"OPTIONS", "/demo/v1/session", "POST"},
		{"GET", "/demo/v1/session/" + acc.SessionID, "POST"},
		{"DELETE", "/demo/v1/session/" + acc.SessionID, "POST"},
		{"GET", "/demo/v1/session/" + acc.SessionID + "/stop", "POST"},
		{"POST", "/demo/v1/session/" + acc.SessionID + "/stream", "GET, HEAD"},
		{"POST", "/demo/v1/sessions", "GET, HEAD"},
		{"brew", "/demo/v1/info", "GET, HEAD"},
		{"POST", "/demo/v1/session/" + acc.SessionID + "/approvals", "GET, HEAD"},
		{"GET", "/demo/v1/session/" + acc.SessionID + "/approvals/call_1", "POST"},
		{"POST", "/demo/v1/artifacts", "GET, HEAD"},
		{"DELETE", "/demo/v1/artifacts/art_x/content", "GET, HEAD"},
		{"POST", "/demo/v1/tools", "GET, HEAD"},
		{"DELETE", "/demo/v1/tools/look", "GET, HEAD, POST"},
	} {
		a := c.do(tc.method, tc.path, "")
		if tc.method != "HEAD" {
			refused(t, a, 405, "method_not_allowed")
		}
		if a.status != 405 || a.header.Get("Allow") != tc.allow {
			t.Errorf("%s %s: got %d, Allow %q; want 405 and %q", tc.method, tc.path, a.status, a.header.Get("Allow"), tc.allow)
		}
	}
}

func TestPathTricksAreNotFound(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	c := newClient(t, httpapi.Options{Playground: true}, agent)
	for _, path := range []string{
		"/nothing", "/demo", "/demo/", "/demo/v1", "/demo/v2/info", "/demo/v1/info/", "/v1/info", "/other/v1/info",
		"//", "//demo/v1/info", "/demo//v1/info", "/demo/v1/info//", "/demo/./v1/info", "/demo/v1/../v1/info", "/..", "/demo/v1/info/.", "/demo/v1/info/..",
		"/demo/v1/session/", "/demo/v1/session//events", "/demo/v1/session/../events", "/demo/v1/session/%2e%2e/events", "/demo/v1/session/%2E/events",
		"/demo/v1/session/%2F/events", "/demo/v1/session/ses_a%2Fb/events", "/demo/v1/session/" + acc.SessionID + "%2F/events",
		"/demo/v1/session/%00/events", "/demo/v1/session/ses_%00/events", "/demo/v1/session/" + acc.SessionID + "%00/events", "/demo/v1/session/ses_%ff/events",
		"/demo/v1/session/ses_/events", "/demo/v1/session/" + acc.SessionID[4:] + "/events", "/demo/v1/session/turn_x/events", "/demo/v1/session/SES_x/events",
		"/demo/v1/session/ses_" + strings.Repeat("a", 8000) + "/events", "/demo/v1/session/ses_%F0%9F%98%80/events", "/demo/v1/session/ses_a;b/events",
		"/demo/v1/session/ses_'or%201=1--/events", "/demo/v1/session/ses_%25/events", "/demo/v1/session/" + strings.ToUpper(acc.SessionID) + "/events",
		"/demo%2Fv1%2Finfo", "/%2e%2e/demo/v1/info", "/demo/v1/session/" + acc.SessionID + "/", "/demo/v1/session/" + acc.SessionID + "/events/0",
		"/demo\\v1\\info", "http://h", "http://h/demo/../x", "*",
	} {
		a := c.raw("GET " + path)
		refused(t, a, 404, "not_found")
		if a.header.Get("Location") != "" {
			t.Errorf("%.100s: redirects to %s", path, a.header.Get("Location"))
		}
	}
	if a := c.raw("CONNECT h:1"); a.status != 404 {
		t.Errorf("CONNECT: got %d; want 404", a.status)
	}
	if a := c.raw("GET /demo/v1/session/" + acc.SessionID + "/events"); a.status != 200 {
		t.Errorf("the session itself: got %d; want 200", a.status)
	}
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	status := func(c client) map[string]int {
		got := map[string]int{}
		for _, path := range []string{"/", "/v1/agents", "/v1/health", "/demo/v1/health", "/v1/info", "/demo/v1/info", "/v1/sessions"} {
			got[path] = c.do("GET", path, "").status
		}
		return got
	}
	for _, tc := range []struct {
		name string
		opts httpapi.Options
		want map[string]int
	}{
		{"several agents, no playground", httpapi.Options{}, map[string]int{
			"/": 404, "/v1/agents": 404, "/v1/health": 200, "/demo/v1/health": 200, "/v1/info": 404, "/demo/v1/info": 200, "/v1/sessions": 404,
		}},
		{"several agents", httpapi.Options{Playground: true}, map[string]int{
			"/": 200, "/v1/agents": 200, "/v1/health": 200, "/demo/v1/health": 200, "/v1/info": 404, "/demo/v1/info": 200, "/v1/sessions": 404,
		}},
		{"single, no playground", httpapi.Options{Single: true}, map[string]int{
			"/": 404, "/v1/agents": 404, "/v1/health": 200, "/demo/v1/health": 404, "/v1/info": 200, "/demo/v1/info": 404, "/v1/sessions": 200,
		}},
		{"single", httpapi.Options{Single: true, Playground: true}, map[string]int{
			"/": 200, "/v1/agents": 200, "/v1/health": 200, "/demo/v1/health": 404, "/v1/info": 200, "/demo/v1/info": 404, "/v1/sessions": 200,
		}},
	} {
		if diff := cmp.Diff(tc.want, status(newClient(t, tc.opts, newAgent("demo")))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{NewID: func() string { return "made" }}, newAgent("demo"))
	for given, want := range map[string]string{
		"": "made", "abc-1_2.3": "abc-1_2.3", "with space": "made", "new\nline": "made", strings.Repeat("a", 129): "made", `"><script>`: "made",
	} {
		if got := c.do("GET", "/v1/health", "", "X-Request-Id", given).header.Get("X-Request-Id"); got != want {
			t.Errorf("%q: got %q; want %q", given, got, want)
		}
	}
}

// faulty is a driver whose reads fail.
type faulty struct {
	*memsession.Driver

	err error
}

func (f faulty) Events(context.Context, string, int64, int) ([]event.Event, error) { return nil, f.err }

func TestInternalErrorsAreLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	agent := newAgent("demo")
	agent.store = session.New(faulty{memsession.New(), errors.New("disk on fire")}, session.Options{})
	acc, err := agent.store.Start(t.Context(), session.Start{Agent: "demo", Owner: "ann", Message: "x"})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, httpapi.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))}, agent)
	message := refused(t, c.do("GET", "/demo/v1/session/"+acc.SessionID+"/events", "", "X-Request-Id", "req-7"), 500, "internal")
	if strings.Contains(message, "fire") || !strings.Contains(message, "req-7") {
		t.Errorf("the client sees %q", message)
	}
	if log := out.String(); !strings.Contains(log, "disk on fire") || !strings.Contains(log, `"request_id":"req-7"`) || !strings.Contains(log, acc.SessionID) {
		t.Errorf("the log has %s", log)
	}
}

func TestPanicsAreAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	agent := newAgent("demo")
	agent.onStart = func(context.Context) { panic("out of cheese") }
	c := newClient(t, httpapi.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))}, agent)
	if message := refused(t, c.do("POST", "/demo/v1/session", `{"message":"x"}`), 500, "internal"); strings.Contains(message, "cheese") {
		t.Errorf("the client sees %q", message)
	}
	if log := out.String(); !strings.Contains(log, "out of cheese") || !strings.Contains(log, "stack") {
		t.Errorf("the log has %s", log)
	}
}

// TestAnAnswerThatBreaksOffIsCut: a log that cannot be read to its end must not look as if it were whole.
func TestAnAnswerThatBreaksOffIsCut(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	driver := &failsLater{Driver: memsession.New()}
	agent.store = session.New(driver, session.Options{})
	acc, w := agent.begin(t, "ann", session.Chat)
	for range 700 {
		add(t, w, event.MessageAppended{Text: "x"})
	}
	driver.armed = true
	s := httptest.NewServer(newClient(t, httpapi.Options{}, agent).h)
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/demo/v1/session/"+acc.SessionID+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Caller", "ann")
	res, err := s.Client().Do(r)
	if err != nil {
		return // cut before the header arrived
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err == nil {
		t.Errorf("the answer of %d bytes seems to be whole", body.Len())
	}
}

// failsLater is a driver that reads one page and no other.
type failsLater struct {
	*memsession.Driver

	armed bool
}

func (f *failsLater) Events(ctx context.Context, id string, from int64, limit int) ([]event.Event, error) {
	if f.armed && from > 0 {
		return nil, errors.New("disk on fire")
	}
	return f.Driver.Events(ctx, id, from, limit)
}

func TestRequestLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	c := newClient(t, httpapi.Options{Log: slog.New(slog.NewTextHandler(&out, nil))}, agent)
	c.do("POST", "/demo/v1/session/"+acc.SessionID+"/stop", "", "Authorization", "Bearer hunter2", "X-Request-Id", "r1")
	c.do("GET", "/v1/health", "")
	log := out.String()
	for _, want := range []string{
		"msg=request", "method=POST", "route=/v1/session/{id}/stop", "status=200", "duration=", "principal=ann", "request_id=r1", "session_id=" + acc.SessionID, "slug=demo",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s: %s", want, log)
		}
	}
	if strings.Contains(log, "hunter2") || strings.Contains(log, "health") {
		t.Errorf("the log has a secret, or liveness checks: %s", log)
	}
}

func TestNewRefusesImpossibleOptions(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("two agents in single mode: no panic")
		}
	}()
	httpapi.New(asAgents([]*fakeAgent{newAgent("a"), newAgent("b")}), httpapi.Options{Single: true})
}
