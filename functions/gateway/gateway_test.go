package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/functions/gateway"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// answer is what both modes answer with.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error // of reading the body
}

// modes are the two ways to answer an event.
func modes() map[string]func(tb testing.TB, h http.Handler, opts gateway.Options, e events.APIGatewayProxyRequest) answer {
	return map[string]func(testing.TB, http.Handler, gateway.Options, events.APIGatewayProxyRequest) answer{
		"buffered": func(tb testing.TB, h http.Handler, opts gateway.Options, e events.APIGatewayProxyRequest) answer {
			tb.Helper()
			a, err := gateway.Buffered(h, opts)(tb.Context(), e)
			if err != nil {
				tb.Fatal(err)
			}
			body := []byte(a.Body)
			if a.IsBase64Encoded {
				if body, err = base64.StdEncoding.DecodeString(a.Body); err != nil {
					tb.Fatal(err)
				}
			}
			return answer{a.StatusCode, a.MultiValueHeaders, string(body), nil}
		},
		"streamed": func(tb testing.TB, h http.Handler, opts gateway.Options, e events.APIGatewayProxyRequest) answer {
			tb.Helper()
			a, err := gateway.Streamed(h, opts)(tb.Context(), e)
			if err != nil {
				tb.Fatal(err)
			}
			body, err := io.ReadAll(a.Body)
			if cerr := a.Close(); cerr != nil {
				tb.Error(cerr)
			}
			return answer{a.StatusCode, a.MultiValueHeaders, string(body), err}
		},
	}
}

// both runs a test of both modes.
func both(t *testing.T, h http.Handler, opts gateway.Options, e events.APIGatewayProxyRequest, check func(t *testing.T, a answer)) {
	t.Helper()
	opts.Stage = "workshop"
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, mode(t, h, opts, e))
		})
	}
}

func get(path string) events.APIGatewayProxyRequest {
	return events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: path}
}

// TestRequests: handlers see the request as the client has sent it to the stage.
func TestRequests(t *testing.T) {
	t.Parallel()
	type seen struct {
		Method, Path, Escaped, Query, Host, Remote, Body, RequestURI string
		Length                                                       int64
		Header                                                       http.Header
	}
	identity := events.APIGatewayProxyRequestContext{
		DomainName: "abc.execute-api.eu-west-1.amazonaws.com", RequestID: "gateway-1", Identity: events.APIGatewayRequestIdentity{SourceIP: "203.0.113.9"},
	}
	for name, tc := range map[string]struct {
		event events.APIGatewayProxyRequest
		want  seen
	}{
		"everything": {
			events.APIGatewayProxyRequest{
				HTTPMethod: "post", Path: "/v1/session/a%2Fb", Body: `{"a":"ä"}`, RequestContext: identity,
				Headers:                         map[string]string{"Host": "last.example", "X-Many": "2"},
				MultiValueHeaders:               map[string][]string{"Host": {"api.example"}, "x-many": {"1", "2"}, "Expect": {"100-continue"}, "X-Request-Id": {"mine"}},
				QueryStringParameters:           map[string]string{"q": "2"},
				MultiValueQueryStringParameters: map[string][]string{"q": {"1 &", "2"}, "a": {""}},
			},
			seen{
				Method: "POST", Path: "/workshop/v1/session/a/b", Escaped: "/workshop/v1/session/a%2Fb", Query: "a=&q=1+%26&q=2", Host: "api.example",
				Remote: "203.0.113.9:0", Body: `{"a":"ä"}`, RequestURI: "/workshop/v1/session/a%2Fb?a=&q=1+%26&q=2", Length: 10,
				Header: http.Header{"X-Many": {"1", "2"}, "X-Request-Id": {"mine"}},
			},
		},
		"single values": {
			events.APIGatewayProxyRequest{
				HTTPMethod: "GET", Path: "/v1/health", RequestContext: identity,
				Headers: map[string]string{"accept": "*/*"}, QueryStringParameters: map[string]string{"a": "b"},
			},
			seen{
				Method: "GET", Path: "/workshop/v1/health", Escaped: "/workshop/v1/health", Query: "a=b", Host: identity.DomainName, Remote: "203.0.113.9:0",
				RequestURI: "/workshop/v1/health?a=b", Header: http.Header{"Accept": {"*/*"}, "X-Request-Id": {"gateway-1"}},
			},
		},
		"a binary body": {
			events.APIGatewayProxyRequest{HTTPMethod: "PUT", Path: "/", Body: base64.StdEncoding.EncodeToString([]byte("\x00\xff")), IsBase64Encoded: true},
			seen{Method: "PUT", Path: "/workshop/", Escaped: "/workshop/", Remote: ":0", Body: "\x00\xff", Length: 2, RequestURI: "/workshop/", Header: http.Header{}},
		},
		"nothing": {
			events.APIGatewayProxyRequest{},
			seen{Method: "GET", Path: "/workshop/", Escaped: "/workshop/", Remote: ":0", RequestURI: "/workshop/", Header: http.Header{}},
		},
		"a path that was unescaped before": {
			get("/v1/a?b#c\x01\n d"),
			seen{
				Method: "GET", Path: "/workshop/v1/a?b#c\x01\n d", Escaped: "/workshop/v1/a%3Fb%23c%01%0A%20d", Remote: ":0",
				RequestURI: "/workshop/v1/a%3Fb%23c%01%0A%20d", Header: http.Header{},
			},
		},
		"a path with broken escapes": {
			get("/v1/100%b"),
			seen{
				Method: "GET", Path: "/workshop/v1/100%b", Escaped: "/workshop/v1/100%25b", Remote: ":0",
				RequestURI: "/workshop/v1/100%25b", Header: http.Header{},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got := seen{r.Method, r.URL.Path, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, r.RemoteAddr, string(body), r.RequestURI, r.ContentLength, r.Header}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
			both(t, h, gateway.Options{}, tc.event, func(t *testing.T, a answer) {
				t.Helper()
				if a.Status != 200 || a.Body != "" || a.Err != nil {
					t.Errorf("a handler that writes nothing answers %+v", a)
				}
			})
		})
	}
}

