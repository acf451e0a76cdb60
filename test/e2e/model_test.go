package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
)

// provider is a server that speaks the protocol of chat completions. To "forever" it answers without end, in words or in
// silence, to anything else at once.
type provider struct {
	silent bool
	sent   atomic.Int64  // bytes
	asked  atomic.Int64  // requests
	closed chan struct{} // closed when the host has given up the endless answer
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	piece := func(delta, finish string) {
		n, _ := fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", delta, finish)
		p.sent.Add(int64(n))
		_ = http.NewResponseController(w).Flush()
	}
	if text := string(body); strings.LastIndex(text, "forever") < strings.LastIndex(text, "still there?") {
		piece("yes", `"stop"`)
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
		return
	}
	defer close(p.closed)
	piece("on ", "null")
	for {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(10 * time.Millisecond):
			if !p.silent {
				piece("and on ", "null")
			}
		}
	}
}

// TestStopEndsTheProvidersRequest: a stop ends the answer where it is paid for, not only for the reader.
func TestStopEndsTheProvidersRequest(t *testing.T) {
	t.Parallel()
	build(t)
	for name, tc := range map[string]struct{ silent, byMessage bool }{
		"by the route, while it talks":     {},
		"by the route, while it is silent": {silent: true},
		"by a message, while it talks":     {byMessage: true},
		"by a message, while it is silent": {byMessage: true, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &provider{silent: tc.silent, closed: make(chan struct{})}
			api := httptest.NewServer(p)
			t.Cleanup(api.Close)
			host := serveWith(t, []string{"OPENAI_BASE_URL=" + api.URL + "/v1", "BDK_MODEL=openai:x"}, "--dir", workshop, "--state-root", t.TempDir())
			s := host.target("workshop").Ann(t).Start("forever")
			s.Until(event.TypeMessageAppended)
			if tc.byMessage {
				s.Say("still there?")
			} else {
				s.Do("POST", s.Path("/stop"), "")
				if failed := s.Failed(); failed.Status != event.StatusCancelled {
					t.Errorf("the turn ended with %+v", failed)
				}
			}
			select {
			case <-p.closed:
			case <-time.After(time.Second):
				t.Fatal("after a second the provider still answers")
			}
			sent := p.sent.Load()
			if !tc.byMessage {
				s.Say("still there?")
			}
			s.Completed()
			if more := p.sent.Load() - sent; more > 400 || p.asked.Load() != 2 {
				t.Errorf("%d bytes and %d requests after the stop", more, p.asked.Load()-1)
			}
		})
	}
}
