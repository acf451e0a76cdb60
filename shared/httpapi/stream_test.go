package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
)

// tape is the answer of a handler that still runs.
type tape struct {
	mu      sync.Mutex
	header  http.Header
	body    bytes.Buffer
	flushed int // bytes that the client has
}

func (w *tape) Header() http.Header { return w.header }

func (w *tape) WriteHeader(int) {}

func (w *tape) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.Write(b)
}

func (w *tape) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushed = w.body.Len()
}

// seen returns what the client has.
func (w *tape) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.String()[:w.flushed]
}

// open starts a stream in a synctest bubble and returns its answer and a channel that is closed when it has ended.
func open(ctx context.Context, c client, path string) (*tape, <-chan struct{}) {
	r := httptest.NewRequestWithContext(ctx, "GET", path, http.NoBody)
	r.Header.Set("X-Caller", "ann")
	w, done := &tape{header: http.Header{}}, make(chan struct{})
	go func() {
		defer close(done)
		c.h.ServeHTTP(w, r)
	}()
	synctest.Wait()
	return w, done
}

func ended(done <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestStreamReplaysThenFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := newAgent("demo")
		acc, w := agent.begin(t, "ann", session.Chat)
		ctx, cancel := context.WithCancel(t.Context())
		out, done := open(ctx, newClient(t, httpapi.Options{}, agent), "/demo/v1/session/"+acc.SessionID+"/stream")
		if got := indexes(eventLines(t, out.seen())); !slices.Equal(got, []int64{0, 1}) {
			t.Fatalf("the replay has %v", got)
		}
		if out.header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("content type %q", out.header.Get("Content-Type"))
		}
		for i := range 3 {
			add(t, w, event.MessageAppended{Text: "你好🌍"})
			synctest.Wait() // no time passes: the reader is woken, it does not poll
			if got := indexes(eventLines(t, out.seen())); len(got) != 3+i {
				t.Fatalf("after event %d the client has %v", 2+i, got)
			}
		}
		if ended(done) {
			t.Fatal("the stream ended")
		}
		cancel()
		if !ended(done) {
			t.Error("the stream outlives its client")
		}
	})
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := newAgent("demo")
		acc, w := agent.begin(t, "ann", session.Chat)
		ctx, cancel := context.WithCancel(t.Context())
		out, done := open(ctx, newClient(t, httpapi.Options{}, agent), "/demo/v1/session/"+acc.SessionID+"/stream?startIndex=2")
		beats := func(d time.Duration) string { time.Sleep(d); synctest.Wait(); return out.seen() }
		if got := beats(19 * time.Second); got != "" {
			t.Errorf("after 19 s: %q", got)
		}
		if got := beats(time.Second); got != "\n" {
			t.Errorf("after 20 s: %q; want an empty line", got)
		}
		if got := beats(20 * time.Second); got != "\n\n" {
			t.Errorf("after 40 s: %q", got)
		}
		time.Sleep(10 * time.Second)
		add(t, w, event.MessageAppended{Text: "x"})
		if got := beats(19 * time.Second); strings.Count(got, "\n") != 3 || !strings.HasSuffix(got, "}\n") {
			t.Errorf("19 s after an event: %q; want no heartbeat behind it", got)
		}
		if got := beats(time.Second); !strings.HasSuffix(got, "}\n\n") {
			t.Errorf("20 s after an event: %q", got)
		}
		cancel()
		<-done
	})
}

func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		opts  httpapi.Options
		mode  session.Mode
		act   func(*testing.T, *session.Writer) // nil: nothing happens
		close bool                              // the host closes then
		want  time.Duration                     // how long after that
	}{
		{name: "when too old", opts: httpapi.Options{MaxStream: 14 * time.Minute}, want: 14 * time.Minute},
		{name: "when idle, after the turn", opts: httpapi.Options{IdleClose: time.Minute}, act: func(t *testing.T, w *session.Writer) {
			t.Helper()
			time.Sleep(90 * time.Second) // the turn runs: no end yet
			finish(t, w, event.TurnCompleted{}, event.SessionWaiting{})
		}, want: time.Minute},
		{name: "when the host closes", close: true},
		{name: "with a task session", mode: session.Task, act: func(t *testing.T, w *session.Writer) {
			t.Helper()
			finish(t, w, event.TurnCompleted{}, event.SessionCompleted{})
		}},
		{name: "with a failed task session", mode: session.Task, act: func(t *testing.T, w *session.Writer) {
			t.Helper()
			finish(t, w, event.TurnFailed{}, event.SessionFailed{})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				closing := make(chan struct{})
				tc.opts.Closing = closing
				agent := newAgent("demo")
				acc, w := agent.begin(t, "ann", tc.mode)
				out, done := open(t.Context(), newClient(t, tc.opts, agent), "/demo/v1/session/"+acc.SessionID+"/stream")
				if tc.act != nil {
					tc.act(t, w)
				}
				if tc.close {
					close(closing)
				}
				if tc.want > 0 {
					time.Sleep(tc.want - time.Second)
					if ended(done) {
						t.Error("the stream ends early")
					}
					time.Sleep(time.Second)
				}
				if !ended(done) {
					t.Error("the stream does not end")
				}
				tail, err := agent.store.Tail(context.WithoutCancel(t.Context()), acc.SessionID)
				if got := eventLines(t, out.seen()); err != nil || int64(len(got)) != tail {
					t.Errorf("the client has %d of %d events, error %v", len(got), tail, err)
				}
			})
		})
	}
}

