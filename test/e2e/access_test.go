package e2e_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/launch"
)

// TestLoopback: without options a host serves this machine, and nobody who comes through it.
func TestLoopback(t *testing.T) {
	t.Parallel()
	ann := serve(t, "--dir", workshop, "--state-root", t.TempDir()).target("workshop").Ann(t)
	s := ann.Start("hello")
	s.Completed()
	for _, header := range [][]string{
		{"X-Forwarded-For", "203.0.113.7"},
		{"Forwarded", "for=203.0.113.7"},
		{"Via", "1.1 proxy"},
		{"X-Real-IP", "127.0.0.1"},
		{"Host", "rebound.example"},
		{"Host", "127.0.0.1.example:80"},
		{"Host", "[::1]x"},
	} {
		ann.Do("GET", "/v1/info", "", header...).Refused(strings.Join(header, ": "), 401, "unauthenticated")
		ann.Do("POST", s.Path("/stop"), "", header...).Refused(strings.Join(header, ": "), 401, "unauthenticated")
	}
	ann.Do("POST", "/v1/session", `{"message":"x"}`, "Origin", "https://page.example", "Sec-Fetch-Site", "cross-site").Refused("a foreign page", 401, "unauthenticated")
	if a := ann.Do("GET", "/v1/info", "", "Host", "localhost:3000"); a.Status != 200 {
		t.Errorf("localhost: got %d %s", a.Status, a.Raw)
	}
	if a := ann.Do("GET", "/v1/health", "", "Via", "1.1 proxy"); a.Status != 200 {
		t.Errorf("health is public: got %d %s", a.Status, a.Raw)
	}
	s.Usable()
}

// TestAnonymous: everybody is served if that is asked for.
func TestAnonymous(t *testing.T) {
	t.Parallel()
	ann := serve(t, "--dir", workshop, "--state-root", t.TempDir(), "--allow-anonymous").target("workshop").Ann(t)
	if a := ann.Do("POST", "/v1/session", `{"message":"hello"}`, "X-Forwarded-For", "203.0.113.7", "Host", "agents.example"); a.Status != 202 || !strings.Contains(a.Text("traceUrl"), "agents.example") {
		t.Errorf("got %d %s", a.Status, a.Raw)
	}
	ann.Start("hello").Completed()
}

// TestSingle: one agent is served at the root, without the index.
func TestSingle(t *testing.T) {
	t.Parallel()
	host := serve(t, "--dir", workshop, "--state-root", t.TempDir(), "--mode", "single", "--no-playground", "--bearer-token", "secret")
	target := target(host.url, "")
	target.URL = host.url
	target.Sign = func(r *http.Request, _ string) { r.Header.Set("Authorization", "Bearer secret") }
	ann := target.Ann(t)
	ann.Start("add it").Completed()
	if a := ann.Do("GET", "/v1/health", ""); a.Text("agent") != "workshop" {
		t.Errorf("health: %s", a.Raw)
	}
	for _, path := range []string{"/workshop/v1/info", "/v1/agents", "/"} {
		ann.Do("GET", path, "").Refused(path, 404, "not_found")
	}
}

// TestFolderOfAgents: agents of one host have sessions of their own.
func TestFolderOfAgents(t *testing.T) {
	t.Parallel()
	host := serve(t, "--dir", "../agents", "--state-root", t.TempDir())
	ann, other := host.target("workshop").Ann(t), host.target("joined").Ann(t)
	s := ann.Start("add it")
	s.Completed()
	other.Start("hello").Completed()
	for _, route := range []string{"/events", "/stream", "/cost"} {
		other.Do("GET", s.Path(route), "").Refused(route, 404, "not_found")
	}
	other.Do("POST", s.Path("/stop"), "").Refused("/stop", 404, "not_found")
	if n, m := ann.Sessions(), other.Sessions(); n != 1 || m != 1 {
		t.Errorf("%d and %d sessions are listed; want 1 and 1", n, m)
	}
	s.Usable()
}

// TestOddRequests: what is hardly HTTP is refused by the server, which lives on.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	target := inProcess(t, script, launch.Config{})
	address := strings.TrimPrefix(target.HostURL, "http://")
	const host = "Host: 127.0.0.1\r\n"
	for name, tc := range map[string]struct{ text, want string }{
		"no host":            {"GET /workshop/v1/info HTTP/1.1\r\n\r\n", "400"},
		"two hosts":          {"GET /workshop/v1/info HTTP/1.1\r\n" + host + host + "\r\n", "400"},
		"another host":       {"GET http://other.example/workshop/v1/info HTTP/1.1\r\n" + host + "\r\n", "401"},
		"no path":            {"GET workshop HTTP/1.1\r\n" + host + "\r\n", "400"},
		"no protocol":        {"hello\r\n\r\n", "400"},
		"long headers":       {"GET /workshop/v1/info HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", "431"},
		"two lengths":        {"POST /workshop/v1/session HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "400"},
		"length and chunks":  {"POST /workshop/v1/session HTTP/1.1\r\n" + host + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "4"},
		"a negative length":  {"POST /workshop/v1/session HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", "400"},
		"a promise of a lot": {"POST /workshop/v1/session HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{", "413"},
		"bad chunks":         {"POST /workshop/v1/session HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
	} {
		if got := raw(t, address, tc.text); !strings.HasPrefix(got, "HTTP/1.1 "+tc.want) {
			t.Errorf("%s: got %q; want %s", name, got, tc.want)
		}
	}
	target.Ann(t).Start("hello").Completed()
}

// raw sends bytes over a connection of its own and returns the status line of the answer.
func raw(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, text) // the answer may come before all was sent
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}
