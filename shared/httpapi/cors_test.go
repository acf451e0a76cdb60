package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
)

const (
	app   = "https://app.example.com"
	ours  = "http://localhost:5173"
	evil  = "https://evil.example"
	reads = "Allow, Idempotency-Replayed, Retry-After, WWW-Authenticate, X-Request-Id"
)

func TestCheckOrigins(t *testing.T) {
	t.Parallel()
	for _, good := range [][]string{
		nil, {"*"}, {app}, {app, ours}, {app, app}, {"http://127.0.0.1"}, {"https://[::1]:8443"}, {"http://app.example.com:443"}, {"https://xn--bcher-kva.example"}, {"http://a_b.example"},
	} {
		if err := httpapi.CheckOrigins(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"":                            "does not begin with http:// or https://",
		"null":                        "does not begin with",
		"app.example.com":             "does not begin with",
		"ftp://app.example.com":       "does not begin with",
		"HTTPS://app.example.com":     "does not begin with",
		" https://app.example.com":    "does not begin with",
		"https://app.example.com/":    "has more than a host and its port",
		"https://app.example.com/a":   "has more than",
		"https://app.example.com?a":   "has more than",
		"https://app.example.com#a":   "has more than",
		"https://ann:x@example.com":   "has more than",
		`https://app.example.com\a`:   "has more than",
		"https://":                    "has no host in lower-case ASCII",
		"https://:8443":               "has no host",
		"https://App.example.com":     "has no host",
		"https://bücher.example":      "has no host",
		"https://*.example.com":       "has no host",
		"https://a b":                 "has no host",
		"https://a,https:":            "has no host",
		"https://a%41":                "has no host",
		"https://a\r\nX: y":           "has no host",
		"https://::1":                 "has no host",
		"https://[::1%25lo]":          "has no host",
		"https://[0:0::1]":            "has no host",
		"https://[::ffff:127.0.0.1]":  "has no host",
		"https://app.example.com:":    "has a port that is none",
		"https://app.example.com:0x1": "has no host",
		"https://app.example.com:080": "has a port that is none",
		"https://a.example:65536":     "has a port that is none",
		"https://app.example.com:443": "has the port that goes without saying",
		"http://app.example.com:80":   "has the port that goes without saying",
	} {
		err := httpapi.CheckOrigins([]string{app, bad})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "such as https://app.example.com") {
			t.Errorf("%q: got %v; want %q", bad, err, want)
		}
	}
	for _, both := range [][]string{{"*", app}, {app, "*"}, {"*", "*"}} {
		if err := httpapi.CheckOrigins(both); err == nil || !strings.Contains(err.Error(), "stands for all") {
			t.Errorf("%q: got %v", both, err)
		}
	}
}

// FuzzCheckOrigins: what passes is what a browser sends for a page at that address, and fits into a list and a header.
func FuzzCheckOrigins(f *testing.F) {
	for _, s := range []string{app, ours, "*", "https://[::1]:1", "https://a@b", "http://a:080", "https://a,b", "https://a%2f", "http://[::1%25a]", "https://A'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "*" || httpapi.CheckOrigins([]string{s}) != nil {
			return
		}
		u, err := url.Parse(s)
		if err != nil || u.Scheme+"://"+u.Host != s || u.Hostname() == "" || strings.ToLower(s) != s || strings.ContainsAny(s, ",'* \r\n") {
			t.Errorf("%q passes", s)
		}
	})
}

func TestNewRefusesWhatIsNoOrigin(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	httpapi.New(nil, httpapi.Options{Origins: []string{"app.example.com"}})
}

// shared returns what an answer tells a browser.
func shared(h http.Header) map[string]string {
	told := map[string]string{}
	for name, values := range h {
		if name == "Vary" || strings.HasPrefix(name, "Access-Control-") {
			told[name] = strings.Join(values, " | ")
		}
	}
	return told
}

// readable is what an answer tells a browser whose page may read it.
func readable(origin string) map[string]string {
	return map[string]string{"Vary": "Origin", "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": reads}
}

