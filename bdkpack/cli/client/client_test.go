package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/cli/client"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
)

// serve returns a client of a server, whose waits take no time.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return client.New(srv.URL+"/agent/", &client.Options{HTTP: srv.Client(), Clock: clock.Fixed{}, Token: "secret"})
}

func line(i int64) string {
	e := event.New("t", event.MessageAppended{Text: strings.Repeat("x", 100_000)})
	e.Index = i
	return string(e.AppendJSON(nil)) + "\n"
}

func TestStartIsRepeatedWithTheSameKeyUntilTheServerAnswers(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	var keys [3]string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		keys[n-1] = r.Header.Get("Idempotency-Key")
		switch n {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			var body map[string]string
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			got := fmt.Sprint(r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body)
			if want := "POST/agent/v1/sessionBearer secretapplication/jsonmap[message:hi \"there\"]"; got != want {
				t.Errorf("request %s, want %s", got, want)
			}
			fmt.Fprint(w, `{"ok":true,"sessionId":"ses_1"}`)
		}
	})
	got, err := c.Start(t.Context(), `hi "there"`)
	if err != nil || got != "ses_1" {
		t.Errorf("got %q, %v, want ses_1", got, err)
	}
	if keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("idempotency keys %q, want one", keys)
	}
}

func TestRefusalIsNotRepeatedAndSaysWhy(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"ok":false,"error":"unauthenticated","message":"send a token"}`: "the server answers 401 Unauthorized: send a token (unauthenticated)",
		`{"ok":false,"error":"unauthenticated"}`:                          "the server answers 401 Unauthorized: unauthenticated",
		`{"message":"Missing Authentication Token"}`:                      "the server answers 401 Unauthorized: Missing Authentication Token",
		`<html>`: "the server answers 401 Unauthorized",
	} {
		var calls atomic.Int32
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, body)
		})
		if _, err := c.Start(t.Context(), "hi"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if calls.Load() != 1 {
			t.Errorf("asked %d times, want once", calls.Load())
		}
	}
}

func TestServerThatIsNoAgentIsNamed(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	if _, err := c.Start(t.Context(), "hi"); err == nil || !strings.Contains(err.Error(), "is not the URL of an agent") {
		t.Errorf("got %v, want an error that doubts the URL", err)
	}
}

func TestFollowGivesEachEventOnceThoughTheStreamIsCut(t *testing.T) {
	t.Parallel()
	const events = 10
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.ParseInt(r.URL.Query().Get("startIndex"), 10, 64)
		if err != nil || r.URL.Path != "/agent/v1/session/ses_1/stream" {
			t.Errorf("request %s: %v", r.URL, err)
		}
		fmt.Fprint(w, "\n") // heartbeat
		if from > 0 {
			fmt.Fprint(w, line(from-1)) // a server may repeat
		}
		fmt.Fprint(w, line(from))
		if from+1 < events {
			fmt.Fprint(w, line(from + 1)[:1000]) // cut inside a line
		}
		if from%2 == 0 {
			panic(http.ErrAbortHandler)
		}
	})
	var got []int64
	for e, err := range c.Follow(t.Context(), "ses_1") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Index); len(got) == events {
			break
		}
	}
	if diff := cmp.Diff([]int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
}

// watch is a clock that is set forward, and does not wait.
type watch struct {
	clock.Fixed

	minutes *atomic.Int64
}

func (w watch) Now() time.Time { return time.Unix(60*w.minutes.Load(), 0) }

func TestFollowComesBackHoweverOftenALongStreamEndsWithoutAnEvent(t *testing.T) {
	t.Parallel()
	var minutes, calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "/restapis/x1/agent/_user_request_/v1/session/ses_1/stream"; r.URL.Path != want || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("request %s with %s, want %s", r.URL, r.Header.Get("Authorization"), want)
		}
		from := r.URL.Query().Get("startIndex")
		switch n := calls.Add(1); {
		case n == 1:
			fmt.Fprint(w, line(0))
		case from != "1":
			t.Errorf("request %d begins at %s, want 1", n, from)
		case n == 20:
			fmt.Fprint(w, line(1))
		}
		minutes.Add(14)
	}))
	t.Cleanup(srv.Close)
	c := client.New(srv.URL+"/restapis/x1/agent/_user_request_", &client.Options{HTTP: srv.Client(), Clock: watch{minutes: &minutes}, Token: "secret"})
	for e, err := range c.Follow(t.Context(), "ses_1") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Index == 1 {
			break
		}
	}
	if calls.Load() != 20 {
		t.Errorf("asked %d times, want 20", calls.Load())
	}
}

func TestLogsGoOnAfterAnEarlierAnswer(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/agent/v1/logs?after=7" {
			t.Errorf("request %s", r.URL)
		}
		fmt.Fprint(w, `{"ok":true,"logs":[{"n":8,"time":"2026-01-02T03:04:05Z","level":"WARN","message":"m","attrs":{"a":1}}],"next":9}`)
	})
	records, next, err := c.Logs(t.Context(), 7)
	want := []client.Record{{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Level: "WARN", Message: "m", Attrs: map[string]json.RawMessage{"a": json.RawMessage("1")}}}
	if diff := cmp.Diff(want, records); diff != "" || next != 9 || err != nil {
		t.Errorf("got next %d, error %v, records (-want +got):\n%s", next, err, diff)
	}
}

func TestFollowGivesUp(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		handler http.HandlerFunc
		calls   int32
		want    string
	}{
		"unknown session": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, 1, "404"},
		"not an event":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello\n") }, 1, "reading an event"},
		"no progress":     {func(http.ResponseWriter, *http.Request) {}, 8, "the stream was cut"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				tc.handler(w, r)
			})
			var last error
			for _, err := range c.Follow(t.Context(), "ses_1") {
				last = err
			}
			if last == nil || !strings.Contains(last.Error(), tc.want) {
				t.Errorf("got %v, want %s", last, tc.want)
			}
			if calls.Load() != tc.calls {
				t.Errorf("asked %d times, want %d", calls.Load(), tc.calls)
			}
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, line(0))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	var errs int
	for _, err := range c.Follow(ctx, "ses_1") {
		cancel()
		if err != nil {
			errs++
		}
	}
	if errs != 1 {
		t.Errorf("%d errors, want one", errs)
	}
}