func TestAStreamOfAnEndedSessionEndsAfterItsReplay(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, w := agent.begin(t, "ann", session.Task)
	finish(t, w, event.TurnCompleted{}, event.SessionCompleted{})
	c := newClient(t, httpapi.Options{}, agent)
	if got := indexes(eventLines(t, c.do("GET", "/demo/v1/session/"+acc.SessionID+"/stream?startIndex=2", "").raw)); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("got %v", got)
	}
	if a := c.do("GET", "/demo/v1/session/"+acc.SessionID+"/stream?startIndex=4", ""); a.status != 200 || a.raw != "" {
		t.Errorf("behind the end: got %d %q", a.status, a.raw)
	}
}

func TestAClosingHostRefusesNewStreams(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	close(closed)
	synctest.Test(t, func(t *testing.T) {
		agent := newAgent("demo")
		acc, _ := agent.begin(t, "ann", session.Chat)
		a := newClient(t, httpapi.Options{Closing: closed}, agent).do("GET", "/demo/v1/session/"+acc.SessionID+"/stream", "")
		refused(t, a, 503, "unavailable")
	})
}

// TestReconnectAtEveryIndex: whatever a client has, it gets exactly the rest.
func TestReconnectAtEveryIndex(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, w := agent.begin(t, "ann", session.Chat)
	for range 60 {
		add(t, w, slices.Repeat([]event.Data{event.MessageAppended{Text: "x"}}, 10)...)
	}
	c := newClient(t, httpapi.Options{}, agent)
	whole := c.do("GET", "/demo/v1/session/"+acc.SessionID+"/events", "").raw
	for i, index := range indexes(eventLines(t, whole)) {
		if int64(i) != index {
			t.Fatalf("event %d has index %d", i, index)
		}
	}
	lines := slices.Collect(strings.Lines(whole))
	if len(lines) != 602 {
		t.Fatalf("the log has %d events", len(lines))
	}
	for i := range len(lines) + 2 {
		want := strings.Join(lines[min(i, len(lines)):], "")
		for _, path := range []string{"/stream?follow=false&startIndex=", "/events?startIndex="} {
			if got := c.do("GET", fmt.Sprintf("/demo/v1/session/%s%s%d", acc.SessionID, path, i), "").raw; got != want {
				t.Fatalf("%s%d: got %d bytes; want %d", path, i, len(got), len(want))
			}
		}
	}
	for n, want := range map[int]int{1: 1, 3: 3, 600: 600, 602: 602, 603: 602, 1 << 40: 602} {
		got := eventLines(t, c.do("GET", fmt.Sprintf("/demo/v1/session/%s/stream?follow=false&startIndex=-%d", acc.SessionID, n), "").raw)
		if len(got) != want || got[len(got)-1].Index != 601 {
			t.Errorf("the last %d: got %d events", n, len(got))
		}
	}
}

// TestLiveAndReplayAgree: a reader from the start, one that reconnects and a dump see the same.
func TestLiveAndReplayAgree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := newAgent("demo")
		acc, w := agent.begin(t, "ann", session.Chat)
		c := newClient(t, httpapi.Options{}, agent)
		ctx, cancel := context.WithCancel(t.Context())
		out, done := open(ctx, c, "/demo/v1/session/"+acc.SessionID+"/stream")
		for i := range 1000 {
			add(t, w, event.MessageAppended{Text: fmt.Sprint(i, "👩‍👩‍👧é\u2028")}, event.ActionResult{Output: []byte(`{"a":"<&>"}`)})
		}
		finish(t, w, event.TurnCompleted{}, event.SessionWaiting{})
		synctest.Wait()
		dump := c.do("GET", "/demo/v1/session/"+acc.SessionID+"/events", "").raw
		if live := out.seen(); live != dump {
			t.Errorf("live has %d bytes, the dump %d", len(live), len(dump))
		}
		cancel()
		<-done
		var doc struct {
			OK        bool          `json:"ok"`
			SessionID string        `json:"sessionId"`
			Events    []event.Event `json:"events"`
		}
		a := c.do("GET", "/demo/v1/session/"+acc.SessionID+"/events?format=json", "")
		if err := json.Unmarshal([]byte(a.raw), &doc); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(eventLines(t, dump), doc.Events); diff != "" || !doc.OK || doc.SessionID != acc.SessionID || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("the JSON form differs: %.300s", diff)
		}
		a = c.do("GET", "/demo/v1/session/"+acc.SessionID+"/events?format=json&startIndex=5000", "")
		if want := `{"ok":true,"sessionId":"` + acc.SessionID + `","events":[]}` + "\n"; a.raw != want {
			t.Errorf("no events: got %s", a.raw)
		}
	})
}

