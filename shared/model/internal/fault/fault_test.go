package fault_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/fault"
)

func TestFromBody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status  int
		body    string
		kind    model.Kind
		message string
	}{
		"code before status":           {429, `{"error":{"message":"pay","type":"x","code":"insufficient_quota"}}`, model.Denied, "pay"},
		"status before type":           {401, `{"error":{"message":"key","type":"invalid_request_error","code":null}}`, model.Denied, "key"},
		"too long by its words":        {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 > 1"}}`, model.ContextLength, "prompt is too long: 2 > 1"},
		"the words in a server fault":  {500, `{"error":{"message":"context window cache lost"}}`, model.Unavailable, "context window cache lost"},
		"too many bytes":               {413, ``, model.ContextLength, "Request Entity Too Large"},
		"in the stream by type":        {0, `{"error":{"message":"busy","type":"overloaded_error"}}`, model.Overloaded, "busy"},
		"in the stream by status code": {0, `{"error":{"message":"slow","code":429}}`, model.Throttled, "slow"},
		"in the stream, unknown":       {0, `{"error":{"message":"hm","type":"new_error"}}`, model.Unavailable, "hm"},
		"a string":                     {404, `{"error":"no such model"}`, model.Invalid, "no such model"},
		"a message":                    {403, `{"message":"go away"}`, model.Denied, "go away"},
		"no JSON":                      {502, "<html>bad gateway</html>\n", model.Unavailable, "<html>bad gateway</html>"},
		"nothing":                      {0, "", model.Unavailable, "no reason given"},
		"busy":                         {529, "", model.Overloaded, "no reason given"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fault.FromBody(tc.status, []byte(tc.body))
			if got.Kind != tc.kind || got.Message != tc.message {
				t.Errorf("got %s, %q, want %s, %q", got.Kind, got.Message, tc.kind, tc.message)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 1.5 ": 1500 * time.Millisecond, "-3": 0, "soon": 0, "NaN": 0, "1e300": 24 * time.Hour, "+Inf": 24 * time.Hour,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:30 GMT": 0,
	} {
		if got := fault.RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After: %s: got %v, want %v", value, got, want)
		}
	}
	h := http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"250"}}
	if got := fault.RetryAfter(h, now); got != 250*time.Millisecond {
		t.Errorf("milliseconds: got %v", got)
	}
}

func FuzzFromBody(f *testing.F) {
	f.Add(400, []byte(`{"error":{"message":"m","type":"t","code":429}}`))
	f.Add(0, []byte(`{"error":"m","message":"n"}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := fault.FromBody(status, body)
		if e.Kind == "" || e.Message == "" || len(e.Message) > 1010 || !utf8.ValidString(e.Message) {
			t.Errorf("got %q, %q", e.Kind, strings.ToValidUTF8(e.Message, "?"))
		}
	})
}
