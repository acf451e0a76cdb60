package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
)

// maker is an agent that has an empty store of artifacts, and entries is where that keeps them.
func maker() (agent *fakeAgent, entries *kv.Store) {
	agent, entries = newAgent("demo"), kv.New(memkv.New(), kv.Options{})
	agent.made = artifact.New(entries, blob.New(memblob.New()), artifact.Options{Agent: "demo", Clock: clock.Fixed(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))})
	return agent, entries
}

// tag records an artifact, of ann unless it says whose, and returns its id.
func (a *fakeAgent) tag(t testing.TB, in artifact.Tagged) string {
	t.Helper()
	if in.Owner == "" {
		in.Owner = "ann"
	}
	r, err := a.made.Tag(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func listedKeys(t testing.TB, a answer) []string {
	t.Helper()
	var body struct {
		OK        bool
		Artifacts []bdk.ArtifactRecord
	}
	if err := json.Unmarshal([]byte(a.raw), &body); err != nil || a.status != 200 || !body.OK || body.Artifacts == nil {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
	keys := []string{}
	for _, r := range body.Artifacts {
		keys = append(keys, r.Key)
	}
	return keys
}

func TestArtifactsAreListed(t *testing.T) {
	t.Parallel()
	agent, entries := maker()
	agent.made = artifact.New(entries, blob.New(memblob.New()), artifact.Options{Agent: "demo", Clock: new(ticking)})
	agent.tag(t, artifact.Tagged{Kind: "report", Key: "r1", SessionID: "ses_1"})
	agent.tag(t, artifact.Tagged{Kind: "link", Key: "l1", SessionID: "ses_1"})
	agent.tag(t, artifact.Tagged{Kind: "report", Key: "r2", SessionID: "ses_2"})
	agent.tag(t, artifact.Tagged{Kind: "report", Key: "b1", SessionID: "ses_3", Owner: "bob"})
	agent.tag(t, artifact.Tagged{Kind: "report", Key: "r1", SessionID: "ses_2"})
	c := newClient(t, httpapi.Options{}, agent)
	for _, tc := range []struct {
		query, caller string
		want          []string
	}{
		{"", "ann", []string{"r1", "r2", "l1"}},
		{"", "bob", []string{"b1"}},
		{"", "carl", []string{}},
		{"?kind=report", "ann", []string{"r1", "r2"}},
		{"?kind=chart", "ann", []string{}},
		{"?sessionId=ses_1", "ann", []string{"l1"}},
		{"?sessionId=ses_3", "ann", []string{}},
		{"?limit=1", "ann", []string{"r1"}},
		{"?limit=1000", "ann", []string{"r1", "r2", "l1"}},
		{"?sessionId=ses_2&kind=report&limit=1", "ann", []string{"r1"}},
	} {
		if d := cmp.Diff(tc.want, listedKeys(t, c.do("GET", "/demo/v1/artifacts"+tc.query, "", "X-Caller", tc.caller))); d != "" {
			t.Errorf("%s for %s (-want +got):\n%s", tc.query, tc.caller, d)
		}
	}
	for _, query := range []string{
		"limit=0", "limit=-1", "limit=1001", "limit=x", "limit=", "limit=1&limit=2", "kind=", "kind=Report", "kind=a%2fb", "kind=%00", "sessionId=", "sessionId=x",
		"sessionId=ses_%00", "session=ses_1", "cursor=x", "%zz",
	} {
		refused(t, c.do("GET", "/demo/v1/artifacts?"+query, ""), 400, "invalid_request")
	}
}

// ticking is a clock that is a second later each time it is read.
type ticking struct {
	clock.System

	n int64
}

func (c *ticking) Now() time.Time {
	c.n++
	return time.Unix(c.n, 0)
}

func TestListedFieldsOfArtifacts(t *testing.T) {
	t.Parallel()
	agent, _ := maker()
	id := agent.tag(t, artifact.Tagged{
		Kind: "report", Key: "w9", Title: "Week <9>", Data: json.RawMessage(`{"n":1.0}`), File: "w9.md", Content: []byte("# Nine"), SessionID: "ses_1",
	})
	want := `{"ok":true,"artifacts":[{"id":"` + id + `","kind":"report","key":"w9","title":"Week <9>","sessionId":"ses_1","owner":"ann","data":{"n":1.0},` +
		`"file":"w9.md","bytes":6,"createdAt":"2026-03-04T12:00:00Z","updatedAt":"2026-03-04T12:00:00Z"}]}` + "\n"
	if d := cmp.Diff(want, newClient(t, httpapi.Options{}, agent).do("GET", "/demo/v1/artifacts", "").raw); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDevListsTheArtifactsOfEveryPrincipalToCallersOnThisMachine(t *testing.T) {
	t.Parallel()
	agent, _ := maker()
	agent.tag(t, artifact.Tagged{Kind: "k", Key: "hers"})
	foreign := agent.tag(t, artifact.Tagged{Kind: "k", Key: "theirs", Owner: "webhook", File: "f"})
	for _, tc := range []struct {
		name string
		dev  bool
		peer string
		want int
	}{
		{"dev on loopback", true, "127.0.0.1:9", 2},
		{"dev from elsewhere", true, "10.0.0.1:9", 1},
		{"not dev", false, "127.0.0.1:9", 1},
	} {
		c := newClient(t, httpapi.Options{Dev: tc.dev}, agent)
		get := func(path string) answer {
			r := httptest.NewRequest("GET", path, http.NoBody)
			r.RemoteAddr, r.Host = tc.peer, "localhost:3000"
			r.Header.Set("X-Caller", "ann")
			return c.serve(r)
		}
		if got := listedKeys(t, get("/demo/v1/artifacts")); len(got) != tc.want {
			t.Errorf("%s: %v; want %d", tc.name, got, tc.want)
		}
		refused(t, get("/demo/v1/artifacts/"+foreign+"/content"), 403, "forbidden") // as the log of a session is
	}
}

func TestFilesOfArtifacts(t *testing.T) {
	t.Parallel()
	agent, entries := maker()
	for _, tc := range []struct{ file, kind, disposition string }{
		{"report.html", "text/html; charset=utf-8", `attachment; filename=report.html`},
		{"a b.json", "application/json", `attachment; filename="a b.json"`},
		{`say "hi".PNG`, "image/png", `attachment; filename="say \"hi\".PNG"`},
		{"größe 🌍.txt2", "application/octet-stream", `attachment; filename*=utf-8''gr%C3%B6%C3%9Fe%20%F0%9F%8C%8D.txt2`},
		{"none", "application/octet-stream", `attachment; filename=none`},
		{"a;filename=b.css", "text/css; charset=utf-8", `attachment; filename="a;filename=b.css"`},
		{"é\u2028x", "application/octet-stream", `attachment; filename*=utf-8''%C3%A9%E2%80%A8x`},
	} {
		content := "content of " + tc.file
		id := agent.tag(t, artifact.Tagged{Kind: "k", Key: tc.file, File: tc.file, Content: []byte(content)})
		path := "/demo/v1/artifacts/" + id + "/content"
		for _, method := range []string{"GET", "HEAD"} {
			a := newClient(t, httpapi.Options{}, agent).do(method, path, "")
			want := map[string]string{
				"Content-Type": tc.kind, "Content-Disposition": tc.disposition, "Etag": `"` + string(blob.RefOf([]byte(content))) + `"`,
				"X-Content-Type-Options": "nosniff", "Accept-Ranges": "bytes", "Content-Length": fmt.Sprint(len(content)), "Cache-Control": "no-store", "Last-Modified": "",
			}
			got := map[string]string{}
			for name := range want {
				got[name] = a.header.Get(name)
			}
			if d := cmp.Diff(want, got); d != "" || a.status != 200 || a.raw != map[string]string{"GET": content}[method] {
				t.Errorf("%s %q: got %d %q (-want +got):\n%s", method, tc.file, a.status, a.raw, d)
			}
			if _, params, err := mime.ParseMediaType(a.header.Get("Content-Disposition")); err != nil || params["filename"] != tc.file || len(params) != 1 {
				t.Errorf("%q is read as %q, error %v", tc.file, params, err)
			}
		}
	}
	evil := agent.tag(t, artifact.Tagged{Kind: "k", Key: "evil", File: "evil.txt"})
	e, err := entries.Get(t.Context(), "artifact/demo/"+evil)
	if err == nil {
		err = entries.Swap(t.Context(), e.Key, e.Version, bytes.ReplaceAll(e.Value, []byte("evil.txt"), []byte(`e\r\nSet-Cookie: a=b`)), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	a := newClient(t, httpapi.Options{}, agent).do("GET", "/demo/v1/artifacts/"+evil+"/content", "")
	if refused(t, a, 500, "internal"); a.header.Get("Content-Disposition") != "" {
		t.Errorf("a name in two lines: %q", a.header)
	}
}

func TestPartsOfFiles(t *testing.T) {
	t.Parallel()
	agent, _ := maker()
	id := agent.tag(t, artifact.Tagged{Kind: "k", Key: "x", File: "f.bin", Content: []byte("0123456789")})
	etag := `"` + string(blob.RefOf([]byte("0123456789"))) + `"`
	c := newClient(t, httpapi.Options{}, agent)
	path := "/demo/v1/artifacts/" + id + "/content"
	for name, tc := range map[string]struct {
		headers []string
		status  int
		body    string
		part    string // Content-Range
	}{
		"all":                 {nil, 200, "0123456789", ""},
		"the middle":          {[]string{"Range", "bytes=2-4"}, 206, "234", "bytes 2-4/10"},
		"the end":             {[]string{"Range", "bytes=-3"}, 206, "789", "bytes 7-9/10"},
		"more than there is":  {[]string{"Range", "bytes=5-99"}, 206, "56789", "bytes 5-9/10"},
		"of this file":        {[]string{"Range", "bytes=0-0", "If-Range", etag}, 206, "0", "bytes 0-0/10"},
		"of another file":     {[]string{"Range", "bytes=0-0", "If-Range", `"x"`}, 200, "0123456789", ""},
		"a file that is had":  {[]string{"If-None-Match", etag}, 304, "", ""},
		"another one is had":  {[]string{"If-None-Match", `"x"`}, 200, "0123456789", ""},
		"this file, or none":  {[]string{"If-Match", etag}, 200, "0123456789", ""},
		"a date says nothing": {[]string{"If-Modified-Since", "Wed, 04 Mar 2099 12:00:00 GMT"}, 200, "0123456789", ""},
	} {
		a := c.do("GET", path, "", tc.headers...)
		if a.status != tc.status || a.raw != tc.body || a.header.Get("Content-Range") != tc.part || a.header.Get("Etag") != etag {
			t.Errorf("%s: got %d %q, range %q, ETag %s", name, a.status, a.raw, a.header.Get("Content-Range"), a.header.Get("Etag"))
		}
	}
	for name, tc := range map[string]struct {
		status  int
		code    string
		headers []string
	}{
		"behind the end":    {416, "invalid_request", []string{"Range", "bytes=10-"}},
		"no range":          {416, "invalid_request", []string{"Range", "bytes=b-a"}},
		"not of that file":  {412, "conflict", []string{"If-Match", `"x"`}},
		"of that file only": {412, "conflict", []string{"If-Match", `"x"`, "Range", "bytes=0-1"}},
	} {
		a := c.do("GET", path, "", tc.headers...)
		refused(t, a, tc.status, tc.code)
		if strings.Count(a.raw, "\n") != 1 || a.header.Get("Content-Disposition") != "" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %q with headers %v", name, a.raw, a.header)
		}
	}
	a := c.do("GET", path, "", "Range", "bytes=0-1,8-9")
	_, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || a.status != 206 {
		t.Fatalf("two parts: got %d, error %v", a.status, err)
	}
	parts := multipart.NewReader(strings.NewReader(a.raw), params["boundary"])
	for _, want := range []string{"01", "89"} {
		p, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(p); err != nil || string(got) != want {
			t.Errorf("got the part %q, error %v; want %q", got, err, want)
		}
	}
}

func TestWhoMayHaveFilesOfArtifacts(t *testing.T) {
	t.Parallel()
	agent, _ := maker()
	id := agent.tag(t, artifact.Tagged{Kind: "k", Key: "x", File: "f", Content: []byte("secret")})
	bare := agent.tag(t, artifact.Tagged{Kind: "k", Key: "y"})
	c := newClient(t, httpapi.Options{}, agent, newAgent("none"))
	for _, tc := range []struct {
		path, caller string
		status       int
		code         string
	}{
		{"/demo/v1/artifacts/" + id + "/content", "bob", 403, "forbidden"},
		{"/demo/v1/artifacts/" + bare + "/content", "bob", 403, "forbidden"},
		{"/demo/v1/artifacts/" + bare + "/content", "ann", 404, "not_found"},
		{"/demo/v1/artifacts/art_" + strings.Repeat("a", 26) + "/content", "ann", 404, "not_found"},
		{"/demo/v1/artifacts/art_%2e%2e%2f/content", "ann", 404, "not_found"},
		{"/demo/v1/artifacts/" + id + "/content?download=1", "ann", 400, "invalid_request"},
		{"/demo/v1/artifacts/" + id, "ann", 404, "not_found"},
		{"/none/v1/artifacts/" + id + "/content", "ann", 404, "not_found"},
	} {
		a := c.do("GET", tc.path, "", "X-Caller", tc.caller)
		refused(t, a, tc.status, tc.code)
		if strings.Contains(a.raw, "secret") {
			t.Errorf("%s for %s: %s", tc.path, tc.caller, a.raw)
		}
	}
	if a := c.do("GET", "/none/v1/artifacts", ""); a.raw != `{"ok":true,"artifacts":[]}`+"\n" {
		t.Errorf("an agent without a store lists %s", a.raw)
	}
}

// lame is a driver that lists and gets nothing.
type lame struct{ kv.Driver }

func (lame) Get(context.Context, string) (kv.Entry, error) {
	return kv.Entry{}, errors.New("hunter2 is out of reach")
}

func (lame) List(context.Context, string, string, int, time.Time) ([]kv.Entry, error) {
	return nil, errors.New("hunter2 is out of reach")
}

func TestFaultsOfTheStoreOfArtifactsAreNotShown(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	agent.made = artifact.New(kv.New(lame{memkv.New()}, kv.Options{}), blob.New(memblob.New()), artifact.Options{Agent: "demo"})
	c := newClient(t, httpapi.Options{}, agent)
	for _, path := range []string{"/demo/v1/artifacts", "/demo/v1/artifacts/art_" + strings.Repeat("a", 26) + "/content"} {
		if message := refused(t, c.do("GET", path, ""), 500, "internal"); strings.Contains(message, "hunter2") {
			t.Errorf("%s: %s", path, message)
		}
	}
}

// timed counts how often the client is given more time.
type timed struct {
	*httptest.ResponseRecorder

	extended int
}

func (w *timed) SetWriteDeadline(time.Time) error {
	w.extended++
	return nil
}

func TestEachPartOfALargeFileHasItsOwnTime(t *testing.T) {
	t.Parallel()
	agent, _ := maker()
	id := agent.tag(t, artifact.Tagged{Kind: "k", Key: "x", File: "f.bin", Content: make([]byte, 1<<20)})
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("GET", "/demo/v1/artifacts/"+id+"/content", http.NoBody)
	r.Header.Set("X-Caller", "ann")
	newClient(t, httpapi.Options{}, agent).h.ServeHTTP(w, r)
	if w.Code != 200 || w.Body.Len() != 1<<20 || w.extended < 10 {
		t.Errorf("got %d with %d bytes, extended %d times", w.Code, w.Body.Len(), w.extended)
	}
}

func TestLargeFilesOverTheNetwork(t *testing.T) {
	t.Parallel()
	agent, _ := maker()
	content := bytes.Repeat([]byte("0123456789abcde\n"), 1<<19) // 8 MiB
	id := agent.tag(t, artifact.Tagged{Kind: "k", Key: "x", File: "f.bin", Content: content})
	s := httptest.NewServer(httpapi.New(asAgents([]*fakeAgent{agent}), httpapi.Options{Auth: byName}))
	defer s.Close()
	for _, part := range []string{"", "bytes=1-8388606"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/demo/v1/artifacts/"+id+"/content", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Caller": {"ann"}}
		want := content
		if part != "" {
			req.Header.Set("Range", part)
			want = content[1:8388607]
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err != nil || !bytes.Equal(got, want) || resp.ContentLength != int64(len(want)) {
			t.Errorf("%q: %d bytes of %d, error %v", part, len(got), resp.ContentLength, err)
		}
	}
}
