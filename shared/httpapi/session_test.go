package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/workspace/workspacetest"
)

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestStartStoresWhatItIsGiven(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	blobs := blob.New(memblob.New())
	c := newClient(t, httpapi.Options{Blobs: blobs}, agent)
	a := c.do("POST", "/demo/v1/session", `{"message":" Größe? 🌍 ","title":"`+strings.Repeat("ü", 200)+`","dryRun":true,"asOf":"2026-01-31T09:00:00.5+02:00",
		"workspaceFiles":{"a/b.txt":"one\u0000","c":""},"purpose":"eval"}`, "Content-Type", "application/json; charset=UTF-8")
	if a.status != 202 || a.body["ok"] != true {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
	if want := "http://example.com/demo/v1/session/" + a.text("sessionId") + "/events"; a.text("traceUrl") != want {
		t.Errorf("traceUrl is %q; want %q", a.text("traceUrl"), want)
	}
	want := []string{"continuationToken", "ok", "sessionId", "traceUrl", "turnId"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(a.body))); diff != "" {
		t.Errorf("fields of the answer (-want +got):\n%s", diff)
	}
	row, err := agent.store.Get(t.Context(), a.text("sessionId"))
	if err != nil {
		t.Fatal(err)
	}
	asOf := time.Date(2026, 1, 31, 7, 0, 0, 500_000_000, time.UTC)
	if row.Owner != "ann" || row.Agent != "demo" || row.Channel != "http" || row.Mode != session.Chat || row.Purpose != "eval" ||
		!row.DryRun || !row.AsOf.Equal(asOf) || row.Title != strings.Repeat("ü", 200) || row.Turn.ID != a.text("turnId") {
		t.Errorf("stored %+v", row)
	}
	files, err := blobs.Get(t.Context(), blob.Ref(row.Files))
	if want := `{"version":1,"files":{"a/b.txt":"one\u0000","c":""}}`; err != nil || string(files) != want {
		t.Errorf("stored files %s, error %v; want %s", files, err, want)
	}
	events := eventLines(t, c.do("GET", "/demo/v1/session/"+row.ID+"/events", "").raw)
	if m, err := event.Decode[event.MessageReceived](events[1]); err != nil || m.Text != " Größe? 🌍 " {
		t.Errorf("the message is %q, error %v", m.Text, err)
	}
}

func TestStartAcceptsInstants(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	c := newClient(t, httpapi.Options{}, agent)
	for text, want := range map[string]string{
		"2026-01-31T09:00:00Z": "2026-01-31T09:00:00Z", "2026-01-31T09:00:00.120-07:30": "2026-01-31T16:30:00.12Z", "2026-01-31T09:00Z": "2026-01-31T09:00:00Z",
		"2026-01-31T09:00+0200": "2026-01-31T07:00:00Z", "2026-01-31T09:00:00+0200": "2026-01-31T07:00:00Z",
	} {
		a := c.do("POST", "/demo/v1/session", `{"message":"x","asOf":"`+text+`"}`)
		if a.status != 202 {
			t.Errorf("%s: got %d %s", text, a.status, a.raw)
			continue
		}
		row, err := agent.store.Get(t.Context(), a.text("sessionId"))
		if got := row.AsOf.Format(time.RFC3339Nano); err != nil || got != want {
			t.Errorf("%s: stored %s, error %v; want %s", text, got, err, want)
		}
	}
}

