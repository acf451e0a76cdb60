package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

const (
	openTime   = 10 * time.Second // how long a turn waits for a server to tell its tools
	fresh      = 10 * time.Second // how long a list of tools is good for, unless the server says that it has changed
	firstPause = time.Second      // after a first failure; it doubles up to
	mostPause  = time.Minute
	maxTools   = 128 // of a connection that the model is offered
)

// link is a connection that was opened with certain headers, or is not open now.
type link struct {
	*server

	headers map[string]string
	owner   string // as whom an agent of this host is reached

	turn     chan struct{} // full while somebody opens, lists or closes: it guards the fields up to retryAt
	session  *mcp.ClientSession
	secrets  *strings.Replacer // takes the values of variables out of texts
	listed   time.Time
	failures int
	why      string // of the last failure
	retryAt  time.Time

	tools   atomic.Pointer[[]mounted] // of the last list, in name order
	faults  atomic.Pointer[[]string]
	changed atomic.Bool // the server has said that its tools have
	lost    atomic.Bool // the session was
}

func (l *link) enter(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the connection %s: %w", l.Name, context.Cause(ctx))
	}
}

func (l *link) leave() { <-l.turn }

// list returns the tools of the server, opening the connection if it is not.
func (l *link) list(ctx context.Context) ([]mounted, error) {
	ctx, cancel := context.WithTimeout(ctx, min(l.def.Timeout, openTime))
	defer cancel()
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.leave()
	return l.refresh(ctx)
}

// refresh is list for who has the turn. A session that is found broken is opened once more at once.
func (l *link) refresh(ctx context.Context) ([]mounted, error) {
	again := l.session != nil
	for {
		if err := l.open(ctx); err != nil {
			return nil, err
		}
		if tools := l.tools.Load(); tools != nil && !l.changed.Load() && l.set.opts.Clock.Now().Before(l.listed.Add(fresh)) {
			return *tools, nil
		}
		l.changed.Store(false)
		tools, notes, err := l.fetch(ctx)
		if err == nil {
			l.listed, l.failures = l.set.opts.Clock.Now(), 0
			l.tools.Store(&tools)
			l.faults.Store(&notes)
			return tools, nil
		}
		l.drop()
		if !again || ctx.Err() != nil {
			return nil, l.fail(ctx, "listing its tools", err)
		}
		again = false
	}
}

// fetch asks the server for its tools. What is not taken is noted.
func (l *link) fetch(ctx context.Context) (tools []mounted, notes []string, err error) {
	for t, err := range l.session.Tools(ctx, nil) {
		if err != nil {
			return nil, nil, err
		}
		if !l.def.Allows(t.Name) {
			continue
		}
		if len(tools) == maxTools {
			notes = append(notes, fmt.Sprintf("the server has more than %d tools: choose with Allow", maxTools))
			break
		}
		m, err := l.mount(t)
		if err == nil && slices.ContainsFunc(tools, func(o mounted) bool { return o.named.Name == m.named.Name }) {
			err = fmt.Errorf("its name becomes %s, which another tool has", m.named.Name)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("the tool %.80q is left out: %.300s", clean(t.Name, 80), err))
			continue
		}
		tools = append(tools, m)
	}
	slices.SortFunc(tools, func(a, b mounted) int { return strings.Compare(a.named.Name, b.named.Name) })
	return tools, notes, nil
}

// open opens the connection if it is not open, or has broken.
func (l *link) open(ctx context.Context) error {
	if l.lost.Swap(false) {
		l.drop()
	}
	if l.session != nil {
		return nil
	}
	if l.set.opts.Clock.Now().Before(l.retryAt) {
		return errors.New(l.why)
	}
	def, err := l.expanded(ctx)
	if err != nil {
		return l.fail(ctx, "opening it", err)
	}
	transport, err := l.transport(ctx, def)
	if err != nil {
		return l.fail(ctx, "opening it", err)
	}
	opts := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if def.Command != "" { // over HTTP it would take a request that stays open between calls
		opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { l.changed.Store(true) }
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "bdk", Version: "1"}, opts)
	if l.session, err = client.Connect(ctx, transport, nil); err != nil {
		l.session = nil
		return l.fail(ctx, "opening it", err)
	}
	l.listed = time.Time{}
	return nil
}

