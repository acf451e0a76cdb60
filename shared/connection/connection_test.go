package connection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/connection"
)

// manual is a clock that a test moves.
type manual struct {
	mu  sync.Mutex
	now time.Time
}

func (c *manual) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manual) After(time.Duration) (<-chan time.Time, func() bool) {
	return make(chan time.Time), func() bool { return true }
}

func (c *manual) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// remote is a server whose faults a test chooses.
type remote struct {
	*httptest.Server

	mcp   *mcp.Server
	ran   atomic.Int64                                                          // calls of the tools add and look
	fault atomic.Pointer[func(http.ResponseWriter, *http.Request, string) bool] // answers a request, if it returns true
	seen  atomic.Pointer[http.Header]                                           // of the last request
}

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

// newRemote starts a server with the tools add, which may change something, and look, which says that it does not.
func newRemote(t *testing.T, stateless bool) *remote {
	t.Helper()
	r := &remote{mcp: mcp.NewServer(&mcp.Implementation{Name: "remote"}, nil)}
	count := func(_ context.Context, _ *mcp.CallToolRequest, in pair) (*mcp.CallToolResult, any, error) {
		r.ran.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(in.A + in.B)}}}, nil, nil
	}
	mcp.AddTool(r.mcp, &mcp.Tool{Name: "add", Description: "Adds."}, count)
	mcp.AddTool(r.mcp, &mcp.Tool{Name: "look", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, count)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return r.mcp }, &mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: true})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		header := req.Header.Clone()
		r.seen.Store(&header)
		if fault := r.fault.Load(); fault != nil && (*fault)(w, req, req.Header.Get("Mcp-Session-Id")) {
			return
		}
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// breaks has the server answer requests otherwise, as long as f returns true.
func (r *remote) breaks(f func(w http.ResponseWriter, req *http.Request, session string) bool) {
	r.fault.Store(&f)
}

func (r *remote) works() { r.fault.Store(nil) }

