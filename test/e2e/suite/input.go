package suite

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// badBodies: no body does harm. Each is refused in plain words by every route that takes one, and the session goes on.
func badBodies(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("hello")
	s.Completed()
	for name, body := range map[string]string{
		"no JSON":            `message=hi`,
		"broken off":         `{"message":"x"`,
		"two values":         `{"message":"x"}{"message":"y"}`,
		"an array":           `[{"message":"x"}]`,
		"null":               `null`,
		"invalid UTF-8":      "{\"message\":\"a\xff\"}",
		"half an emoji":      `{"message":"a\ud83d"}`,
		"NUL":                "{\"message\":\"a\x00\"}",
		"escaped NUL":        `{"message":"a\u0000b"}`,
		"duplicate key":      `{"message":"x","message":"y"}`,
		"hidden duplicate":   `{"message":"x","m\u0065ssage":"y"}`,
		"deep nesting":       `{"message":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"endless nesting":    strings.Repeat(`{"message":`, 50_000),
		"absurd number":      `{"message":1e999999}`,
		"long number":        `{"message":` + strings.Repeat("9", 100_000) + `}`,
		"number as message":  `{"message":7}`,
		"blank message":      `{"message":" \t\n "}`,
		"other case":         `{"Message":"x"}`,
		"prototype":          `{"message":"x","__proto__":{}}`,
		"field of server":    `{"message":"x","owner":"bob"}`,
		"unknown field":      `{"message":"x","continuationToken":"y","colour":1}`,
		"byte order mark":    "\xef\xbb\xbf{\"message\":\"x\"}",
		"token of no string": `{"message":"x","continuationToken":{"a":1}}`,
	} {
		if target.Texts && !utf8.ValidString(body) {
			continue
		}
		for _, path := range []string{"/v1/session", s.Path(""), s.Path("/stop")} {
			ann.Do("POST", path, body).Refused(name+" to "+path, 400, "invalid_request")
		}
	}
	for name, body := range map[string]string{
		"flag of text":     `{"message":"x","dryRun":"yes"}`,
		"local time":       `{"message":"x","asOf":"2026-01-31T09:00:00"}`,
		"absurd year":      `{"message":"x","asOf":"9999-12-31T23:59:59-14:00"}`,
		"time in seconds":  `{"message":"x","asOf":1e308}`,
		"unknown purpose":  `{"message":"x","purpose":"test"}`,
		"absolute path":    `{"message":"x","workspaceFiles":{"/etc/passwd":""}}`,
		"path upwards":     `{"message":"x","workspaceFiles":{"a/../../b":""}}`,
		"path with NUL":    `{"message":"x","workspaceFiles":{"a\u0000":""}}`,
		"path backwards":   `{"message":"x","workspaceFiles":{"a\\b":""}}`,
		"file of bytes":    `{"message":"x","workspaceFiles":{"a":[1]}}`,
		"agent's own file": `{"message":"x","workspaceFiles":{".Agents/tools/x":""}}`,
		"file in a file":   `{"message":"x","workspaceFiles":{"a":"","a/b":""}}`,
		"title of nothing": `{"message":"x","title":null}`,
	} {
		ann.Do("POST", "/v1/session", body).Refused(name, 400, "invalid_request")
	}
	ann.Do("POST", "/v1/session", `{"message":"x"}`, "Content-Type", "text/plain").Refused("another type", 400, "invalid_request")
	ann.Do("POST", "/v1/session", `{"message":"x"}`, "Content-Encoding", "gzip").Refused("an encoding", 400, "invalid_request")
	s.Usable()
}

// badQueries: parameters are as strict as bodies.
func badQueries(t *testing.T, target Target) {
	s := target.Ann(t).Start("hello")
	s.Completed()
	for _, path := range []string{
		s.Path("/stream?startIndex=x"), s.Path("/stream?startIndex=1e3"), s.Path("/stream?startIndex=99999999999999999999"), s.Path("/stream?startIndex=1&startIndex=2"),
		s.Path("/stream?follow=maybe"), s.Path("/stream?start=1"), s.Path("/stream?startIndex=%00"), s.Path("/stream?startIndex=%zz"),
		s.Path("/events?format=xml"), s.Path("/events?startIndex="), s.Path("/cost?x=1"),
		"/v1/sessions?limit=0", "/v1/sessions?limit=-1", "/v1/sessions?limit=1e9", "/v1/sessions?limit=1001", "/v1/sessions?cursor=", "/v1/sessions?cursor=nonsense", "/v1/sessions?cursor=%ff%00",
		"/v1/logs?after=-1", "/v1/logs?after=9223372036854775808", "/v1/info?x",
	} {
		s.Do("GET", path, "").Refused(path, 400, "invalid_request")
	}
	s.Usable()
}

// hugeBodies: too much is refused before it does harm.
func hugeBodies(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("hello")
	s.Completed()
	for _, size := range []int{1 << 20, 10 << 20} {
		message := strings.Repeat("x", size)
		ann.post("/v1/session", map[string]any{"message": message}).Refused("a first message", 413, "payload_too_large")
		s.send("token", message).Refused("a follow-up", 413, "payload_too_large")
	}
	ann.post("/v1/session", map[string]any{"message": "x", "title": strings.Repeat("ü", 201)}).Refused("a long title", 413, "payload_too_large")
	s.Usable()
	s.Say(strings.Repeat("ü", 100<<10))
	s.Completed()
}
