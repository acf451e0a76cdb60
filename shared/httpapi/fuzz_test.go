package httpapi_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
)

// sane checks what holds for every answer to every request.
func sane(t *testing.T, a answer) {
	t.Helper()
	if a.status >= 500 || a.status >= 300 && a.status < 400 {
		t.Errorf("got %d %.300s", a.status, a.raw)
	}
	if a.status >= 400 && (a.body["ok"] != false || a.text("error") == "" || a.text("message") == "") {
		t.Errorf("%d without the envelope: %.300s", a.status, a.raw)
	}
}

func FuzzBodies(f *testing.F) {
	for _, body := range badBodies() {
		if len(body) < 10_000 {
			f.Add(body)
		}
	}
	f.Add(`{"message":"x","title":"t","dryRun":false,"asOf":"2026-01-31T09:00:00+02:00","workspaceFiles":{"a/b":"c","d":"\ud83c\udf0d"},"purpose":"chat"}`)
	f.Add(`{"continuationToken":"http:x","message":"y"}`)
	f.Add(`{"turnId":"turn_x"}`)
	f.Add(`{"decision":"approve","note":"fine"}`)
	f.Add(`{"input":{"prUrl":"x"},"sessionId":"ses_x"}`)
	f.Add(`{"input":[1e999],"continuationToken":"a:b"}`)
	agent := workshop()
	blobs := blob.New(memblob.New())
	acc, _ := agent.begin(f, "ann", session.Chat)
	path := "/demo/v1/session/" + acc.SessionID
	f.Fuzz(func(t *testing.T, body string) {
		c := newClient(t, httpapi.Options{Blobs: blobs}, agent)
		for _, target := range []string{"/demo/v1/session", path, path + "/stop", path + "/approvals/call_1", "/demo/v1/tools/look", "/demo/v1/tools/echo"} {
			r := httptest.NewRequest("POST", target, strings.NewReader(body))
			r.Header = http.Header{"X-Caller": {"ann"}, "Content-Type": {"application/json"}}
			sane(t, c.serve(r))
		}
	})
}

func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{
		"GET /", "GET /demo/v1/info?a=%zz", "GET /demo/v1/session/ses_a/events?startIndex=-1", "GET /demo/v1/sessions?limit=5&cursor=abc", "GET /demo/v1/logs?after=9",
		"POST /demo/v1/session/%2e%2e/stop", "GET /demo/v1//info", "HEAD /v1/health", "OPTIONS *", "CONNECT h:1", "GET http://h/..", "GET /demo/v1/session/\u00ff/stream?follow=false",
	} {
		f.Add(seed)
	}
	agent := newAgent("demo")
	acc, _ := agent.begin(f, "ann", session.Chat)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\r\n") {
			t.Skip("more than a request line")
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Replace(line, "ses_a", acc.SessionID, 1) + " HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\n\r\n")))
		if err != nil || strings.HasSuffix(r.URL.Path, "/stream") && r.URL.Query().Get("follow") != "false" {
			t.Skip("no request, or one whose answer has no end")
		}
		a := newClient(t, httpapi.Options{Playground: true}, agent).serve(r)
		if r.Method == "HEAD" {
			a.body = map[string]any{"ok": false, "error": "x", "message": "a HEAD has no body"}
		}
		sane(t, a)
	})
}

func FuzzQueries(f *testing.F) {
	for _, seed := range []string{"startIndex=-5", "startIndex=99999999999999999999", "format=json&startIndex=1", "limit=3&cursor=AAAA", "kind=report&sessionId=ses_x&limit=1", "after=1", "follow=false", "a=b;c", "%"} {
		f.Add(seed)
	}
	agent := newAgent("demo")
	acc, _ := agent.begin(f, "ann", session.Chat)
	f.Fuzz(func(t *testing.T, query string) {
		c := newClient(t, httpapi.Options{}, agent)
		for _, path := range []string{"/demo/v1/sessions", "/demo/v1/logs", "/demo/v1/info", "/demo/v1/tools", "/demo/v1/artifacts", "/demo/v1/session/" + acc.SessionID + "/events"} {
			r := httptest.NewRequest("GET", path, http.NoBody)
			r.URL = &url.URL{Path: path, RawQuery: query}
			r.Header.Set("X-Caller", "ann")
			sane(t, c.serve(r))
		}
	})
}