// TestPreflights: a browser learns, without credentials, what a page may send to each route.
func TestPreflights(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	listed := newClient(t, httpapi.Options{Playground: true, Dev: true, Origins: []string{app, ours}}, agent)
	every := newClient(t, httpapi.Options{Playground: true, Dev: true, Origins: []string{"*"}}, agent)
	for _, r := range httpapi.Routes() {
		methods := r.Method
		switch {
		case r.Pattern == "/v1/tools/{name}":
			methods = "GET, HEAD, POST"
		case methods == "GET":
			methods = "GET, HEAD"
		}
		for _, tc := range []struct {
			c             client
			origin, allow string
		}{{listed, app, app}, {listed, ours, ours}, {every, evil, "*"}, {every, "null", "*"}} {
			a := tc.c.do("OPTIONS", target(r, acc.SessionID), "", "X-Caller", "", "Origin", tc.origin,
				"Access-Control-Request-Method", r.Method, "Access-Control-Request-Headers", "authorization,content-type")
			want := readable(tc.allow)
			want["Access-Control-Allow-Methods"], want["Access-Control-Max-Age"] = methods, "7200"
			want["Access-Control-Allow-Headers"] = "Authorization, Content-Type, Idempotency-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name, X-Request-Id"
			if d := cmp.Diff(want, shared(a.header)); a.status != 204 || a.raw != "" || d != "" {
				t.Errorf("%s of %s: got %d %s (-want +got):\n%s", r.Pattern, tc.origin, a.status, a.raw, d)
			}
		}
	}
	if tail, err := agent.store.Tail(t.Context(), acc.SessionID); err != nil || tail != 2 {
		t.Errorf("the session has %d events, error %v; a question changed it", tail, err)
	}
}

