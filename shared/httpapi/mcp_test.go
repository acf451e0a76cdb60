package httpapi_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// TestPagesAndForeignNames: who may send messages of the Model Context Protocol from where.
func TestPagesAndForeignNames(t *testing.T) {
	t.Parallel()
	bearer, err := auth.Bearer([]string{"ci:secret"})
	if err != nil {
		t.Fatal(err)
	}
	token, anyone := auth.Chain(bearer), auth.Anonymous()
	for _, tc := range []struct {
		name         string
		policy       auth.Policy
		host, origin string
		want         int
	}{
		{"a program", anyone, "127.0.0.1:3000", "", 200},
		{"a program at localhost", anyone, "localhost", "", 200},
		{"a program at IPv6", anyone, "[::1]:3000", "", 200},
		{"a name that leads here", anyone, "rebind.example.com:3000", "", 403},
		{"a name that leads here and its page", anyone, "rebind.example.com", "http://rebind.example.com", 403},
		{"a proxy's name, with a token", token, "agent.example.com", "", 200},
		{"the host's own page", anyone, "127.0.0.1:3000", "http://127.0.0.1:3000", 200},
		{"a foreign page", anyone, "127.0.0.1:3000", "https://evil.example", 403},
		{"a foreign page with a token", token, "127.0.0.1:3000", "https://evil.example", 403},
		{"no page that has a name", anyone, "127.0.0.1:3000", "null", 403},
		{"a page that is allowed", token, "127.0.0.1:3000", "https://app.example.com", 200},
		{"the machine's own policy", auth.Loopback(), "rebind.example.com:3000", "", 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			api := httpapi.New([]httpapi.Agent{newAgent("demo")}, httpapi.Options{Auth: tc.policy, Origins: []string{"https://app.example.com"}})
			for _, path := range []string{"/demo/v1/mcp", "/demo/v1/mcp/tools"} {
				r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
				r = r.WithContext(contextWithAddr(r, "127.0.0.1:3000"))
				r.Host, r.RemoteAddr = tc.host, "127.0.0.1:54321"
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer secret")
				if tc.origin != "" {
					r.Header.Set("Origin", tc.origin)
				}
				w := httptest.NewRecorder()
				api.ServeHTTP(w, r)
				if w.Code != tc.want || !strings.Contains(w.Body.String(), `"jsonrpc":"2.0"`) {
					t.Errorf("%s: got %d %s; want %d", path, w.Code, w.Body, tc.want)
				}
			}
		})
	}
}

// contextWithAddr is the context of a request that came to an address.
func contextWithAddr(r *http.Request, address string) context.Context {
	addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
	return context.WithValue(r.Context(), http.LocalAddrContextKey, addr)
}
