// Package connection reaches the servers of tools, and the other agents, that an agent is connected to, over the Model Context Protocol.
//
// A [Set] opens a connection when something of it is needed, and keeps it. One that cannot be opened, or breaks, is tried again by
// whoever needs it next, after a pause that doubles from a second to a minute; until then the reason is among [Set.Faults]. Nothing
// happens between calls, so a process may be frozen there. What a server says about itself is data of a stranger: it is bounded and
// cleaned here, and never part of the agent's instructions.
package connection

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
)

// Set is the connections of one agent. It is safe for concurrent use.
type Set struct {
	opts    Options
	all     map[string]*server
	offered []*server // to the model, in name order
	closing sync.WaitGroup
}

var _ engine.Connections = (*Set)(nil)

// Options are what a set works with.
type Options struct {
	Dir string // where commands run
	// Lookup returns the variables in templates, "" for one that is not set; nil: none are.
	Lookup func(ctx context.Context, name string) (string, error)
	// Peer returns what carries messages to another agent in this process as an owner, nil if the agent is not here; nil: none is.
	Peer func(slug, owner string) http.RoundTripper
	HTTP http.RoundTripper // default: one of the set's own

	NoCommands bool // the host cannot run programs

	Clock clock.Clock  // default: the system clock
	Log   *slog.Logger // default: nothing is logged
}

// New returns the connections of an agent. It opens none. It fails with the mistakes of all definitions.
func New(project bdk.Project, opts Options) (*Set, error) {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.HTTP == nil {
		opts.HTTP = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: openTime}
	}
	if opts.Lookup == nil {
		opts.Lookup = func(context.Context, string) (string, error) { return "", nil }
	}
	if opts.Peer == nil {
		opts.Peer = func(string, string) http.RoundTripper { return nil }
	}
	s := &Set{opts: opts, all: make(map[string]*server)}
	hidden := len(project.Connections) // from here on they are for code only
	var errs []error
	for i, c := range slices.Concat(project.Connections, project.HostConnections) {
		err := c.Connection.Err()
		if c.Connection.Agent == project.Slug {
			err = errors.Join(err, errors.New("the agent is connected to itself"))
		}
		if twin := s.all[c.Name]; twin != nil {
			err = errors.Join(err, fmt.Errorf("%s defines a connection of the same name", twin.Source))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("connection %s (%s): %w", c.Name, c.Source, err))
			continue
		}
		v := &server{NamedConnection: c, set: s, def: c.Connection.WithDefaults(), links: make(map[string]*link), hidden: i >= hidden}
		s.all[c.Name] = v
		if v.def.AdvertiseTools && !v.hidden {
			s.offered = append(s.offered, v)
		}
	}
	return s, errors.Join(errs...)
}

// Close closes what is open. Programs that were started end.
func (s *Set) Close() {
	for _, v := range s.all {
		for _, l := range v.forget() {
			s.closing.Go(l.close)
		}
	}
	s.closing.Wait()
	if t, ok := s.opts.HTTP.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Tools returns the tools that the model is offered in a session, in name order. Servers are asked at the same time, for a few
// seconds at most; those that do not answer are among [Set.Faults].
func (s *Set) Tools(ctx context.Context, info bdk.SessionInfo) []bdk.NamedTool {
	lists := make([][]bdk.NamedTool, len(s.offered))
	var all sync.WaitGroup
	for i, v := range s.offered {
		all.Go(func() {
			l, err := v.link(ctx, info)
			if err != nil {
				return
			}
			tools, _ := l.list(ctx) // a fault is kept
			for _, m := range tools {
				lists[i] = append(lists[i], m.named)
			}
		})
	}
	all.Wait()
	tools := slices.Concat(lists...)
	slices.SortFunc(tools, func(a, b bdk.NamedTool) int { return strings.Compare(a.Name, b.Name) })
	return tools
}

// Find returns the tool of a connection that the model knows by a name. It asks no server: of a tool that is not known yet the
// schema is open, and a call finds out whether it exists.
func (s *Set) Find(name string) (bdk.NamedTool, bool) {
	connection, _, ok := strings.Cut(name, mark)
	i := slices.IndexFunc(s.offered, func(v *server) bool { return v.Name == connection })
	if !ok || i < 0 {
		return bdk.NamedTool{}, false
	}
	v := s.offered[i]
	if m, known := v.known(name); known {
		return m.named, true
	}
	return v.unseen(name), true
}

// Faults returns what is wrong with the connections now, but for those that are for code only, in the order of their names.
func (s *Set) Faults() []engine.ConnectionFault {
	var faults []engine.ConnectionFault
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if s.all[name].hidden {
			continue
		}
		for _, why := range s.all[name].faults() {
			faults = append(faults, engine.ConnectionFault{Name: name, Message: why})
		}
	}
	return faults
}