// TestBasePath: what a custom domain puts before the path of the resource is not in the path that handlers see.
func TestBasePath(t *testing.T) {
	t.Parallel()
	type values = map[string]string
	for name, tc := range map[string]struct {
		resource, path string
		values         values
		want           string // the escaped path below the stage
	}{
		"none":                          {"/v1/health", "/v1/health", nil, "/v1/health"},
		"the stage":                     {"/v1/health", "/workshop/v1/health", nil, "/v1/health"},
		"another":                       {"/v1/health", "/x/v1/health", nil, "/v1/health"},
		"several segments":              {"/v1/health", "/x/workshop/v1/health", nil, "/v1/health"},
		"like the path":                 {"/v1/health", "/v1/health/v1/health", nil, "/v1/health"},
		"a slash at the end":            {"/v1/health", "/x/v1/health/", nil, "/v1/health/"},
		"none, a slash at the end":      {"/v1/health", "/v1/health/", nil, "/v1/health/"},
		"the root":                      {"/", "/", nil, "/"},
		"the root of a base":            {"/", "/x", nil, "/"},
		"the root of a base, a slash":   {"/", "/x/", nil, "/"},
		"a parameter":                   {"/v1/session/{id}/stop", "/x/v1/session/a/stop", values{"id": "a"}, "/v1/session/a/stop"},
		"a parameter like the base":     {"/v1/session/{id}", "/v1/session/v1/session/v1", values{"id": "v1"}, "/v1/session/v1"},
		"an unescaped parameter":        {"/v1/session/{id}", "/x/v1/session/a%2Fb%3f", values{"id": "a/b?"}, "/v1/session/a%2Fb%3f"},
		"an escaped parameter":          {"/v1/session/{id}", "/x/v1/session/a%2Fb", values{"id": "a%2Fb"}, "/v1/session/a%2Fb"},
		"a parameter with a percent":    {"/v1/session/{id}", "/x/v1/session/a%2541", values{"id": "a%41"}, "/v1/session/a%2541"},
		"a parameter with braces":       {"/v1/session/{id}", "/x/v1/session/%7Bid%7D", values{"id": "{id}"}, "/v1/session/%7Bid%7D"},
		"all that follows":              {"/v1/{proxy+}", "/x/v1/a/b", values{"proxy": "a/b"}, "/v1/a/b"},
		"all that follows, a slash":     {"/{proxy+}", "/x/a/b/", values{"proxy": "a/b"}, "/a/b/"},
		"all that follows, none":        {"/{proxy+}", "/x/a", values{"proxy": "x/a"}, "/x/a"},
		"all that follows, unescaped":   {"/{proxy+}", "/x/a?b#c", values{"proxy": "a?b#c"}, "/a%3Fb%23c"},
		"all that follows, broken":      {"/{proxy+}", "/x/100%b", values{"proxy": "100%b"}, "/100%25b"},
		"a slash that is escaped":       {"/v1/health", "/x%2Fv1/health", nil, "/x%2Fv1/health"},
		"part of a segment":             {"/v1/health", "/xv1/health", nil, "/xv1/health"},
		"another path":                  {"/v1/health", "/x/v1/info", nil, "/x/v1/info"},
		"a parameter that is not there": {"/v1/session/{id}", "/x/v1/session/a", nil, "/x/v1/session/a"},
		"an event without a resource":   {"", "/x/v1/health", nil, "/x/v1/health"},
		"more than the path":            {"/x/v1/health", "/v1/health", nil, "/v1/health"},
	} {
		e := get(tc.path)
		e.Resource, e.PathParameters = tc.resource, tc.values
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.EscapedPath()) })
		if a := modes()["buffered"](t, h, gateway.Options{Stage: "workshop"}, e); a.Body != "/workshop"+tc.want {
			t.Errorf("%s: got %s; want /workshop%s", name, a.Body, tc.want)
		}
	}
}

