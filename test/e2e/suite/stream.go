package suite

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
)

// streamReplaysThenFollows: one reader sees what was and what comes, over two turns; what it saw is the log.
func streamReplaysThenFollows(t *testing.T, target Target) {
	s := target.Ann(t).Start("add it")
	s.Completed()
	var live []event.Event
	ends := 0
	s.follow(0, func(e event.Event) bool {
		live = append(live, e)
		if e.Type == event.TypeSessionWaiting {
			if ends++; ends == 1 {
				s.Say("nap")
			}
		}
		return ends < 2
	})
	Check(t, live)
	if diff := cmp.Diff(s.Events(""), live); diff != "" {
		t.Errorf("the log -, the stream +:\n%s", diff)
	}
}

// streamParameters: a reader chooses where to begin and whether to wait.
func streamParameters(t *testing.T, target Target) {
	s := target.Ann(t).Start("add it")
	log := s.Completed()
	lines := strings.SplitAfter(strings.TrimSpace(s.Do("GET", s.Path("/events"), "").Raw)+"\n", "\n")
	lines = lines[:len(lines)-1]
	n := len(log)
	for query, from := range map[string]int{
		"/stream?follow=false": 0, "/stream?follow=false&startIndex=3": 3, "/stream?follow=false&startIndex=-2": n - 2,
		"/stream?follow=false&startIndex=-9999": 0, "/stream?follow=false&startIndex=9999": n, "/events?startIndex=-1": n - 1, "/events?format=ndjson": 0,
	} {
		a := s.Do("GET", s.Path(query), "")
		if diff := cmp.Diff(strings.Join(lines[from:], ""), a.Raw); diff != "" || a.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%s: %s, want -, got +:\n%s", query, a.Header.Get("Content-Type"), diff)
		}
	}
	a := s.Do("GET", s.Path("/events?format=json"), "")
	var dump struct {
		SessionID string
		Events    []event.Event
	}
	if err := json.Unmarshal([]byte(a.Raw), &dump); err != nil || dump.SessionID != s.ID {
		t.Errorf("got %.300s, error %v", a.Raw, err)
	}
	if diff := cmp.Diff(log, dump.Events); diff != "" {
		t.Errorf("as JSON, want -, got +:\n%s", diff)
	}
}

// reconnectAtEveryIndex: a reader that comes back gets exactly the rest.
func reconnectAtEveryIndex(t *testing.T, target Target) {
	s := target.Ann(t).Start("note it")
	log := s.Completed()
	for i := range log {
		if diff := cmp.Diff(log[i:], s.Events("?startIndex="+encode(i))); diff != "" {
			t.Errorf("from %d, want -, got +:\n%s", i, diff)
		}
	}
}

// reconnectThroughAProxy: a proxy between cuts whatever is silent for a second, while a tool is silent for longer. The reader
// comes back with the last index it has plus one, and has every event once.
func reconnectThroughAProxy(t *testing.T, target Target) {
	if !strings.HasPrefix(target.URL, "http:") {
		t.Skip("skipped: the proxy cannot look into TLS")
	}
	proxy, cuts := idleProxy(t, target.address(t), time.Second)
	s := target.Ann(t).Start("slow down")
	reader := *s
	away := *s.Client
	away.base = strings.Replace(target.URL, target.address(t), proxy, 1)
	away.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reader.Client = &away
	var got []event.Event
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ended := false; !ended; {
		if err := ctx.Err(); err != nil {
			t.Fatalf("%v after %d events", err, len(got))
		}
		_ = reader.read(ctx, int64(len(got)), func(e event.Event) bool {
			got = append(got, e)
			ended = e.Type == event.TypeSessionWaiting
			return !ended
		})
	}
	if cuts.Load() < 2 {
		t.Errorf("the proxy cut %d connections; want at least 2", cuts.Load())
	}
	if diff := cmp.Diff(s.Completed(), got); diff != "" {
		t.Errorf("the log -, the reader +:\n%s", diff)
	}
}

// idleProxy passes connections on to an address and cuts those on which nothing comes back for too long.
func idleProxy(t *testing.T, address string, idle time.Duration) (proxy string, cuts *atomic.Int64) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	cuts = new(atomic.Int64)
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", address)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in) }()
				buf := make([]byte, 32<<10)
				for {
					_ = out.SetReadDeadline(time.Now().Add(idle))
					n, err := out.Read(buf)
					if _, failed := in.Write(buf[:n]); failed != nil {
						return
					}
					if err != nil {
						var timeout net.Error
						if errors.As(err, &timeout) && timeout.Timeout() {
							cuts.Add(1)
						}
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), cuts
}

// readerGoesAway: whether somebody reads does not matter to the turn.
func readerGoesAway(t *testing.T, target Target) {
	s := target.Ann(t).Start("nap")
	s.follow(0, func(e event.Event) bool { return e.Type != event.TypeActionsRequested })
	log := s.Completed()
	if r := Results(log); len(r) != 1 || r[0].IsError {
		t.Errorf("the results are %v", r)
	}
	s.Usable()
}

// wholeCharacters: a text that comes byte by byte is told in whole characters.
func wholeCharacters(t *testing.T, target Target) {
	const text = "你好🌍👩‍👩‍👧e\u0301"
	s := target.Ann(t).Start("emoji")
	log := s.Completed()
	deltas, whole := texts(log)
	if deltas != text || whole != text {
		t.Errorf("deltas %q, whole %q; want %q", deltas, whole, text)
	}
	for line := range strings.Lines(s.Do("GET", s.Path("/events"), "").Raw) {
		if !utf8.ValidString(line) || strings.ContainsRune(line, utf8.RuneError) {
			t.Errorf("%q has half a character", line)
		}
	}
	for _, d := range all[event.MessageAppended](log) {
		if strings.ContainsRune(d.Text, utf8.RuneError) {
			t.Errorf("%q has half a character", d.Text)
		}
	}
}