// For returns the connections as the code of a session has them.
func (s *Set) For(info bdk.SessionInfo) bdk.MCP { return &service{s, info} }

// server is one connection, which may be open several times: once for each set of headers.
type server struct {
	bdk.NamedConnection

	set *Set
	def bdk.Connection

	hidden bool // for code only

	mu     sync.Mutex
	links  map[string]*link // by what they are opened with
	recent []string         // the keys of links, the last used first
	auth   string           // why Auth failed the last time; "" if it did not
}

// maxLinks bounds how often a connection is open at once, for different sessions.
const maxLinks = 64

// link returns the connection as it is opened for a session.
func (v *server) link(ctx context.Context, info bdk.SessionInfo) (*link, error) {
	headers, err := v.headers(ctx, info)
	key := fmt.Sprintf("%q", slices.Sorted(pairs(headers)))
	if v.def.Agent != "" {
		key += info.Owner
	}
	sum := sha256.Sum256([]byte(key)) // headers are secrets: they need not be kept twice
	key = string(sum[:])
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.auth = ""; err != nil {
		v.auth = err.Error()
		return nil, err
	}
	l := v.links[key]
	if l == nil {
		l = &link{server: v, headers: headers, owner: info.Owner, turn: make(chan struct{}, 1)}
		v.links[key] = l
	}
	v.recent = append([]string{key}, slices.DeleteFunc(v.recent, func(k string) bool { return k == key })...)
	if len(v.recent) > maxLinks {
		last := v.recent[maxLinks]
		v.recent = v.recent[:maxLinks]
		v.set.closing.Go(v.links[last].close)
		delete(v.links, last)
	}
	return l, nil
}

func (v *server) headers(ctx context.Context, info bdk.SessionInfo) (headers map[string]string, err error) {
	if v.def.Auth == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function Auth panicked: %v", p)
		}
	}()
	if headers, err = v.def.Auth(ctx, info); err != nil {
		return nil, fmt.Errorf("the function Auth: %w", err)
	}
	return headers, nil
}

func pairs(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k, x := range m {
			if !yield(k + ": " + x) {
				return
			}
		}
	}
}

// known returns a tool that some list of the server had, by the name that the model knows.
func (v *server) known(name string) (mounted, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range v.recent {
		if tools := v.links[key].tools.Load(); tools != nil {
			if i := slices.IndexFunc(*tools, func(m mounted) bool { return m.named.Name == name }); i >= 0 {
				return (*tools)[i], true
			}
		}
	}
	return mounted{}, false
}

func (v *server) faults() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []string
	if v.auth != "" {
		all = append(all, v.auth)
	}
	for _, key := range v.recent {
		if f := v.links[key].faults.Load(); f != nil {
			all = append(all, *f...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// forget returns all links and has none any more.
func (v *server) forget() []*link {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := slices.Collect(maps.Values(v.links))
	v.links, v.recent = make(map[string]*link), nil
	return all
}