// FuzzBasePath: any base path before any path is taken away, whether the event has parameters with their escapes or without.
func FuzzBasePath(f *testing.F) {
	f.Add("x", "ses_1", true)
	f.Add("v1/session", "a/b?c d%41\x00é", false)
	f.Fuzz(func(t *testing.T, base, id string, escaped bool) {
		if base != strings.Trim(base, "/") || strings.ContainsAny(base, "%") || strings.HasSuffix(id, "/") || id == "" {
			t.Skip("no base path, or API Gateway finds no such resource")
		}
		e := get("/" + base + "/v1/session/" + url.PathEscape(id))
		e.Resource, e.PathParameters = "/v1/session/{id}", map[string]string{"id": id}
		if escaped {
			e.PathParameters["id"] = url.PathEscape(id)
		}
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.EscapedPath()) })
		want := "/workshop/v1/session/" + url.PathEscape(id)
		if a := modes()["buffered"](t, h, gateway.Options{Stage: "workshop"}, e); a.Body != want {
			t.Errorf("got %q; want %q", a.Body, want)
		}
	})
}

// TestSegments: an escaped slash stays in its segment, as net/http has it.
func TestSegments(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/workshop/v1/session/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("id")) })
	both(t, mux, gateway.Options{}, get("/v1/session/a%2Fb%3F"), func(t *testing.T, a answer) {
		t.Helper()
		if a.Status != 200 || a.Body != "a/b?" {
			t.Errorf("got %+v", a)
		}
	})
}

// TestRedirects: where a mux sends a client is below the stage.
func TestRedirects(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/workshop/v1/dir/", func(http.ResponseWriter, *http.Request) {})
	both(t, mux, gateway.Options{}, get("/v1/dir"), func(t *testing.T, a answer) {
		t.Helper()
		if a.Status/100 != 3 || a.Header.Get("Location") != "/workshop/v1/dir/" {
			t.Errorf("got %+v", a)
		}
	})
}