func TestStreamParameters(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	c := newClient(t, httpapi.Options{}, agent)
	for _, query := range []string{
		"stream?startIndex=x", "stream?startIndex=", "stream?startIndex=1.5", "stream?startIndex=0x1", "stream?startIndex=9223372036854775807",
		"stream?startIndex=-9223372036854775808", "stream?startIndex=99999999999999999999", "stream?startIndex=1&startIndex=2", "stream?startIndex=%00",
		"stream?follow=yes", "stream?follow=", "stream?follow=FALSE", "stream?follow=1", "stream?format=json", "stream?start_index=1", "stream?startindex=1",
		"events?format=xml", "events?format=", "events?follow=false", "events?startIndex=--1", "events?%", "events?a;b",
	} {
		a := c.do("GET", "/demo/v1/session/"+acc.SessionID+"/"+query, "")
		message := refused(t, a, 400, "invalid_request")
		_, params, _ := strings.Cut(query, "?")
		if name, _, ok := strings.Cut(params, "="); ok && !strings.Contains(message, name) {
			t.Errorf("%s: the message does not name the parameter: %s", query, message)
		}
	}
}

func TestHEADOfAStreamEndsAtOnce(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	for _, path := range []string{"stream", "events", "events?format=json", "cost"} {
		a := newClient(t, httpapi.Options{}, agent).do("HEAD", "/demo/v1/session/"+acc.SessionID+"/"+path, "")
		if a.status != 200 || a.header.Get("Content-Type") == "" {
			t.Errorf("%s: got %d, content type %q", path, a.status, a.header.Get("Content-Type"))
		}
	}
}

// serve runs a handler on loopback and returns its address and a channel that gets a value for each request that ended.
func serve(t *testing.T, h http.Handler) (string, <-chan struct{}) {
	t.Helper()
	done := make(chan struct{}, 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { done <- struct{}{} }()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), done
}

func dial(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestASlowReaderIsLeft: a client that does not read holds nothing for ever, and the turn goes on.
func TestASlowReaderIsLeft(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, w := agent.begin(t, "ann", session.Chat)
	for range 64 {
		add(t, w, event.ActionResult{Output: []byte(quoted(strings.Repeat("x", 1<<19)))})
	}
	addr, done := serve(t, newClient(t, httpapi.Options{WriteTimeout: 50 * time.Millisecond}, agent).h)
	dial(t, addr, "GET /demo/v1/session/"+acc.SessionID+"/stream HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\n\r\n")
	<-done
	add(t, w, event.MessageAppended{Text: "x"})
}

// TestAReaderThatGoesAwayChangesNothing: execution does not depend on who watches.
func TestAReaderThatGoesAwayChangesNothing(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, w := agent.begin(t, "ann", session.Chat)
	addr, done := serve(t, newClient(t, httpapi.Options{}, agent).h)
	conn := dial(t, addr, "GET /demo/v1/session/"+acc.SessionID+"/stream HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\n\r\n")
	lines := bufio.NewReader(conn)
	for line := ""; !strings.Contains(line, "message.received"); {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	finish(t, w, event.TurnCompleted{}, event.SessionWaiting{})
	if tail, err := agent.store.Tail(t.Context(), acc.SessionID); err != nil || tail != 4 {
		t.Errorf("the log has %d events, error %v; want 4", tail, err)
	}
}

// TestLargeBodiesAreAnswered: also a client that sends everything before it reads sees the answer.
func TestLargeBodiesAreAnswered(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	addr, _ := serve(t, newClient(t, httpapi.Options{}, agent).h)
	body := `{"message":"` + strings.Repeat("x", 10<<20) + `"}`
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	const typed = "X-Caller: ann\r\nContent-Type: application/json\r\n"
	for _, tc := range []struct {
		name, head, rest string
		want             int
	}{
		{"with a length", "POST /demo/v1/session HTTP/1.1\r\n" + typed, length, 413},
		{"in chunks", "POST /demo/v1/session HTTP/1.1\r\n" + typed, chunked, 413},
		{"as a follow-up", "POST /demo/v1/session/" + acc.SessionID + " HTTP/1.1\r\n" + typed, length, 413},
		{"to stop", "POST /demo/v1/session/" + acc.SessionID + "/stop HTTP/1.1\r\n" + typed, chunked, 413},
		{"from nobody", "POST /demo/v1/session HTTP/1.1\r\n", length, 401},
		{"to a foreign session", "POST /demo/v1/session/" + acc.SessionID + " HTTP/1.1\r\nX-Caller: bob\r\n", chunked, 403},
		{"to nowhere", "POST /nowhere HTTP/1.1\r\n", length, 404},
		{"with a wrong method", "PUT /demo/v1/session HTTP/1.1\r\n", length, 405},
		{"a client that asks first", "POST /demo/v1/session HTTP/1.1\r\nExpect: 100-continue\r\n" + typed, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, addr, tc.head+"Host: h\r\n"+tc.rest)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var envelope struct {
				OK    *bool  `json:"ok"`
				Error string `json:"error"`
			}
			if err := json.NewDecoder(res.Body).Decode(&envelope); err != nil || res.StatusCode != tc.want || envelope.OK == nil || *envelope.OK || envelope.Error == "" {
				t.Errorf("got %d, error %v, %+v; want %d", res.StatusCode, err, envelope, tc.want)
			}
		})
	}
}