// expanded returns the definition with the values of its variables, which no text of this link shows from now on.
func (l *link) expanded(ctx context.Context) (bdk.Connection, error) {
	var hide []string
	var unread error
	def, err := l.def.Expand(func(name string) (string, bool) {
		value, err := l.set.opts.Lookup(ctx, name)
		if len(value) > 3 {
			hide = append(hide, value, "${"+name+"}")
		}
		unread = errors.Join(unread, err)
		return value, value != ""
	})
	if unread != nil {
		err = fmt.Errorf("reading its variables: %w", unread)
	}
	for _, value := range l.headers {
		if len(value) > 3 {
			hide = append(hide, value, "***")
		}
	}
	l.secrets = strings.NewReplacer(hide...)
	return def, err
}

// fail keeps a reason why the connection cannot be used, and when it may be tried again.
func (l *link) fail(ctx context.Context, doing string, err error) error {
	pause := min(firstPause<<min(l.failures, 10), mostPause)
	l.failures++
	l.retryAt = l.set.opts.Clock.Now().Add(pause)
	text := err.Error()
	if l.secrets != nil {
		text = l.secrets.Replace(text)
	}
	l.why = fmt.Sprintf("the connection %s cannot be used: %s: %s", l.Name, doing, clean(text, 500))
	l.faults.Store(&[]string{l.why})
	l.set.opts.Log.WarnContext(ctx, "connection failed", slog.String("connection", l.Name), slog.Int("failures", l.failures), slog.String("error", l.why))
	return errors.New(l.why)
}

// drop closes a session that is of no use any more.
func (l *link) drop() {
	if l.session == nil {
		return
	}
	s := l.session
	l.session = nil
	_ = s.Close() // what is wrong with it is known
}

func (l *link) close() {
	l.turn <- struct{}{}
	defer l.leave()
	l.drop()
}

// opened returns the open session.
func (l *link) opened(ctx context.Context) (*mcp.ClientSession, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.leave()
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	return l.session, nil
}

// call calls a tool. One that reads is called again if it failed on its way; another one only if the server has said that it did not
// take the call.
func (l *link) call(ctx context.Context, name string, args json.RawMessage, reads bool) (bdk.Output, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.def.Timeout, fmt.Errorf("the call took longer than the Timeout of %s", l.def.Timeout))
	defer cancel()
	for again := true; ; again = false {
		session, err := l.opened(ctx)
		if err != nil {
			return bdk.Output{}, fmt.Errorf("the call was not made: %w", err)
		}
		trip := &trip{}
		res, err := session.CallTool(context.WithValue(ctx, tripKey{}, trip), &mcp.CallToolParams{Name: name, Arguments: args})
		if err == nil {
			return outputOf(res), nil
		}
		refused, told := trip.outcome(err)
		switch {
		case told:
			return bdk.Output{}, fmt.Errorf("%s refused the call of %s: %s", l.Name, name, l.hidden(err))
		case ctx.Err() != nil:
			return bdk.Output{}, unknown(reads, refused, context.Cause(ctx).Error())
		}
		l.broken(ctx, session, err)
		if !again || !reads && !refused {
			return bdk.Output{}, unknown(reads, refused, l.hidden(err))
		}
	}
}

// unknown is the error of a call that failed on its way.
func unknown(reads, refused bool, why string) error {
	if reads || refused {
		return fmt.Errorf("the call failed: %s", why)
	}
	return fmt.Errorf("outcome unknown: the call failed on its way: %s. Check what it did before you decide to repeat it", why)
}

// hidden returns the text of an error without the values of variables.
func (l *link) hidden(err error) string {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Message != "" && wire.Code != rejected {
		return clean(l.secrets.Replace(wire.Message), 2000)
	}
	return clean(l.secrets.Replace(err.Error()), 2000)
}

// broken gives up a session that a call has found broken. The next use opens another one, at once.
func (l *link) broken(ctx context.Context, session *mcp.ClientSession, err error) {
	l.set.opts.Log.WarnContext(ctx, "connection broke", slog.String("connection", l.Name), slog.String("error", l.hidden(err)))
	if l.enter(ctx) != nil {
		l.lost.Store(true)
		return
	}
	defer l.leave()
	if l.session == session {
		l.drop()
	}
}