// TestLazy: what could not be opened is tried again with the next request, and opened once.
func TestLazy(t *testing.T) {
	t.Parallel()
	faults := []error{bdkerr.New(bdkerr.Unavailable, "not yet"), errors.New("secret reason"), nil}
	opens := 0
	h := gateway.Lazy(func(context.Context) (http.Handler, error) {
		opens++
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }), faults[opens-1]
	}, slog.New(slog.DiscardHandler))
	for i, want := range []int{503, 500, 200, 200} {
		a := modes()["buffered"](t, h, gateway.Options{}, get("/"))
		if a.Status != want || strings.Contains(a.Body, "secret") || (want == 200) != (a.Body == "here") {
			t.Errorf("request %d: got %+v", i, a)
		}
	}
	if opens != 3 {
		t.Errorf("opened %d times", opens)
	}
}

// TestCannotBeRead: events that are no requests are answered, in the API's own form.
func TestCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]events.APIGatewayProxyRequest{
		"method":  {HTTPMethod: "GE T", Path: "/"},
		"letters": {HTTPMethod: "GÉT", Path: "/"},
		"base64":  {HTTPMethod: "POST", Path: "/", Body: "%", IsBase64Encoded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
			both(t, h, gateway.Options{}, e, func(t *testing.T, a answer) {
				t.Helper()
				if a.Status != 400 || failure(t, a) != "invalid_request" {
					t.Errorf("got %+v", a)
				}
			})
		})
	}
}

// failure returns the code of an answer in the form of errors.
func failure(tb testing.TB, a answer) string {
	tb.Helper()
	var e struct {
		OK             *bool
		Error, Message string
	}
	if err := json.Unmarshal([]byte(a.Body), &e); err != nil || e.OK == nil || *e.OK || e.Message == "" || a.Header.Get("Content-Type") != "application/json" {
		tb.Errorf("%+v is no answer of an error: %v", a, err)
	}
	return e.Error
}

// TestAnswers: status, headers and body are what net/http would send.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method string
		handle func(w http.ResponseWriter)
		want   answer
	}{
		"text": {
			"GET", func(w http.ResponseWriter) { fmt.Fprint(w, "hello") },
			answer{200, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, "hello", nil},
		},
		"binary": {
			"GET", func(w http.ResponseWriter) { fmt.Fprint(w, "\x89PNG\x0d\x0a\x1a\x0a\xff") },
			answer{200, http.Header{"Content-Type": {"image/png"}}, "\x89PNG\x0d\x0a\x1a\x0a\xff", nil},
		},
		"the first status counts": {
			"GET", func(w http.ResponseWriter) {
				w.WriteHeader(103)
				w.WriteHeader(404)
				w.WriteHeader(500)
			},
			answer{404, http.Header{}, "", nil},
		},
		"headers after the status are late": {
			"GET", func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "a/b")
				w.WriteHeader(201)
				w.Header().Set("X-Late", "1")
				fmt.Fprint(w, "{}")
			},
			answer{201, http.Header{"Content-Type": {"a/b"}}, "{}", nil},
		},
		"headers after the first byte are late": {
			"GET", func(w http.ResponseWriter) {
				fmt.Fprint(w, "a")
				w.Header().Set("X-Late", "1")
				w.WriteHeader(500)
				fmt.Fprint(w, "b")
			},
			answer{200, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, "ab", nil},
		},
		"many values, and what is of the connection": {
			"GET", func(w http.ResponseWriter) {
				h := w.Header()
				h["Set-Cookie"] = []string{"a=1", "b=2"}
				h["X-Split"] = []string{"a\r\nX-Evil: 1", "b"}
				h["Content-Length"], h["Connection"], h["Trailer"], h["Trailer:X-Sum"] = []string{"2"}, []string{"close"}, []string{"X-End"}, []string{"1"}
				h.Set("X-End", "1")
				h.Set("Content-Type", "a/b")
				fmt.Fprint(w, "{}")
			},
			answer{200, http.Header{"Set-Cookie": {"a=1", "b=2"}, "X-Split": {"b"}, "Content-Type": {"a/b"}}, "{}", nil},
		},
		"HEAD has no body": {
			"HEAD", func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "a/b")
				fmt.Fprint(w, "hello")
			},
			answer{200, http.Header{"Content-Type": {"a/b"}}, "", nil},
		},
		"204 has no body": {
			"GET", func(w http.ResponseWriter) {
				w.WriteHeader(204)
				if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
					t.Errorf("got error %v", err)
				}
			},
			answer{204, http.Header{}, "", nil},
		},
		"a status that is none": {
			"GET", func(w http.ResponseWriter) { w.WriteHeader(0) },
			answer{500, http.Header{}, "", nil},
		},
		"through a response controller": {
			"GET", func(w http.ResponseWriter) {
				c := http.NewResponseController(w)
				if err := c.SetWriteDeadline(time.Now()); !errors.Is(err, http.ErrNotSupported) {
					t.Errorf("got error %v", err)
				}
				w.Header().Set("Content-Type", "a/b")
				if err := c.Flush(); err != nil {
					t.Error(err)
				}
				fmt.Fprint(w, "1")
			},
			answer{200, http.Header{"Content-Type": {"a/b"}}, "1", nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tc.handle(w) })
			both(t, h, gateway.Options{}, events.APIGatewayProxyRequest{HTTPMethod: tc.method, Path: "/"}, func(t *testing.T, a answer) {
				t.Helper()
				if d := cmp.Diff(tc.want, a); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		})
	}
}

