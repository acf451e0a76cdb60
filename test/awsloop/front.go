package awsloop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// front answers for a stage of a REST API. The emulator's API Gateway answers through it; what AWS streams, which that does
// not, the front does by itself, with functions it runs as Lambda would.
type front struct {
	api, stage string
	gateway    *httputil.ReverseProxy
	streams    []stream
}

// stream is a resource of the API whose answers are streamed.
type stream struct {
	path     string // a template
	function *function
}

// buffered is how long API Gateway waits for an answer that is not streamed.
const buffered = 29 * time.Second

func newFront(tb testing.TB, l *Loop, api, stage string) *front {
	tb.Helper()
	f := &front{api: api, stage: stage}
	f.gateway = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { f.rewrite(r, l.url) },
		Transport:    &http.Transport{ResponseHeaderTimeout: buffered, DisableKeepAlives: true}, // it ends a connection in the middle of an answer
		ErrorHandler: f.failed,
	}
	functions := map[string]*function{}
	for path, uri := range l.streamed(tb, api) {
		_, arn, _ := strings.Cut(uri, "/functions/")
		arn, _, _ = strings.Cut(arn, "/")
		if functions[arn] == nil {
			functions[arn] = l.function(tb, arn)
		}
		f.streams = append(f.streams, stream{path, functions[arn]})
	}
	return f
}

// streamed returns the resources of an API whose answers are streamed, with the addresses of their integrations.
func (l *Loop) streamed(tb testing.TB, api string) map[string]string {
	tb.Helper()
	var resources struct {
		Items []struct {
			Path    string `json:"path"`
			Methods map[string]struct {
				Integration struct {
					URI string `json:"uri"`
				} `json:"methodIntegration"`
			} `json:"resourceMethods"`
		} `json:"item"`
	}
	l.get(tb, "/restapis/"+api+"/resources?embed=methods&limit=500", &resources)
	streams := map[string]string{}
	for _, r := range resources.Items {
		if uri := r.Methods["ANY"].Integration.URI; strings.HasSuffix(uri, "/response-streaming-invocations") {
			streams[r.Path] = uri
		}
	}
	return streams
}

// get reads JSON from the emulator.
func (l *Loop) get(tb testing.TB, path string, into any) {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), "GET", l.url+path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	res, err := (&http.Client{}).Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		tb.Fatalf("%s: %d, %v", path, res.StatusCode, err)
	}
}

func (f *front) close() {
	for _, s := range f.streams {
		s.function.close()
	}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/"+f.stage)
	if !ok || path != "" && path[0] != '/' {
		http.Error(w, `{"message":"Forbidden"}`, http.StatusForbidden) // no such stage
		return
	}
	for _, s := range f.streams {
		if params, ok := match(s.path, path); ok {
			f.stream(w, r, s, path, params)
			return
		}
	}
	f.gateway.ServeHTTP(w, r)
}

// match reports whether a path is one of a template's, and returns its variable segments.
func match(template, path string) (map[string]string, bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	params := map[string]string{}
	for i, segment := range want {
		switch {
		case len(got) != len(want):
			return nil, false
		case strings.HasPrefix(segment, "{") && got[i] != "":
			params[strings.Trim(segment, "{}")] = got[i]
		case segment != got[i]:
			return nil, false
		}
	}
	return params, true
}

// rewrite sends a request on to the emulator. Escapes are escaped once more: it undoes one more than API Gateway does.
func (f *front) rewrite(r *httputil.ProxyRequest, emulator string) {
	path := strings.TrimPrefix(r.In.URL.EscapedPath(), "/"+f.stage)
	target, err := url.Parse(emulator)
	if err != nil {
		return // it was parsed before
	}
	target.Path = "/restapis/" + f.api + "/" + f.stage + "/_user_request_" + path // its escapes are escaped when it is written
	target.RawQuery = r.In.URL.RawQuery
	r.Out.URL, r.Out.Host = target, target.Host
	r.SetXForwarded()
}

func (f *front) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		http.Error(w, `{"message":"Endpoint request timed out: `+err.Error()+`"}`, http.StatusGatewayTimeout)
	}
}

// stream answers as an integration with the response transfer mode STREAM does.
func (f *front) stream(w http.ResponseWriter, r *http.Request, s stream, path string, params map[string]string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	event, err := json.Marshal(f.event(r, s.path, path, params, string(body)))
	if err == nil {
		err = s.function.invoke(event, func(answer io.Reader) error { return relay(w, answer) })
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the answer is cut off where it was
	}
}

func (f *front) event(r *http.Request, resource, path string, params map[string]string, body string) events.APIGatewayProxyRequest {
	headers := r.Header.Clone()
	headers.Set("Host", r.Host)
	query := parse(r.URL.RawQuery)
	id := fmt.Sprintf("%x", time.Now().UnixNano())
	return events.APIGatewayProxyRequest{
		Resource: resource, Path: path, HTTPMethod: r.Method, Headers: last(headers), MultiValueHeaders: headers, Body: body,
		QueryStringParameters: last(query), MultiValueQueryStringParameters: query, PathParameters: params,
		RequestContext: events.APIGatewayProxyRequestContext{
			AccountID: account, APIID: f.api, Stage: f.stage, HTTPMethod: r.Method, Protocol: r.Proto, RequestID: id, ExtendedRequestID: id,
			Path: "/" + f.stage + path, ResourcePath: resource, Identity: events.APIGatewayRequestIdentity{SourceIP: "127.0.0.1", UserAgent: r.UserAgent()},
		},
	}
}

// parse returns the parameters of a query. A broken escape stays as it is, for the function to judge.
func parse(raw string) map[string][]string {
	query := map[string][]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescape(name), unescape(value)
		query[name] = append(query[name], value)
	}
	return query
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// last returns the last value of each.
func last(values map[string][]string) map[string]string {
	single := make(map[string]string, len(values))
	for name, all := range values {
		single[name] = all[len(all)-1]
	}
	return single
}

// relay passes an answer on as it comes. A client that has left does not stop it: on AWS the function goes on too.
func relay(w http.ResponseWriter, answer io.Reader) error {
	head, rest, ok := prelude(answer)
	if !ok {
		http.Error(w, `{"message":"Internal server error"}`, http.StatusBadGateway)
		return nil
	}
	for name, value := range head.Headers {
		w.Header().Set(name, value)
	}
	for name, values := range head.MultiValueHeaders {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	w.WriteHeader(head.StatusCode)
	out, gone := http.NewResponseController(w), false
	buf := make([]byte, 64<<10)
	for {
		n, err := rest.Read(buf)
		if n > 0 && !gone {
			_, failed := w.Write(buf[:n])
			gone = failed != nil || out.Flush() != nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// metadata is what a streamed answer begins with.
type metadata struct {
	StatusCode        int                 `json:"statusCode"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
}

// prelude reads the metadata and the eight NUL bytes behind it, and reports whether they were there.
func prelude(answer io.Reader) (head metadata, rest io.Reader, ok bool) {
	dec := json.NewDecoder(answer)
	if dec.Decode(&head) != nil {
		return head, nil, false
	}
	rest = io.MultiReader(dec.Buffered(), answer)
	nul := make([]byte, 8)
	if _, err := io.ReadFull(rest, nul); err != nil || string(nul) != strings.Repeat("\x00", 8) {
		return head, nil, false
	}
	if head.StatusCode == 0 {
		head.StatusCode = http.StatusOK
	}
	return head, rest, true
}
