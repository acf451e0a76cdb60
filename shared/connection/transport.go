package connection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// maxAnswer bounds the answer to one request, in bytes.
const maxAnswer = 32 << 20

// transport returns what reaches the server of a definition whose variables have their values.
func (l *link) transport(ctx context.Context, def bdk.Connection) (mcp.Transport, error) {
	switch {
	case def.Command != "" && l.set.opts.NoCommands:
		return nil, errors.New("this host runs no programs for connections: reach the server by a URL")
	case def.Command != "":
		return l.command(ctx, def)
	case def.Agent != "":
		if peer := l.set.opts.Peer(def.Agent, l.owner); peer != nil {
			return l.http("http://"+def.Agent+".localhost/v1/mcp", peer, def.Headers)
		}
		name := PeerVariable(def.Agent)
		base, err := l.set.opts.Lookup(ctx, name)
		if err != nil || base == "" {
			return nil, fmt.Errorf("the agent %s is not on this host: set the variable %s to where it is served", def.Agent, name)
		}
		return l.http(strings.TrimSuffix(base, "/")+"/v1/mcp", l.set.opts.HTTP, def.Headers)
	}
	return l.http(def.URL, l.set.opts.HTTP, def.Headers)
}

// PeerVariable returns the name of the variable with the address of an agent that is not on this host.
func PeerVariable(slug string) string {
	return "BDK_AGENT_" + strings.ToUpper(strings.ReplaceAll(slug, "-", "_"))
}

// command starts a program, which gets a clean environment.
func (l *link) command(ctx context.Context, def bdk.Connection) (mcp.Transport, error) {
	path, err := exec.LookPath(def.Command)
	if err != nil {
		return nil, fmt.Errorf("the program %s is not installed, or not in the PATH", def.Command)
	}
	cmd := exec.Command(path, def.Args...) //nolint:gosec,noctx // the agent's author says what; it ends with the connection
	cmd.Dir = l.set.opts.Dir
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SYSTEMROOT"} {
		if value, err := l.set.opts.Lookup(ctx, name); err == nil && value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(def.Env)) {
		cmd.Env = append(cmd.Env, name+"="+def.Env[name])
	}
	cmd.Stderr = &lines{log: l.set.opts.Log.With(slog.String("connection", l.Name))}
	return &mcp.CommandTransport{Command: cmd}, nil
}

// lines logs what a program says on its standard error.
type lines struct {
	log  *slog.Logger
	rest []byte
}

// Write implements [io.Writer].
func (w *lines) Write(b []byte) (int, error) {
	const longest = 4 << 10
	w.rest = append(w.rest, b...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte{'\n'})
		if !found && len(w.rest) < longest {
			return len(b), nil
		}
		w.log.Debug("a connection's program says", slog.String("line", clean(string(line[:min(len(line), longest)]), longest)))
		w.rest = append([]byte(nil), rest...)
	}
}

func (l *link) http(address string, base http.RoundTripper, headers map[string]string) (mcp.Transport, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the URL is none: it must have http:// or https:// and a host")
	}
	all := maps.Clone(headers)
	if all == nil {
		all = make(map[string]string)
	}
	maps.Copy(all, l.headers)
	client := &http.Client{
		Transport: &tripper{base: base, headers: all, lost: &l.lost},
		// headers are for the server that the author has named
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: 2}, nil
}

// trip is what became of the request of one call.
type trip struct {
	status int  // 0: there was no answer
	lost   bool // the server does not know the session
	unsent bool // nothing was sent
}

type tripKey struct{}

// rejected is the code of errors that the transport makes itself.
const rejected = -32005

// outcome says what an error of a call means: whether the server did not take the call, and whether it said so as the answer.
func (t *trip) outcome(err error) (refused, told bool) {
	if errors.Is(err, mcp.ErrSessionMissing) || t.lost || t.unsent {
		return true, false
	}
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if ok && wire.Code != rejected && wire.Code != -32003 && wire.Code != -32004 {
		return true, true
	}
	return t.status >= 400 && t.status < 500 && t.status != http.StatusRequestTimeout, false
}

// unsent reports whether an error says that a request did not leave: there was nobody to send it to.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// tripper adds headers to requests and notes what becomes of them.
type tripper struct {
	base    http.RoundTripper
	headers map[string]string
	lost    *atomic.Bool
}

// RoundTrip implements [http.RoundTripper].
func (t *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	note, _ := r.Context().Value(tripKey{}).(*trip)
	if note == nil {
		note = &trip{}
	}
	r = r.Clone(r.Context())
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	res, err := t.base.RoundTrip(r)
	if err != nil {
		note.unsent = unsent(err)
		return nil, err
	}
	note.status = res.StatusCode
	res.Body = struct {
		io.Reader
		io.Closer
	}{&bounded{res.Body, maxAnswer}, res.Body}
	if r.Header.Get("Mcp-Session-Id") != "" && sessionLost(res) {
		note.lost = true
		t.lost.Store(true)
	}
	return res, nil
}

// sessionLost reports whether an answer says that the session is not known, which some servers do with 400.
func sessionLost(res *http.Response) bool {
	if res.StatusCode == http.StatusNotFound {
		return true
	}
	if res.StatusCode != http.StatusBadRequest {
		return false
	}
	const most = 4 << 10
	head, _ := io.ReadAll(io.LimitReader(res.Body, most))
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), res.Body), res.Body}
	return strings.Contains(strings.ToLower(string(head)), "session")
}

// bounded fails when more than a number of bytes is read.
type bounded struct {
	r    io.Reader
	left int64
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