// calls reports whether a request is a call of a tool.
func calls(req *http.Request) bool {
	var in struct {
		Method string `json:"method"`
	}
	raw := new(strings.Builder)
	body := req.Body
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		raw.Write(buf[:n])
		if err != nil {
			break
		}
	}
	req.Body = readCloser{strings.NewReader(raw.String())}
	return json.Unmarshal([]byte(raw.String()), &in) == nil && in.Method == "tools/call"
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func open(t *testing.T, opts connection.Options, connections ...bdk.NamedConnection) *connection.Set {
	t.Helper()
	if opts.Clock == nil {
		opts.Clock = &manual{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	s, err := connection.New(bdk.Project{Slug: "me", Connections: connections}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func named(name string, c bdk.Connection) bdk.NamedConnection {
	return bdk.NamedConnection{Name: name, Source: "bot/mcp-connections/" + name + ".go", Connection: c}
}

var ann = bdk.SessionInfo{ID: "ses_1", Agent: "me", Owner: "ann"}

func names(tools []bdk.NamedTool) []string {
	all := []string{}
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return all
}

// run runs a tool as a turn does, and returns what the model reads.
func run(t *testing.T, s *connection.Set, name, args string) (string, error) {
	t.Helper()
	tool, ok := s.Find(name)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	out, err := tool.Tool.Run(t.Context(), &bdk.Call{ID: "call_1", Session: ann}, json.RawMessage(args))
	if err != nil {
		return "", err
	}
	return out.(bdk.Output).Content[0].Text, nil
}

func TestTools(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	s := open(t, connection.Options{}, named("calc", bdk.Connection{URL: r.URL, AdvertiseTools: true, Description: "Sums."}), named("quiet", bdk.Connection{URL: r.URL}))
	tools := s.Tools(t.Context(), ann)
	if diff := cmp.Diff([]string{"calc__add", "calc__look"}, names(tools)); diff != "" {
		t.Fatalf("want -, got +:\n%s", diff)
	}
	spec := tools[0].Tool.Spec()
	if spec.Effect != bdk.Write || !strings.HasPrefix(spec.Description, "A tool of the connection calc. Sums. The server describes it so") || !strings.HasSuffix(spec.Description, "Adds.") {
		t.Errorf("add: %v %q", spec.Effect, spec.Description)
	}
	if tools[1].Tool.Spec().Effect != bdk.Write {
		t.Error("the server is believed that look changes nothing")
	}
	if got, err := run(t, s, "calc__add", `{"a":2,"b":3}`); err != nil || got != "5" {
		t.Errorf("2 + 3 = %q, %v", got, err)
	}
	if _, ok := s.Find("quiet__add"); ok {
		t.Error("the model can call what it is not offered")
	}
	if _, err := run(t, s, "calc__nothing", `{}`); err == nil || !strings.Contains(err.Error(), "has no tool") {
		t.Errorf("a tool that is not there: %v", err)
	}
}

func TestFiltersAndWhatIsKnown(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	for name, tc := range map[string]struct {
		def  bdk.Connection
		want map[string]bdk.EffectKind
	}{
		"allowed":  {bdk.Connection{Allow: []string{"a*"}}, map[string]bdk.EffectKind{"c__add": bdk.Write}},
		"denied":   {bdk.Connection{Deny: []string{"add"}}, map[string]bdk.EffectKind{"c__look": bdk.Write}},
		"trusted":  {bdk.Connection{TrustHints: true}, map[string]bdk.EffectKind{"c__add": bdk.Write, "c__look": bdk.Read}},
		"known":    {bdk.Connection{Reads: []string{"add"}}, map[string]bdk.EffectKind{"c__add": bdk.Read, "c__look": bdk.Write}},
		"approved": {bdk.Connection{NeedsApproval: bdk.Always, Reads: []string{"look"}}, map[string]bdk.EffectKind{"c__add": bdk.Write, "c__look": bdk.Read}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.def.URL, tc.def.AdvertiseTools = r.URL, true
			s := open(t, connection.Options{}, named("c", tc.def))
			got := map[string]bdk.EffectKind{}
			for _, tool := range s.Tools(t.Context(), ann) {
				got[tool.Name] = tool.Tool.EffectOf(json.RawMessage(`{}`))
				asks := tool.Tool.NeedsApproval(json.RawMessage(`{}`))
				if want := tc.def.NeedsApproval != nil && got[tool.Name] == bdk.Write; asks != want {
					t.Errorf("%s needs approval: %v", tool.Name, asks)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestDownAndUpAgain: a server that is down when it is needed first is tried again, more and more seldom, and tells its tools once it is up.
func TestDownAndUpAgain(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	var tries atomic.Int64
	r.breaks(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		tries.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	c := &manual{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := open(t, connection.Options{Clock: c}, named("calc", bdk.Connection{URL: r.URL, AdvertiseTools: true}))
	if got := s.Tools(t.Context(), ann); len(got) != 0 {
		t.Fatalf("got %v", names(got))
	}
	faults := s.Faults()
	if len(faults) != 1 || faults[0].Name != "calc" || !strings.Contains(faults[0].Message, "Service Unavailable") {
		t.Fatalf("faults: %v", faults)
	}
	tried := tries.Load()
	s.Tools(t.Context(), ann)
	if _, err := run(t, s, "calc__add", `{}`); err == nil || !strings.Contains(err.Error(), "the call was not made") {
		t.Errorf("a call: %v", err)
	}
	if now := tries.Load(); now != tried {
		t.Errorf("%d requests within the pause", now-tried)
	}
	c.move(1100 * time.Millisecond)
	s.Tools(t.Context(), ann)
	if tries.Load() == tried {
		t.Error("not tried after a second")
	}
	tried = tries.Load()
	c.move(1100 * time.Millisecond)
	if s.Tools(t.Context(), ann); tries.Load() != tried {
		t.Error("the pause does not grow")
	}
	r.works()
	c.move(time.Minute)
	if got := s.Tools(t.Context(), ann); len(got) != 2 || len(s.Faults()) != 0 {
		t.Errorf("afterwards: %v, faults %v", names(got), s.Faults())
	}
}

// TestFaultsOfCalls: which calls are made again after which fault.
func TestFaultsOfCalls(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { http.Error(w, body, code) }
	}
	for name, tc := range map[string]struct {
		fault       func(http.ResponseWriter)
		reads       bool
		works       bool
		wantUnknown bool
	}{
		"a read and 503":                 {fault: status(503, "busy"), reads: true, works: true},
		"a write and 503":                {fault: status(503, "busy"), wantUnknown: true},
		"a read and a cut":               {fault: cut, reads: true, works: true},
		"a write and a cut":              {fault: cut, wantUnknown: true},
		"a write, the session is gone":   {fault: status(404, "session not found"), works: true},
		"a write, no such session":       {fault: status(400, "Bad Request: No valid session ID provided"), works: true},
		"a write that is refused":        {fault: status(401, "who are you"), works: true},
		"a write, no JSON":               {fault: func(w http.ResponseWriter) { _, _ = w.Write([]byte("hello")) }, wantUnknown: true},
		"a read, a page instead of JSON": {fault: status(500, "<html>"), reads: true, works: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, false)
			s := open(t, connection.Options{}, named("calc", bdk.Connection{URL: r.URL, AdvertiseTools: true, TrustHints: true}))
			s.Tools(t.Context(), ann)
			var once atomic.Bool
			r.breaks(func(w http.ResponseWriter, req *http.Request, _ string) bool {
				if !calls(req) || once.Swap(true) {
					return false
				}
				tc.fault(w)
				return true
			})
			tool := map[bool]string{true: "calc__look", false: "calc__add"}[tc.reads]
			got, err := run(t, s, tool, `{"a":2,"b":3}`)
			if tc.works != (err == nil) || tc.works && got != "5" {
				t.Errorf("got %q, %v", got, err)
			}
			if unknown := err != nil && strings.Contains(err.Error(), "outcome unknown"); unknown != tc.wantUnknown {
				t.Errorf("the outcome is said to be unknown: %v (%v)", unknown, err)
			}
			if ran := r.ran.Load(); tc.works != (ran == 1) {
				t.Errorf("the tool ran %d times", ran)
			}
			if again, err := run(t, s, tool, `{"a":1,"b":1}`); err != nil || again != "2" {
				t.Errorf("the next call: %q, %v", again, err)
			}
			if got := s.Tools(t.Context(), ann); len(got) != 2 {
				t.Errorf("the next turn has %v, faults %v", names(got), s.Faults())
			}
		})
	}
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// TestListFaults: a list that fails once on a session that was good is asked for again.
func TestListFaults(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"503": 503, "no such session": 400, "the session is gone": 404} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, false)
			c := &manual{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			s := open(t, connection.Options{Clock: c}, named("calc", bdk.Connection{URL: r.URL, AdvertiseTools: true}))
			s.Tools(t.Context(), ann)
			c.move(time.Minute)
			var once atomic.Bool
			r.breaks(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
				if once.Swap(true) {
					return false
				}
				http.Error(w, "session", code)
				return true
			})
			if got := s.Tools(t.Context(), ann); len(got) != 2 {
				t.Errorf("got %v, faults %v", names(got), s.Faults())
			}
		})
	}
}

func TestListChanges(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	c := &manual{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := open(t, connection.Options{Clock: c}, named("calc", bdk.Connection{URL: r.URL, AdvertiseTools: true}))
	s.Tools(t.Context(), ann)
	r.mcp.RemoveTools("look")
	c.move(11 * time.Second)
	if diff := cmp.Diff([]string{"calc__add"}, names(s.Tools(t.Context(), ann))); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	var token atomic.Pointer[string]
	set := func(s string) { token.Store(&s) }
	set("")
	c := &manual{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := open(t, connection.Options{Clock: c, Lookup: func(_ context.Context, name string) (string, error) {
		return map[string]string{"TOKEN": *token.Load(), "HOST": strings.TrimPrefix(r.URL, "http://")}[name], nil
	}}, named("calc", bdk.Connection{URL: "http://${HOST}/mcp", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}, AdvertiseTools: true}))
	if got := s.Tools(t.Context(), ann); len(got) != 0 || !strings.Contains(s.Faults()[0].Message, "the variable TOKEN is not set") {
		t.Fatalf("got %v, faults %v", names(got), s.Faults())
	}
	set("very-secret")
	c.move(time.Minute)
	if got := s.Tools(t.Context(), ann); len(got) != 2 || r.seen.Load().Get("Authorization") != "Bearer very-secret" {
		t.Fatalf("got %v with %v, faults %v", names(got), *r.seen.Load(), s.Faults())
	}
	r.breaks(func(w http.ResponseWriter, req *http.Request, _ string) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"%s is not known"}}`, req.Header.Get("Authorization"))
		return true
	})
	c.move(time.Minute)
	if s.Tools(t.Context(), ann); len(s.Faults()) != 1 || strings.Contains(s.Faults()[0].Message, "very-secret") {
		t.Errorf("faults: %v", s.Faults())
	}
}

// TestHeadersStayHere: a server that sends the client elsewhere does not send the headers there.
func TestHeadersStayHere(t *testing.T) {
	t.Parallel()
	var other atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	t.Cleanup(elsewhere.Close)
	r := newRemote(t, true)
	r.breaks(func(w http.ResponseWriter, req *http.Request, _ string) bool {
		http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
		return true
	})
	s := open(t, connection.Options{}, named("calc", bdk.Connection{URL: r.URL, Headers: map[string]string{"X-Key": "secret"}, AdvertiseTools: true}))
	if got := s.Tools(t.Context(), ann); len(got) != 0 || len(s.Faults()) != 1 || other.Load() != 0 {
		t.Errorf("got %v, faults %v, %d requests elsewhere", names(got), s.Faults(), other.Load())
	}
}

// TestAuth: each session reaches the server with headers of its own, and has the tools that it gets for them.
func TestAuth(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	r.breaks(func(w http.ResponseWriter, req *http.Request, _ string) bool {
		if req.Header.Get("X-Tenant") == "eve" {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	s := open(t, connection.Options{}, named("calc", bdk.Connection{URL: r.URL, AdvertiseTools: true, Auth: func(_ context.Context, info bdk.SessionInfo) (map[string]string, error) {
		switch info.Owner {
		case "nobody":
			return nil, errors.New("no token for nobody")
		case "panic":
			panic("oh")
		}
		return map[string]string{"X-Tenant": info.Owner}, nil
	}}))
	for owner, want := range map[string]int{"ann": 2, "eve": 0, "nobody": 0, "panic": 0, "bob": 2} {
		if got := s.Tools(t.Context(), bdk.SessionInfo{Owner: owner}); len(got) != want {
			t.Errorf("%s has %v", owner, names(got))
		}
	}
	if r.seen.Load().Get("X-Tenant") == "" {
		t.Error("no header was sent")
	}
	for i := range 100 { // more than are kept open
		if got := s.Tools(t.Context(), bdk.SessionInfo{Owner: fmt.Sprint("tenant-", i)}); len(got) != 2 {
			t.Fatalf("tenant %d has %v", i, names(got))
		}
	}
}

// TestStrangers: what servers say about their tools is cleaned, bounded or left out.
func TestStrangers(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	r.mcp.RemoveTools("add", "look")
	add := func(name, description string, schema any) {
		r.mcp.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
		})
	}
	object := json.RawMessage(`{"type":"object"}`)
	add("hidden", "a\u202eb\u200bc\U000e0041d\u0007e\ufe0f", json.RawMessage(`{"type":"object","properties":{"x":{"type":"string","description":"ig\u200bnore"}}}`))
	add("long", strings.Repeat("x", 10_000), object)
	add("git.status", "", object)
	add("git/status", "", object)
	add(strings.Repeat("n", 100), "", object)
	add("huge", "", json.RawMessage(`{"type":"object","description":"`+strings.Repeat("y", 70_000)+`"}`))
	add("bad", "", json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#/nowhere"}}}`))
	s := open(t, connection.Options{}, named("c", bdk.Connection{URL: r.URL, AdvertiseTools: true}))
	got := map[string]bdk.NamedTool{}
	for _, tool := range s.Tools(t.Context(), ann) {
		got[tool.Name] = tool
		if len(tool.Name) > 64 || strings.Trim(tool.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("a name: %q", tool.Name)
		}
		if d := tool.Tool.Spec().Description; len(d) > 2200 {
			t.Errorf("%s has a description of %d bytes", tool.Name, len(d))
		}
	}
	if d := got["c__hidden"].Tool.Spec().Description; !strings.HasSuffix(d, ": abcde") || !strings.Contains(string(got["c__hidden"].Tool.InputSchema()), `"ignore"`) {
		t.Errorf("hidden: %q %s", d, got["c__hidden"].Tool.InputSchema())
	}
	var notes []string
	for _, f := range s.Faults() {
		notes = append(notes, f.Message)
	}
	all := strings.Join(notes, "\n")
	for _, name := range []string{"git/status", "huge", "bad"} {
		if !strings.Contains(all, `"`+name+`" is left out`) {
			t.Errorf("nothing is said about %s:\n%s", name, all)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %d tools", len(got))
	}
	if out, err := run(t, s, "c__git_status", `{}`); err != nil || out != "git.status" {
		t.Errorf("git_status is %q, %v", out, err)
	}
	for name := range got {
		if strings.HasPrefix(name, "c__nnn") {
			if out, err := run(t, s, name, `{}`); err != nil || len(out) != 100 {
				t.Errorf("%s is %q, %v", name, out, err)
			}
		}
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	r := newRemote(t, true)
	def := bdk.Connection{URL: r.URL, Reads: []string{"look"}, Deny: []string{"nothing"}}
	s, err := connection.New(bdk.Project{Slug: "me", HostConnections: []bdk.NamedConnection{named("calc", def)}}, connection.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if got := s.Tools(t.Context(), ann); len(got) != 0 {
		t.Errorf("the model is offered %v", names(got))
	}
	tools, err := s.For(ann).Tools(t.Context(), "calc")
	if err != nil || len(tools) != 2 || tools[0].Reads || !tools[1].Reads {
		t.Errorf("got %+v, %v", tools, err)
	}
	out, err := s.For(ann).Call(t.Context(), "calc", "add", pair{1, 2})
	if err != nil || out.Content[0].Text != "3" {
		t.Errorf("1 + 2 = %+v, %v", out, err)
	}
	if _, err := s.For(ann).Call(t.Context(), "calc", "add", []int{1}); err == nil {
		t.Error("a list was taken for arguments")
	}
	if _, err := s.For(ann).Call(t.Context(), "none", "add", nil); !errors.Is(err, bdk.ErrNotFound) {
		t.Errorf("no such connection: %v", err)
	}
	if _, err := s.For(ann).Call(t.Context(), "calc", "none", nil); !errors.Is(err, bdk.ErrNotFound) {
		t.Errorf("no such tool: %v", err)
	}
	dry := ann
	dry.DryRun = true
	if _, err := s.For(dry).Call(t.Context(), "calc", "add", pair{1, 2}); !errors.Is(err, bdk.ErrDryRun) {
		t.Errorf("a write in a dry run: %v", err)
	}
	if _, err := s.For(dry).Call(t.Context(), "calc", "look", pair{1, 2}); err != nil {
		t.Errorf("a read in a dry run: %v", err)
	}
	r.Close()
	if _, err := s.For(ann).Call(t.Context(), "calc", "add", pair{1, 2}); err == nil || len(s.Faults()) != 0 {
		t.Errorf("a server that is gone: %v; shown to everybody: %v", err, s.Faults())
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for want, def := range map[string]bdk.Connection{
		"this host runs no programs":          {Command: "true"},
		"set the variable BDK_AGENT_CODE_RE_": {Agent: "code-re_"},
		"the URL is none":                     {URL: "${HOST}"},
		"cannot be used: opening it":          {URL: "http://127.0.0.1:1/mcp"},
	} {
		def.AdvertiseTools = true
		s := open(t, connection.Options{NoCommands: true, Lookup: func(_ context.Context, name string) (string, error) {
			return map[string]string{"HOST": "nowhere"}[name], nil
		}}, named("c", def))
		s.Tools(t.Context(), ann)
		if f := s.Faults(); len(f) != 1 || !strings.Contains(f[0].Message, want) {
			t.Errorf("want %q, got %v", want, f)
		}
	}
	s := open(t, connection.Options{}, named("c", bdk.Connection{Command: "no-such-program-here", AdvertiseTools: true}))
	s.Tools(t.Context(), ann)
	if f := s.Faults(); len(f) != 1 || !strings.Contains(f[0].Message, "not installed") {
		t.Errorf("got %v", f)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]bdk.NamedConnection{
		"connected to itself":           {named("c", bdk.Connection{Agent: "me"})},
		"leads nowhere":                 {named("c", bdk.Connection{})},
		"a connection of the same name": {named("c", bdk.Connection{Agent: "x"}), named("c", bdk.Connection{Agent: "y"})},
	} {
		if _, err := connection.New(bdk.Project{Slug: "me", Connections: all}, connection.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestManyAtOnce: turns that begin together open a connection once, and share it.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRemote(t, false)
	s := open(t, connection.Options{}, named("calc", bdk.Connection{URL: r.URL, AdvertiseTools: true}))
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if got := s.Tools(t.Context(), ann); len(got) != 2 {
				t.Errorf("got %v", names(got))
			}
			if got, err := run(t, s, "calc__add", `{"a":1,"b":2}`); err != nil || got != "3" {
				t.Errorf("1 + 2 = %q, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := len(slices.Collect(r.mcp.Sessions())); n != 1 {
		t.Errorf("%d sessions are open", n)
	}
}
