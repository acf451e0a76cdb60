package post_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/post"
	"github.com/bdk-lambda/bdk/shared/model/internal/sse"
)

func client(s *httptest.Server) *post.Client {
	return &post.Client{
		HTTP: s.Client(), Clock: clock.System{}, URL: s.URL, Header: http.Header{},
		Last: func(e sse.Event) bool { return string(e.Data) == "end" },
	}
}

func TestTheConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: end\n\n")
		w.(http.Flusher).Flush()
	}))
	defer s.Close()
	c := client(s)
	var reused []bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { reused = append(reused, i.Reused) },
	})
	for range 3 {
		for _, err := range c.Events(ctx, "x") {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := fmt.Sprint(reused), "[false true true]"; got != want {
		t.Errorf("connections reused: got %s, want %s", got, want)
	}
}

func TestAServerThatKeepsTheStreamOpenIsLeft(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: end\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	}))
	defer s.Close()
	n := 0
	for _, err := range client(s).Events(t.Context(), "x") {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	<-left
	if n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

func TestWhatCannotBeEncodedIsInvalid(t *testing.T) {
	t.Parallel()
	for _, err := range (&post.Client{HTTP: &http.Client{}, Clock: clock.System{}}).Events(t.Context(), func() {}) {
		if model.KindOf(err) != model.Invalid {
			t.Errorf("got %v, want kind invalid", err)
		}
	}
	for _, err := range (&post.Client{HTTP: &http.Client{}, Clock: clock.System{}, URL: "http://user:secret@\x7f"}).Events(t.Context(), "x") {
		if model.KindOf(err) != model.Invalid || err.Error() != "invalid: the base URL of the provider is not a URL" {
			t.Errorf("got %v, want kind invalid without the URL", err)
		}
	}
}
