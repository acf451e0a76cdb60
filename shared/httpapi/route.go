package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/shared/mcphost"
)

// Access says who may call a route.
type Access int

// The kinds of access.
const (
	Public Access = iota // everybody, without credentials
	Caller               // whom a policy admits
	Owner                // the principal that the session in the path belongs to
)

// Group says which routes are answered by one process where there are several.
type Group string

// The groups of routes.
const (
	Discovery Group = "discovery" // what the agent is and how it does
	Sessions  Group = "sessions"
	Stream    Group = "stream" // answers that may be long, or take long
	Tools     Group = "tools"  // tools, without a model: answers may take as long as a tool does
)

// Route is one line of the table.
type Route struct {
	Method  string // GET routes answer HEAD too
	Pattern string // below /<slug>, or below the root in single mode and for host routes
	Access  Access
	Group   Group
	Host    bool // describes the host rather than an agent
	Index   bool // exists only with the playground
	Dev     bool // exists only in development
	RPC     bool // speaks the Model Context Protocol: errors are those of JSON-RPC

	handle func(*exchange) error
}

// Routes returns the table of all routes.
func Routes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/{$}", Access: Public, Group: Discovery, Host: true, Index: true, handle: (*exchange).index},
		{Method: "GET", Pattern: "/v1/agents", Access: Public, Group: Discovery, Host: true, Index: true, handle: (*exchange).listAgents},
		{Method: "GET", Pattern: "/v1/health", Access: Public, Group: Discovery, Host: true, handle: (*exchange).health},

		{Method: "GET", Pattern: "/v1/health", Access: Public, Group: Discovery, handle: (*exchange).health},
		{Method: "GET", Pattern: "/v1/info", Access: Caller, Group: Discovery, handle: (*exchange).info},
		{Method: "GET", Pattern: "/v1/logs", Access: Caller, Group: Stream, handle: (*exchange).logs},
		{Method: "GET", Pattern: "/v1/sessions", Access: Caller, Group: Sessions, handle: (*exchange).list},
		{Method: "POST", Pattern: "/v1/session", Access: Caller, Group: Sessions, handle: (*exchange).start},
		{Method: "POST", Pattern: "/v1/session/{id}", Access: Owner, Group: Sessions, handle: (*exchange).send},
		{Method: "POST", Pattern: "/v1/session/{id}/stop", Access: Owner, Group: Sessions, handle: (*exchange).stop},
		{Method: "GET", Pattern: "/v1/session/{id}/stream", Access: Owner, Group: Stream, handle: (*exchange).stream},
		{Method: "GET", Pattern: "/v1/session/{id}/events", Access: Owner, Group: Stream, handle: (*exchange).events},
		{Method: "GET", Pattern: "/v1/session/{id}/cost", Access: Owner, Group: Sessions, handle: (*exchange).cost},
		{Method: "GET", Pattern: "/v1/session/{id}/approvals", Access: Caller, Group: Sessions, handle: (*exchange).approvals},
		{Method: "POST", Pattern: "/v1/session/{id}/approvals/{callId}", Access: Caller, Group: Sessions, handle: (*exchange).decide},
		{Method: "GET", Pattern: "/v1/artifacts", Access: Caller, Group: Sessions, handle: (*exchange).listArtifacts},
		{Method: "GET", Pattern: "/v1/artifacts/{id}/content", Access: Caller, Group: Stream, handle: (*exchange).artifactContent},
		{Method: "GET", Pattern: "/v1/tools", Access: Caller, Group: Tools, handle: (*exchange).listTools},
		{Method: "GET", Pattern: "/v1/tools/{name}", Access: Caller, Group: Tools, handle: (*exchange).showTool},
		{Method: "POST", Pattern: "/v1/tools/{name}", Access: Caller, Group: Tools, handle: (*exchange).callTool},
		{Method: "POST", Pattern: "/v1/dev/schedules/{scheduleId}", Access: Caller, Group: Tools, Dev: true, handle: (*exchange).dispatch},
		{Method: "GET", Pattern: "/v1/dev/reminders", Access: Caller, Group: Tools, Dev: true, handle: (*exchange).reminders},
		{Method: "POST", Pattern: "/v1/dev/reminders/{reminderId}", Access: Caller, Group: Tools, Dev: true, handle: (*exchange).remind},
		{Method: "POST", Pattern: "/v1/mcp", Access: Caller, Group: Tools, RPC: true, handle: (*exchange).talk},
		{Method: "POST", Pattern: "/v1/mcp/tools", Access: Caller, Group: Tools, RPC: true, handle: (*exchange).serveTools},
	}
}

// endpoint answers one path with one of its routes, by method.
type endpoint struct {
	*api

	agent  Agent // nil for the host
	slug   string
	mcp    *mcphost.Endpoint // of the agent
	routes map[string]Route
}

// mount registers the routes with the mux: a path once, whatever its methods, so that a wrong method is ours to answer.
func (a *api) mount() {
	a.lost = &endpoint{api: a}
	a.mux.Handle("/", a.lost)
	if !a.opts.Single {
		a.add("", "", nil, true)
	}
	for _, agent := range a.agents {
		slug := agent.Project().Slug
		if a.opts.Single {
			a.add("", slug, agent, false)
			continue
		}
		a.add("/"+slug, slug, agent, false)
	}
}

// add mounts the routes of the host, or of an agent below prefix. In single mode the agent answers for the host.
func (a *api) add(prefix, slug string, agent Agent, host bool) {
	paths := make(map[string]*endpoint)
	var mcp *mcphost.Endpoint
	if agent != nil {
		mcp = mcphost.New(agent, mcphost.Options{MaxWait: a.opts.MaxStream, Log: a.opts.Log})
	}
	for _, r := range Routes() {
		wanted := r.Host == host || r.Index && a.opts.Single
		if !wanted || r.Index && !a.opts.Playground || r.Dev && !a.opts.Dev {
			continue
		}
		path := prefix + r.Pattern
		e := paths[path]
		if e == nil {
			e = &endpoint{api: a, agent: agent, slug: slug, mcp: mcp, routes: make(map[string]Route)}
			paths[path] = e
			a.mux.Handle(path, e)
		}
		e.routes[r.Method] = r
	}
}

// allow returns the value of the Allow header.
func (e *endpoint) allow() string {
	var methods []string
	for m := range e.routes {
		methods = append(methods, m)
		if m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}