// pipes is a listener whose connections stay in a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.closed); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestDeadlinesAreOfOneWrite: a connection lives longer than a write may take, in a stream and between requests.
func TestDeadlinesAreOfOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := newAgent("demo")
		acc, w := agent.begin(t, "ann", session.Chat)
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		server := http.Server{Handler: newClient(t, httpapi.Options{WriteTimeout: time.Second}, agent).h, ReadHeaderTimeout: time.Second}
		go func() { _ = server.Serve(p) }()
		defer server.Close()
		conn, far := net.Pipe()
		p.conns <- far
		in := bufio.NewReader(conn)
		send := func(s string) {
			if _, err := conn.Write([]byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		answer := func(want int) {
			t.Helper()
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != want {
				t.Fatalf("got %v; want %d", res, want)
			}
			var body bytes.Buffer
			if _, err := body.ReadFrom(res.Body); err != nil {
				t.Fatal(err)
			}
		}
		send("GET /v1/health HTTP/1.1\r\nHost: h\r\n\r\n")
		answer(200)
		time.Sleep(time.Hour)
		send("POST /demo/v1/session HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\nContent-Type: application/json\r\nContent-Length: 15\r\nExpect: 100-continue\r\n\r\n")
		answer(100)
		send(`{"message":"x"}`)
		answer(202)
		time.Sleep(time.Hour)
		send("GET /demo/v1/session/" + acc.SessionID + "/stream HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\n\r\n")
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body := bufio.NewReader(res.Body)
		beats := 0
		for beats < 100 {
			line, err := body.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "\n" {
				beats++
			}
		}
		finish(t, w, event.TurnCompleted{}, event.SessionWaiting{})
		if line, err := body.ReadString('\n'); err != nil || !strings.Contains(line, "turn.completed") {
			t.Errorf("after %d heartbeats: got %q, error %v", beats, line, err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestABodyThatBreaksOffIsRefused(t *testing.T) {
	t.Parallel()
	addr, _ := serve(t, newClient(t, httpapi.Options{}, newAgent("demo")).h)
	conn := dial(t, addr, "POST /demo/v1/session HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d; want 400", res.StatusCode)
	}
}

func TestManyClients(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	c := newClient(t, httpapi.Options{}, agent)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			who := fmt.Sprint("caller", i)
			for range 10 {
				a := c.do("POST", "/demo/v1/session", `{"message":"one"}`, "X-Caller", who)
				path := "/demo/v1/session/" + a.text("sessionId")
				b := c.do("POST", path, `{"message":"two","continuationToken":`+quoted(a.text("continuationToken"))+`}`, "X-Caller", who)
				s := c.do("GET", path+"/stream?follow=false", "", "X-Caller", who)
				if a.status != 202 || b.status != 202 || strings.Count(s.raw, "message.received") != 2 {
					t.Errorf("got %d, %d, %s", a.status, b.status, s.raw)
				}
			}
			if got := c.do("GET", "/demo/v1/sessions", "", "X-Caller", who).body["sessions"].([]any); len(got) != 10 {
				t.Errorf("%s has %d sessions; want 10", who, len(got))
			}
		})
	}
	wg.Wait()
}