// TestWhatIsNoPreflight: other requests with OPTIONS are answered as if there was nothing to ask.
func TestWhatIsNoPreflight(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{Origins: []string{app}}, newAgent("demo"))
	for _, tc := range []struct {
		name, path, origin, method string
		status                     int
		want                       map[string]string
	}{
		{name: "no method", origin: app, status: 405, want: readable(app)},
		{name: "no origin", method: "POST", status: 405, want: map[string]string{"Vary": "Origin"}},
		{name: "another origin", origin: evil, method: "POST", status: 405, want: map[string]string{"Vary": "Origin"}},
		{name: "an origin that begins the same", origin: app + ".evil.example", method: "POST", status: 405, want: map[string]string{"Vary": "Origin"}},
		{name: "an unknown path", path: "/demo/v1/nothing", origin: app, method: "POST", status: 404, want: readable(app)},
		{name: "a path with a trick", path: "/demo/../v1/info", origin: app, method: "POST", status: 404, want: readable(app)},
	} {
		path := "/demo/v1/session"
		if tc.path != "" {
			path = tc.path
		}
		a := c.do("OPTIONS", path, "", "Origin", tc.origin, "Access-Control-Request-Method", tc.method)
		refused(t, a, tc.status, map[int]string{404: "not_found", 405: "method_not_allowed"}[tc.status])
		if allow := a.header.Get("Allow"); tc.status == 405 && allow != "POST" {
			t.Errorf("%s: Allow %q", tc.name, allow)
		}
		if d := cmp.Diff(tc.want, shared(a.header)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

// TestAnswersForPages: whatever the answer, the page of a configured origin can read it, and no other.
func TestAnswersForPages(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	agent.onStart = func(ctx context.Context) {
		if who, _ := auth.FromContext(ctx); who == "eve" {
			panic("out of cheese")
		}
	}
	closed := make(chan struct{})
	close(closed)
	path := "/demo/v1/session"
	requests := []struct {
		name, method, path, body, caller string
		status                           int
	}{
		{"health", "GET", "/v1/health", "", "", 200},
		{"a message", "POST", path, `{"message":"x"}`, "ann", 202},
		{"the log", "GET", path + "/" + acc.SessionID + "/events", "", "ann", 200},
		{"the log, without its body", "HEAD", path + "/" + acc.SessionID + "/events", "", "ann", 200},
		{"a stream", "GET", path + "/" + acc.SessionID + "/stream?follow=false", "", "ann", 200},
		{"nonsense", "POST", path, `{`, "ann", 400},
		{"nobody", "GET", "/demo/v1/info", "", "", 401},
		{"another caller", "GET", path + "/" + acc.SessionID + "/stream", "", "bob", 403},
		{"an unknown session", "GET", path + "/ses_unknown/stream", "", "ann", 404},
		{"an unknown path", "GET", "/nothing", "", "ann", 404},
		{"a path with a trick", "GET", "/demo//v1/info", "", "ann", 404},
		{"another method", "PUT", path, "", "ann", 405},
		{"a token of before", "POST", path + "/" + acc.SessionID, `{"continuationToken":"http:x","message":"y"}`, "ann", 409},
		{"a large message", "POST", path, `{"message":"` + strings.Repeat("x", 300<<10) + `"}`, "ann", 413},
		{"a fault", "POST", path, `{"message":"x"}`, "eve", 500},
	}
	for name, tc := range map[string]struct {
		origins []string
		origin  string
		want    map[string]string
	}{
		"none configured":    {nil, app, map[string]string{}},
		"one of them":        {[]string{ours, app}, app, readable(app)},
		"any":                {[]string{"*"}, evil, readable("*")},
		"another":            {[]string{ours, app}, evil, map[string]string{"Vary": "Origin"}},
		"in other case":      {[]string{app}, "https://APP.example.com", map[string]string{"Vary": "Origin"}},
		"no page":            {[]string{app}, "", map[string]string{"Vary": "Origin"}},
		"no page, any":       {[]string{"*"}, "", map[string]string{"Vary": "Origin"}},
		"a page from a file": {[]string{app}, "null", map[string]string{"Vary": "Origin"}},
	} {
		c := newClient(t, httpapi.Options{Origins: tc.origins}, agent)
		for _, r := range requests {
			a := c.do(r.method, r.path, r.body, "X-Caller", r.caller, "Origin", tc.origin)
			if d := cmp.Diff(tc.want, shared(a.header)); a.status != r.status || d != "" {
				t.Errorf("%s, %s: got %d, want %d (-want +got):\n%s", name, r.name, a.status, r.status, d)
			}
		}
	}
	c := newClient(t, httpapi.Options{Origins: []string{app}, Closing: closed}, agent)
	a := c.do("GET", path+"/"+acc.SessionID+"/stream", "", "Origin", app)
	if d := cmp.Diff(readable(app), shared(a.header)); a.status != 503 || a.header.Get("Retry-After") == "" || d != "" {
		t.Errorf("a host that shuts down: got %d (-want +got):\n%s", a.status, d)
	}
}

// TestStreamsForPages: a page can read a stream that goes on.
func TestStreamsForPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := newAgent("demo")
		acc, _ := agent.begin(t, "ann", session.Chat)
		h := newClient(t, httpapi.Options{Origins: []string{app}}, agent).h
		page := client{t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Origin", app)
			h.ServeHTTP(w, r)
		})}
		ctx, cancel := context.WithCancel(t.Context())
		out, done := open(ctx, page, "/demo/v1/session/"+acc.SessionID+"/stream")
		if d := cmp.Diff(readable(app), shared(out.header)); d != "" || len(eventLines(t, out.seen())) != 2 {
			t.Errorf("the client has %q (-want +got):\n%s", out.seen(), d)
		}
		cancel()
		<-done
	})
}

// TestPagesAreNotCallers: to let pages read answers admits nobody. Pages of other origins need a token, also on this machine.
func TestPagesAreNotCallers(t *testing.T) {
	t.Parallel()
	bearer, err := auth.Bearer([]string{"ci:secret"})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, httpapi.Options{Auth: auth.Chain(bearer, auth.Loopback()), Origins: []string{"*"}, Dev: true}, newAgent("demo"))
	for _, tc := range []struct {
		method, path, origin, token string
		want                        int
	}{
		{"GET", "/demo/v1/sessions", "", "", 200},
		{"GET", "/demo/v1/sessions", evil, "", 401},
		{"GET", "/demo/v1/sessions", "http://localhost:4000", "", 401},
		{"POST", "/demo/v1/session", evil, "", 401},
		{"GET", "/demo/v1/sessions", evil, "secret", 200},
		{"POST", "/demo/v1/session", evil, "secret", 202},
	} {
		r := httptest.NewRequest(tc.method, "http://localhost:3000"+tc.path, strings.NewReader(`{"message":"x"}`))
		r.RemoteAddr = "127.0.0.1:4711"
		r.Header.Set("Content-Type", "application/json")
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		if a := c.serve(r); a.status != tc.want {
			t.Errorf("%s %s of a page of %q with the token %q: got %d; want %d", tc.method, tc.path, tc.origin, tc.token, a.status, tc.want)
		}
	}
}