// TestPanics: a handler that panics before the first byte is answered with an error; the process lives.
func TestPanics(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]any{"a mistake": "boom", "an answer that is cut": http.ErrAbortHandler, "nil": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "r-1")
				w.Header().Set("X-Of-The-Answer", "1")
				w.WriteHeader(200)
				panic(fault)
			})
			both(t, h, gateway.Options{}, get("/"), func(t *testing.T, a answer) {
				t.Helper()
				if a.Status != 500 || failure(t, a) != "internal" || a.Header.Get("X-Of-The-Answer") != "" || a.Header.Get("X-Request-Id") != "r-1" {
					t.Errorf("got %+v", a)
				}
			})
		})
	}
}

// TestPanicsAreLogged: but not those of a handler that cuts its answer on purpose.
func TestPanicsAreLogged(t *testing.T) {
	t.Parallel()
	for fault, want := range map[any]bool{"boom": true, http.ErrAbortHandler: false} {
		var log bytes.Buffer
		h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(fault) })
		opts := gateway.Options{Stage: "a", Log: slog.New(slog.NewJSONHandler(&log, nil))}
		modes()["buffered"](t, h, opts, get("/"))
		if got := strings.Contains(log.String(), `"panic":"boom"`) && strings.Contains(log.String(), "gateway_test.go"); got != want {
			t.Errorf("%v: logged %q", fault, log.String())
		}
	}
}

// TestCutAnswers: of an answer whose handler panics after the first byte, no part is taken for the whole.
func TestCutAnswers(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	})
	if a := modes()["buffered"](t, h, gateway.Options{}, get("/")); a.Status != 500 || failure(t, a) != "internal" {
		t.Errorf("buffered: got %+v", a)
	}
	if a := modes()["streamed"](t, h, gateway.Options{}, get("/")); a.Status != 200 || a.Body != "half" || a.Err == nil {
		t.Errorf("streamed: got %+v", a)
	}
}

// TestTooLarge: what Lambda would refuse is an error that says so.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		ok   bool
	}{
		"just fits":              {strings.Repeat("a", 6<<20-200), true},
		"too long":               {strings.Repeat("a", 6<<20), false},
		"escapes make it longer": {strings.Repeat("\x01", 1<<20), false},
		"so does base64":         {strings.Repeat("\xff", 5<<20), false},
		"HTML is not escaped":    {strings.Repeat("<", 5<<20), true},
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) })
		a := modes()["buffered"](t, h, gateway.Options{}, get("/"))
		if ok := a.Status == 200 && a.Body == tc.body; ok != tc.ok {
			t.Errorf("%s: got %d, %d bytes", name, a.Status, len(a.Body))
		}
		if !tc.ok && (failure(t, a) != "internal" || !strings.Contains(a.Body, "ask for less")) {
			t.Errorf("%s: got %s", name, a.Body)
		}
		if s := modes()["streamed"](t, h, gateway.Options{}, get("/")); s.Body != tc.body {
			t.Errorf("%s: streamed: got %d, %d bytes", name, s.Status, len(s.Body))
		}
	}
}