// badBodies are bodies that no route takes.
func badBodies() map[string]string {
	return map[string]string{
		"no JSON":               `message=hi`,
		"JSON that breaks off":  `{"message":"x"`,
		"a trailing comma":      `{"message":"x",}`,
		"a comment":             `{"message":"x"} // hi`,
		"two values":            `{"message":"x"}{"message":"y"}`,
		"an array":              `[{"message":"x"}]`,
		"a string":              `"message"`,
		"null":                  `null`,
		"a number":              `1e999`,
		"white space":           "  \n",
		"invalid UTF-8":         "{\"message\":\"a\xff\"}",
		"half an emoji":         `{"message":"a\ud83d"}`,
		"the other half":        `{"message":"\udf0d"}`,
		"halves in wrong order": `{"message":"\udf0d\ud83d"}`,
		"a half and a letter":   `{"message":"\ud83d\u0041"}`,
		"a bare NUL":            "{\"message\":\"a\x00\"}",
		"an escaped NUL":        `{"message":"a\u0000b"}`,
		"a line end in a text":  "{\"message\":\"a\nb\"}",
		"a byte order mark":     "\xef\xbb\xbf{\"message\":\"x\"}",
		"a duplicate key":       `{"message":"x","message":"y"}`,
		"a hidden duplicate":    `{"message":"x","m\u0065ssage":"y"}`,
		"deep nesting":          `{"message":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"deeper nesting":        strings.Repeat(`{"message":`, 300_000),
		"an absurd number":      `{"message":1e999999}`,
		"a long number":         `{"message":` + strings.Repeat("9", 100_000) + `}`,
		"a missing message":     `{}`,
		"a message of null":     `{"message":null}`,
		"a number as message":   `{"message":7}`,
		"an object as message":  `{"message":{"text":"x"}}`,
		"an empty message":      `{"message":""}`,
		"a blank message":       `{"message":" \t\n\u00a0"}`,
		"another case":          `{"Message":"x"}`,
		"a prototype":           `{"message":"x","__proto__":{}}`,
		"an empty name":         `{"message":"x","":1}`,
	}
}

func TestBadBodiesAreRefusedAndTheSessionLives(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	c := newClient(t, httpapi.Options{Blobs: blob.New(memblob.New())}, agent)
	started := c.do("POST", "/demo/v1/session", `{"message":"x"}`)
	path := "/demo/v1/session/" + started.text("sessionId")
	for name, body := range badBodies() {
		for _, target := range []string{"/demo/v1/session", path, path + "/stop"} {
			if body == "{}" && target == path+"/stop" {
				continue // says nothing, which is fine there
			}
			if a := c.do("POST", target, body); a.status != 400 || a.text("error") != "invalid_request" || a.text("message") == "" {
				t.Errorf("%s to %s: got %d %.300s", name, target, a.status, a.raw)
			}
		}
	}
	a := c.do("POST", path, `{"message":"still there?","continuationToken":`+quoted(started.text("continuationToken"))+`}`)
	if a.status != 202 {
		t.Errorf("the session afterwards: got %d %s", a.status, a.raw)
	}
	if rows, _, err := agent.store.List(t.Context(), session.Query{Agent: "demo", All: true, Limit: 1000}); err != nil || len(rows) != 1 {
		t.Errorf("%d sessions exist, error %v; want 1", len(rows), err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{Blobs: blob.New(memblob.New())}, newAgent("demo"))
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf(`"f%d":""`, i)
	}
	for _, tc := range []struct {
		name, body string
		status     int
		wants      []string // parts of the message
	}{
		{"an empty body", "", 400, []string{"empty"}},
		{"an unknown field", `{"message":"x","colour":1}`, 400, []string{`"colour"`, "workspaceFiles"}},
		{"a slip of the pen", `{"mesage":"x"}`, 400, []string{`"mesage"`, `did you mean "message"?`}},
		{"another case", `{"message":"x","dryrun":true}`, 400, []string{`did you mean "dryRun"?`}},
		{"a field of the server", `{"message":"x","owner":"bob"}`, 400, []string{`"owner"`, "set by the server"}},
		{"another field of the server", `{"message":"x","mode":"task"}`, 400, []string{`"mode"`, "set by the server"}},
		{"a chosen id", `{"message":"x","sessionId":"ses_mine"}`, 400, []string{`"sessionId"`, "set by the server"}},
		{"a wrong type", `{"message":"x","dryRun":"yes"}`, 400, []string{`"dryRun"`, "a boolean", "a string"}},
		{"null for a flag", `{"message":"x","dryRun":null}`, 400, []string{`"dryRun"`, "null"}},
		{"a number for a flag", `{"message":"x","dryRun":1}`, 400, []string{`"dryRun"`, "a number"}},
		{"a number for a title", `{"message":"x","title":5}`, 400, []string{`"title"`, "a string", "a number"}},
		{"NUL", `{"message":"x\u0000"}`, 400, []string{`"message"`, "NUL"}},
		{"NUL in a title", `{"message":"x","title":"\u0000"}`, 400, []string{`"title"`, "NUL"}},
		{"a long message", `{"message":"` + strings.Repeat("x", 256<<10+1) + `"}`, 413, []string{`"message"`, "262144"}},
		{"a message of 1 MB", `{"message":"` + strings.Repeat("x", 1<<20) + `"}`, 413, []string{`"message"`, "262144"}},
		{"a long title", `{"message":"x","title":"` + strings.Repeat("ü", 201) + `"}`, 413, []string{`"title"`, "201", "200"}},
		{"an unknown purpose", `{"message":"x","purpose":"test"}`, 400, []string{`"purpose"`, `"eval"`}},
		{"an empty purpose", `{"message":"x","purpose":""}`, 400, []string{`"purpose"`}},
		{"a local time", `{"message":"x","asOf":"2026-01-31T09:00:00"}`, 400, []string{`"asOf"`, "timezone"}},
		{"a date", `{"message":"x","asOf":"2026-01-31"}`, 400, []string{`"asOf"`, "timezone"}},
		{"a relative time", `{"message":"x","asOf":"yesterday"}`, 400, []string{`"asOf"`}},
		{"an empty time", `{"message":"x","asOf":""}`, 400, []string{`"asOf"`}},
		{"a time that does not exist", `{"message":"x","asOf":"2026-02-30T09:00:00Z"}`, 400, []string{`"asOf"`}},
		{"a time in seconds", `{"message":"x","asOf":1700000000}`, 400, []string{`"asOf"`, "a number"}},
		{"an absurd year", `{"message":"x","asOf":"9999-12-31T23:59:59-14:00"}`, 400, []string{`"asOf"`, "2199"}},
		{"year one", `{"message":"x","asOf":"0001-01-01T00:00:00Z"}`, 400, []string{`"asOf"`, "1900"}},
		{"files as a list", `{"message":"x","workspaceFiles":[]}`, 400, []string{`"workspaceFiles"`, "an array"}},
		{"files of null", `{"message":"x","workspaceFiles":null}`, 400, []string{`"workspaceFiles"`, "null"}},
		{"a file of bytes", `{"message":"x","workspaceFiles":{"a":[1]}}`, 400, []string{`"a"`, "a string", "an array"}},
		{"too many files", `{"message":"x","workspaceFiles":{` + strings.Join(many, ",") + `}}`, 413, []string{"1001", "1000"}},
		{"too much text", `{"message":"x","workspaceFiles":{"a":"` + strings.Repeat("a", 1<<19) + `","b":"` + strings.Repeat("b", 1<<19+1) + `"}}`, 413, []string{"1048576"}},
		{"paths that differ in case", `{"message":"x","workspaceFiles":{"a/b":"","A/B":""}}`, 400, []string{`"A/B"`, `"a/b"`}},
		{"a file that is a folder", `{"message":"x","workspaceFiles":{"a":"","A/b/c":""}}`, 400, []string{`"a"`, `"A/b/c"`}},
		{"the same path twice", `{"message":"x","workspaceFiles":{"a":"1","a":"2"}}`, 400, []string{"a", "twice"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			code := map[int]string{400: "invalid_request", 413: "payload_too_large"}[tc.status]
			message := refused(t, client{t, c.h}.do("POST", "/demo/v1/session", tc.body), tc.status, code)
			for _, want := range tc.wants {
				if !strings.Contains(message, want) {
					t.Errorf("the message lacks %s: %s", want, message)
				}
			}
			if len(message) > 600 {
				t.Errorf("the message has %d bytes", len(message))
			}
		})
	}
}

func TestWorkspacePaths(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{Blobs: blob.New(memblob.New())}, newAgent("demo"))
	post := func(path string) answer {
		return c.do("POST", "/demo/v1/session", `{"message":"x","workspaceFiles":{`+quoted(path)+`:"text"}}`)
	}
	for _, path := range []string{"a", "a/b/c.txt", ".hidden", "..a", "a b/ü🌍", "-rf", strings.Repeat("abcd/", 50) + "f"} {
		if a := post(path); a.status != 202 {
			t.Errorf("%.60q: got %d %s", path, a.status, a.raw)
		}
	}
	bad := append(workspacetest.BadPaths(), "a..", "a/...", "a:b", strings.Repeat("d/", 64)+"f", strings.Repeat("a", 1025))
	for _, path := range bad {
		message := refused(t, post(path), 400, "invalid_request")
		if !strings.Contains(message, "workspaceFiles") {
			t.Errorf("%.60q: %s", path, message)
		}
	}
}

func TestFilesNeedAStore(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{}, newAgent("demo"))
	refused(t, c.do("POST", "/demo/v1/session", `{"message":"x","workspaceFiles":{"a":""}}`), 400, "invalid_request")
	if a := c.do("POST", "/demo/v1/session", `{"message":"x","workspaceFiles":{}}`); a.status != 202 {
		t.Errorf("no files: got %d", a.status)
	}
}

func TestFollowUps(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	c := newClient(t, httpapi.Options{}, agent)
	started := c.do("POST", "/demo/v1/session", `{"message":"one"}`)
	path, first := "/demo/v1/session/"+started.text("sessionId"), started.text("continuationToken")
	send := func(token string) answer {
		return c.do("POST", path, `{"message":"two","continuationToken":`+quoted(token)+`}`)
	}
	second := send(first)
	if second.status != 202 || second.text("continuationToken") == first || second.text("sessionId") != started.text("sessionId") || second.text("turnId") == started.text("turnId") {
		t.Fatalf("got %d %s", second.status, second.raw)
	}
	refused(t, send(first), 409, "stale_token")
	refused(t, send("http:guess"), 409, "stale_token")
	refused(t, c.do("POST", path, `{"message":"two"}`), 400, "invalid_request")
	refused(t, c.do("POST", path, `{"message":"two","continuationToken":""}`), 400, "invalid_request")
	refused(t, c.do("POST", path, `{"message":"two","continuationToken":"x","title":"y"}`), 400, "invalid_request")
	refused(t, c.do("POST", path, `{"message":"two","continuationToken":"`+first+`","message":"three"}`), 400, "invalid_request")
	if third := send(second.text("continuationToken")); third.status != 202 {
		t.Errorf("got %d %s", third.status, third.raw)
	}

	task, _ := agent.begin(t, "ann", session.Task)
	a := c.do("POST", "/demo/v1/session/"+task.SessionID, `{"message":"x","continuationToken":`+quoted(task.Token)+`}`)
	refused(t, a, 409, "session_closed")
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{}, newAgent("demo"))
	const body = `{"message":"one"}`
	first := c.do("POST", "/demo/v1/session", body, "Idempotency-Key", "k 1~")
	again := c.do("POST", "/demo/v1/session", body, "Idempotency-Key", "k 1~")
	if first.status != 202 || again.raw != first.raw || again.status != 202 {
		t.Errorf("got %d %s, then %d %s; want the same", first.status, first.raw, again.status, again.raw)
	}
	if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the header Idempotency-Replayed is %q, then %q", first.header.Get("Idempotency-Replayed"), again.header.Get("Idempotency-Replayed"))
	}
	refused(t, c.do("POST", "/demo/v1/session", `{"message":"two"}`, "Idempotency-Key", "k 1~"), 409, "idempotency_key")
	if bob := c.do("POST", "/demo/v1/session", body, "Idempotency-Key", "k 1~", "X-Caller", "bob"); bob.status != 202 || bob.text("sessionId") == first.text("sessionId") {
		t.Errorf("another caller with the same key: got %d %s", bob.status, bob.raw)
	}

	path := "/demo/v1/session/" + first.text("sessionId")
	follow := `{"message":"two","continuationToken":` + quoted(first.text("continuationToken")) + `}`
	sent := c.do("POST", path, follow, "Idempotency-Key", "k 1~")
	resent := c.do("POST", path, follow, "Idempotency-Key", "k 1~")
	if sent.status != 202 || resent.raw != sent.raw || resent.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %d %s, then %d %s; want the same", sent.status, sent.raw, resent.status, resent.raw)
	}
	refused(t, c.do("POST", path, `{"message":"x","continuationToken":"y"}`, "Idempotency-Key", "k 1~"), 409, "idempotency_key")

	for _, key := range []string{" \t", "ü", "a\x7f", strings.Repeat("a", 256)} {
		refused(t, c.do("POST", "/demo/v1/session", body, "Idempotency-Key", key), 400, "invalid_request")
	}
	r := httptest.NewRequest("POST", "/demo/v1/session", strings.NewReader(body))
	r.Header = http.Header{"X-Caller": {"ann"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"}}
	refused(t, c.serve(r), 400, "invalid_request")
	r = httptest.NewRequest("POST", "/demo/v1/session", strings.NewReader(body))
	r.Header = http.Header{"X-Caller": {"ann"}, "Content-Type": {"application/json"}, "Idempotency-Key": {""}}
	refused(t, c.serve(r), 400, "invalid_request")
	if a := c.do("POST", "/demo/v1/session", body, "Idempotency-Key", strings.Repeat("a", 255)); a.status != 202 {
		t.Errorf("a key of 255 characters: got %d", a.status)
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpapi.Options{}, newAgent("demo"))
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/jsonp", "application/json, text/plain", ";"} {
		message := refused(t, c.do("POST", "/demo/v1/session", `{"message":"x"}`, "Content-Type", kind), 400, "invalid_request")
		if !strings.Contains(message, "content-type: application/json") {
			t.Errorf("%q: the message names no remedy: %s", kind, message)
		}
	}
	refused(t, c.do("POST", "/demo/v1/session", `{"message":"x"}`, "Content-Encoding", "gzip"), 400, "invalid_request")
	if a := c.do("POST", "/demo/v1/session", `{"message":"x"}`, "Content-Type", `Application/JSON;charset="utf-8"`); a.status != 202 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
}

// TestAcceptanceOutlivesItsClient: what a client gives up on must not be recorded by half.
func TestAcceptanceOutlivesItsClient(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	ctx, cancel := context.WithCancel(t.Context())
	agent.onStart = func(work context.Context) {
		cancel()
		if work.Err() != nil {
			t.Error("the work ended with its client")
		}
		if _, ok := work.Deadline(); !ok {
			t.Error("the work has no deadline")
		}
	}
	c := newClient(t, httpapi.Options{}, agent)
	r := httptest.NewRequestWithContext(ctx, "POST", "/demo/v1/session", strings.NewReader(`{"message":"x"}`))
	r.Header = http.Header{"X-Caller": {"ann"}, "Content-Type": {"application/json"}}
	if a := c.serve(r); a.status != 202 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	c := newClient(t, httpapi.Options{}, agent)
	acc, _ := agent.begin(t, "ann", session.Chat)
	path := "/demo/v1/session/" + acc.SessionID + "/stop"
	refused(t, c.do("POST", path, `{"turnId":"turn_other"}`), 409, "turn_mismatch")
	refused(t, c.do("POST", path, `{"turnId":7}`), 400, "invalid_request")
	refused(t, c.do("POST", path, `{"turn":"x"}`), 400, "invalid_request")
	if a := c.do("POST", path, `{"turnId":`+quoted(acc.TurnID)+`}`); a.status != 200 || a.body["stopped"] != true || a.text("turnId") != acc.TurnID {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	for _, body := range []string{"", "{}"} {
		if a := c.do("POST", path, body); a.status != 200 || a.body["stopped"] != false {
			t.Errorf("an idle session: got %d %s", a.status, a.raw)
		}
	}
	events := eventLines(t, c.do("GET", "/demo/v1/session/"+acc.SessionID+"/events", "").raw)
	if got := events[len(events)-2].Type; got != event.TypeTurnFailed {
		t.Errorf("the turn ended with %s", got)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	c := newClient(t, httpapi.Options{}, agent)
	var want []string
	for range 5 {
		acc, _ := agent.begin(t, "ann", session.Chat)
		want = append(want, acc.SessionID)
	}
	agent.begin(t, "bob", session.Chat)
	slices.Reverse(want)
	var got []string
	cursor := ""
	for range 4 {
		a := c.do("GET", "/demo/v1/sessions?limit=2"+cursor, "")
		if a.status != 200 || a.body["ok"] != true {
			t.Fatalf("got %d %s", a.status, a.raw)
		}
		for _, s := range a.body["sessions"].([]any) {
			got = append(got, s.(map[string]any)["sessionId"].(string))
		}
		if a.body["nextCursor"] == nil {
			break
		}
		cursor = "&cursor=" + a.text("nextCursor")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	if a := c.do("GET", "/demo/v1/sessions", "", "X-Caller", "carl"); a.raw != `{"ok":true,"sessions":[]}`+"\n" {
		t.Errorf("a caller without sessions sees %s", a.raw)
	}
	for _, query := range []string{
		"limit=0", "limit=-1", "limit=1001", "limit=x", "limit=", "limit=1e3", "limit=99999999999999999999", "limit=1&limit=2", "cursor=", "cursor=guess", "cursor=%00",
		"cursor=%ff", "cursor=" + strings.Repeat("a", 5000), "offset=1", "Limit=1", "%zz", "limit=1;cursor=x",
	} {
		refused(t, c.do("GET", "/demo/v1/sessions?"+query, ""), 400, "invalid_request")
	}
	if message := refused(t, c.do("GET", "/demo/v1/sessions?limits=1", ""), 400, "invalid_request"); !strings.Contains(message, `did you mean "limit"?`) {
		t.Errorf("a slip of the pen: %s", message)
	}
}

func TestListedFields(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	c := newClient(t, httpapi.Options{}, agent)
	c.do("POST", "/demo/v1/session", `{"message":"x","title":"T","dryRun":true,"asOf":"2026-01-31T09:00:00Z","purpose":"eval"}`)
	_, idle := agent.begin(t, "ann", session.Chat)
	finish(t, idle, event.TurnCompleted{}, event.SessionWaiting{})
	_, done := agent.begin(t, "ann", session.Task)
	finish(t, done, event.TurnCompleted{}, event.SessionCompleted{})
	_, failed := agent.begin(t, "ann", session.Task)
	finish(t, failed, event.TurnFailed{}, event.SessionFailed{})
	var got []string
	for _, s := range c.do("GET", "/demo/v1/sessions", "").body["sessions"].([]any) {
		m := s.(map[string]any)
		got = append(got, fmt.Sprintf("%v %v %v %v", m["mode"], m["status"], m["purpose"], m["title"]))
		if m["title"] == "T" && (m["dryRun"] != true || m["asOf"] != "2026-01-31T09:00:00Z" || m["turnId"] == nil || m["owner"] != "ann" || m["channelId"] != "http") {
			t.Errorf("got %v", m)
		}
	}
	slices.Sort(got)
	want := []string{"chat running eval T", "chat waiting chat <nil>", "task completed chat <nil>", "task failed chat <nil>"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDevListsEveryPrincipalToCallersOnThisMachine(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	agent.begin(t, "ann", session.Chat)
	agent.begin(t, "webhook", session.Chat)
	for _, tc := range []struct {
		name string
		dev  bool
		peer string
		host string
		want int
	}{
		{"dev on loopback", true, "127.0.0.1:9", "localhost:3000", 2},
		{"dev from elsewhere", true, "10.0.0.1:9", "localhost:3000", 1},
		{"dev under a foreign name", true, "127.0.0.1:9", "evil.example", 1},
		{"not dev", false, "127.0.0.1:9", "localhost:3000", 1},
	} {
		c := newClient(t, httpapi.Options{Dev: tc.dev}, agent)
		r := httptest.NewRequest("GET", "/demo/v1/sessions", http.NoBody)
		r.RemoteAddr, r.Host = tc.peer, tc.host
		r.Header.Set("X-Caller", "ann")
		if got := c.serve(r).body["sessions"].([]any); len(got) != tc.want {
			t.Errorf("%s: %d sessions; want %d", tc.name, len(got), tc.want)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	agent := newAgent("demo")
	total := 0.5
	agent.cost = engine.Cost{
		Turns: []engine.TurnCost{
			{TurnID: "t1", Status: "completed", Usage: event.Usage{InputTokens: 3, OutputTokens: 2}, TotalUSD: &total, Model: "openai:b"},
			{TurnID: "t2", Status: "running", Model: "openai:c"},
		},
		Usage: event.Usage{InputTokens: 3, OutputTokens: 2},
	}
	acc, _ := agent.begin(t, "ann", session.Chat)
	c := newClient(t, httpapi.Options{}, agent)
	usage := func(in, out string) string {
		return `{"inputTokens":` + in + `,"outputTokens":` + out + `,"cacheReadTokens":0,"cacheWriteTokens":0}`
	}
	want := `{"ok":true,"sessionId":"` + acc.SessionID + `","turns":[{"turnId":"t1","status":"completed","model":"openai:b","usage":` + usage("3", "2") +
		`,"cost":{"totalUsd":0.5}},{"turnId":"t2","status":"running","model":"openai:c","usage":` + usage("0", "0") + `}],"usage":` + usage("3", "2") + "}\n"
	if diff := cmp.Diff(want, c.do("GET", "/demo/v1/session/"+acc.SessionID+"/cost", "").raw); diff != "" {
		t.Errorf("an unknown price must show no cost (-want +got):\n%s", diff)
	}
	agent.cost.TotalUSD = &total
	if a := c.do("GET", "/demo/v1/session/"+acc.SessionID+"/cost", ""); !strings.HasSuffix(a.raw, `"cost":{"totalUsd":0.5}}`+"\n") {
		t.Errorf("a known price: got %s", a.raw)
	}
	refused(t, c.do("GET", "/demo/v1/session/"+acc.SessionID+"/cost?turn=1", ""), 400, "invalid_request")
}
