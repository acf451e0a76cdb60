package httpapi_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// TestABodyIsNeverTheNextRequest: what follows a body that cannot be read to its end, or belongs to it, is never answered as a
// request of its own.
func TestABodyIsNeverTheNextRequest(t *testing.T) {
	t.Parallel()
	const next = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, first := range map[string]string{
		"no chunk, no route":      "POST /none HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"no chunk, no caller":     "POST /demo/v1/session HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"no chunk, a caller":      "POST /demo/v1/session HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"a chunk that is cut":     "POST /demo/v1/session HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"mesXX",
		"a wrong method, a chunk": "PUT /v1/health HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, _ := serve(t, newClient(t, httpapi.Options{}, newAgent("demo")).h)
			conn := dial(t, addr, first+next)
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			got, err := io.ReadAll(conn) // a connection that is cut may end with an error
			if n := strings.Count(string(got), "HTTP/1.1 "); n > 1 || strings.Contains(string(got), "200 OK") {
				t.Errorf("%d answers, then %v:\n%s", n, err, got)
			}
		})
	}
}