// TestSignedRequests: who has signed a request is known to the policy for it, and only from API Gateway.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := auth.IAM()(r)
		fmt.Fprint(w, string(who))
	})
	e := get("/")
	e.Headers = map[string]string{"X-GoLambdaProxy-ApiGw-Context": `{"identity":{"userArn":"arn:aws:iam::1:user/eve"}}`}
	both(t, h, gateway.Options{}, e, func(t *testing.T, a answer) {
		t.Helper()
		if a.Body != "" {
			t.Errorf("got %q", a.Body)
		}
	})
	e.RequestContext.Identity.UserArn = "arn:aws:iam::1:user/ann"
	both(t, h, gateway.Options{}, e, func(t *testing.T, a answer) {
		t.Helper()
		if a.Body != "iam:arn:aws:iam::1:user/ann" {
			t.Errorf("got %q", a.Body)
		}
	})
}

// TestContextsEndBeforeTheInvocation: a handler whose time is over can still say so.
func TestContextsEndBeforeTheInvocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		began := time.Now()
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(503)
		})
		a, err := gateway.Buffered(h, gateway.Options{})(ctx, get("/"))
		if took := time.Since(began); err != nil || a.StatusCode != 503 || took != 28*time.Second {
			t.Errorf("got %d, %v after %s", a.StatusCode, err, took)
		}
	})
}

// TestNothingOutlivesAStream: a handler ends when its answer is closed, and Close waits for it. The test would not end with a
// goroutine that is left over.
func TestNothingOutlivesAStream(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(w http.ResponseWriter, r *http.Request) error{
		"it writes": func(w http.ResponseWriter, _ *http.Request) error {
			for {
				if _, err := io.WriteString(w, "more"); err != nil {
					return err
				}
			}
		},
		"it waits": func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ended error
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				err := handle(w, r)
				time.Sleep(time.Minute) // what it tidies up
				ended = err
			})
			a, err := gateway.Streamed(h, gateway.Options{})(t.Context(), get("/"))
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil || ended == nil {
				t.Errorf("%s: closed with %v while it ran", name, err)
			}
		})
	}
}

// TestWritesEndWithTheInvocation: a write that nobody takes ends when the invocation does.
func TestWritesEndWithTheInvocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, "x")
			done <- err
		})
		a, err := gateway.Streamed(h, gateway.Options{})(ctx, get("/"))
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err == nil {
			t.Error("it was taken")
		}
		if _, err := io.ReadAll(a.Body); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the body ends with %v", err)
		}
		a.Close()
	})
}

// FuzzRequest: no event breaks the adapter. Handlers get a path below the stage that is validly escaped.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/session/a%2Fb", "api.example", "a", "b c", "{}", "203.0.113.9", false)
	f.Add("", "", "", "", "", "", "", true)
	f.Add("P OST", "//x/../%", "h:1/ ?", "%zz", "\x00", "=", "::1%lo", true)
	f.Add("GET", "?a#b\x7f\n", "[", "\n", "é", "YQ==", "x", true)
	f.Fuzz(func(t *testing.T, method, path, host, name, value, body, ip string, base64 bool) {
		e := events.APIGatewayProxyRequest{
			HTTPMethod: method, Path: path, Body: body, IsBase64Encoded: base64,
			MultiValueHeaders:               map[string][]string{"Host": {host}, name: {value}},
			MultiValueQueryStringParameters: map[string][]string{name: {value}},
			RequestContext:                  events.APIGatewayProxyRequestContext{DomainName: host, Identity: events.APIGatewayRequestIdentity{SourceIP: ip}},
		}
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.EscapedPath(), "/workshop/") || !strings.HasPrefix(r.URL.Path, "/workshop/") || r.URL.Query().Get(name) != value {
				t.Errorf("got %q, %q", r.URL.EscapedPath(), r.URL.Query())
			}
			w.Header().Set(name, value)
			fmt.Fprint(w, r.URL.Path)
		})
		for _, mode := range modes() {
			a := mode(t, h, gateway.Options{Stage: "workshop"}, e)
			if a.Status != 200 && a.Status != 400 || a.Err != nil {
				t.Errorf("got %+v", a)
			}
		}
	})
}
