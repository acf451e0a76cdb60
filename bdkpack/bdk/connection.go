package bdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Connection is a server of tools that speaks the Model Context Protocol, or another agent. The file bot/mcp-connections/linear.go
// defines the connection linear, whose tools the model may be offered; one in bot/host-connections/ is for code only, which has
// both kinds in [Services].MCP. A Connection has a URL, a Command or an Agent, and not two of them.
//
// A server that cannot be reached keeps no turn from going on: its tools are missing, and GET /v1/tools says why. It is tried again
// with the next turn, after a pause that grows from a second to a minute.
//
// In URL, Headers, Args and Env, ${NAME} stands for the variable NAME of the environment, or of the deployment's secret on AWS, each
// time the connection is opened. Values of variables are never shown.
type Connection struct {
	// Description is what people read. Default: none.
	Description string

	// URL is where a server is reached over HTTP, such as https://mcp.example.com/mcp.
	URL string
	// Headers are sent with each request, such as Authorization: "Bearer ${LINEAR_TOKEN}". With an Agent, if it is reached over HTTP.
	Headers map[string]string
	// Auth returns headers for a session beside those of Headers: the server is reached as whoever the session is for. It is called
	// at the beginning of each turn and for each call of code, concurrently. Only with a URL or an Agent. Default: none.
	Auth func(ctx context.Context, s SessionInfo) (map[string]string, error)

	// Command is a program that is started and spoken to over its standard input and output, in the agent's folder. On AWS there are
	// no such programs: the connection cannot be opened there.
	Command string
	// Args are those of the Command.
	Args []string
	// Env is the environment of the Command, beside PATH, HOME and TMPDIR.
	Env map[string]string

	// Agent is the slug of another agent of the same host. Its tools are ask and check. The sessions that it has with this one belong
	// to the owner of this one. An agent that is elsewhere, as each is on AWS, has its address in the variable BDK_AGENT_ and its slug in
	// capitals, with _ for -, such as BDK_AGENT_CODE_REVIEW=https://abc.execute-api.eu-west-1.amazonaws.com/code-review.
	Agent string

	// AdvertiseTools offers the tools to the model, each under the name of the connection, two underscores and its own, such as
	// linear__create_issue. What the server says about them is shown as the server's words. Default: code alone has them; those of an
	// Agent are always offered.
	AdvertiseTools bool
	// Allow are the tools that may be used, by the server's names; * stands for any characters. Default: all.
	Allow []string
	// Deny are tools that may not, whatever Allow says.
	Deny []string
	// Reads are the tools that change nothing, like Allow: they run in dry runs and may run again after a crash. All others count as
	// writes, whatever the server says about them. Default: none.
	Reads []string
	// TrustHints believes the server about which of its tools change nothing.
	TrustHints bool
	// NeedsApproval says which calls of the model wait for a person's approval, as for a tool; those that change nothing never do.
	// Default: none.
	NeedsApproval Approval
	// Approvers are those of the calls that wait. Default: SessionOwner alone.
	Approvers []string

	// Timeout bounds one call, and the opening. Default: 1 minute.
	Timeout time.Duration
}

// WithDefaults returns the connection with the documented defaults filled in.
func (c Connection) WithDefaults() Connection {
	c.Timeout = or(c.Timeout, time.Minute)
	if c.Agent != "" {
		c.AdvertiseTools = true
		if c.Allow == nil {
			c.Allow = []string{"ask", "check"}
		}
		c.Reads = append(slices.Clone(c.Reads), "check")
	}
	return c
}

// Err returns all that is wrong with the definition, one mistake a line; nil if nothing is.
func (c Connection) Err() error {
	var errs []error
	transports := 0
	for _, t := range []string{c.URL, c.Command, c.Agent} {
		if t != "" {
			transports++
		}
	}
	switch {
	case transports == 0:
		errs = append(errs, errors.New("the connection leads nowhere: set URL, Command or Agent"))
	case transports > 1:
		errs = append(errs, errors.New("the connection has more than one of URL, Command and Agent: make two of it"))
	case c.Command == "" && (len(c.Args) > 0 || len(c.Env) > 0):
		errs = append(errs, errors.New("there are Args or Env, which are for a Command: a server behind a URL takes Headers"))
	case c.Command != "" && (len(c.Headers) > 0 || c.Auth != nil):
		errs = append(errs, errors.New("there are Headers or Auth, which are for a URL: a Command takes Env"))
	}
	errs = append(errs, c.checkURL(), c.checkHeaders(), c.checkFilters())
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("the Timeout is %s: leave it out for a minute", c.Timeout))
	}
	approval := ToolSpec{NeedsApproval: c.NeedsApproval, Approvers: c.Approvers}
	errs = append(errs, approval.checkApproval())
	for _, text := range c.templates() {
		if _, err := expand(text, func(string) (string, bool) { return "", true }); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c Connection) checkURL() error {
	if c.URL == "" || strings.Contains(c.URL, "${") {
		return nil // what it leads to shows when it is opened
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("the URL %.100q is none: write it with http:// or https:// and a host", c.URL)
	}
	if u.User != nil {
		return errors.New("the URL has a user and a password in it: use Headers, with ${NAME} for what is secret")
	}
	return nil
}

func (c Connection) checkHeaders() error {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return fmt.Errorf("%.80q in Headers is no name of a header", name)
		}
	}
	return nil
}

func (c Connection) checkFilters() error {
	for _, pattern := range slices.Concat(c.Allow, c.Deny, c.Reads) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%.80q in Allow, Deny or Reads is no pattern: write the name of a tool, with * for any characters", pattern)
		}
	}
	return nil
}

// templates returns the texts in which variables stand.
func (c Connection) templates() []string {
	all := append([]string{c.URL}, c.Args...)
	for _, m := range []map[string]string{c.Headers, c.Env} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			all = append(all, m[name])
		}
	}
	return all
}

// Variables returns the names that stand in templates, in alphabetical order.
func (c Connection) Variables() []string {
	names := map[string]bool{}
	for _, text := range c.templates() {
		_, _ = expand(text, func(name string) (string, bool) { // what is wrong with it is for Err
			names[name] = true
			return "", true
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// Expand returns the connection with the value of each variable in its place. The error names those that lookup does not have.
func (c Connection) Expand(lookup func(name string) (string, bool)) (Connection, error) {
	var errs []error
	put := func(text string) string {
		s, err := expand(text, lookup)
		if err != nil {
			errs = append(errs, err)
		}
		return s
	}
	putAll := func(m map[string]string) map[string]string {
		out := make(map[string]string, len(m))
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out[name] = put(m[name])
		}
		return out
	}
	c.URL, c.Headers, c.Env, c.Args = put(c.URL), putAll(c.Headers), putAll(c.Env), slices.Clone(c.Args)
	for i, arg := range c.Args {
		c.Args[i] = put(arg)
	}
	if len(errs) > 0 {
		return Connection{}, errors.Join(errs...)
	}
	return c, nil
}

// expand puts the values of variables in their places. $ without { stays as it is.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !isVariable(name) {
			return "", fmt.Errorf("${%.40s is not closed, or names no variable: write ${NAME}, with letters, digits and _", rest)
		}
		value, ok := lookup(name)
		if !ok {
			return "", fmt.Errorf("the variable %s is not set", name)
		}
		out.WriteString(value)
		text = after
	}
}

func isVariable(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// Allows reports whether a tool of the server may be used.
func (c Connection) Allows(name string) bool {
	return (len(c.Allow) == 0 || matches(c.Allow, name)) && !matches(c.Deny, name)
}

// Knows reports whether the author says that a tool of the server changes nothing.
func (c Connection) Knows(name string) bool { return matches(c.Reads, name) }

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// MCP are the connections of the agent, of both kinds, as code has them. It is safe for concurrent use.
type MCP interface {
	// Tools returns the tools of a connection that may be used, in name order. The error is ErrNotFound if there is no such connection.
	Tools(ctx context.Context, connection string) ([]MCPTool, error)
	// Call calls a tool of a connection by the server's name, with arguments that are encoded as a JSON object; nil stands for none.
	// That the tool itself failed is in the Output. In a dry-run session a tool that may change something is not called: the error
	// is ErrDryRun. A call that failed on its way may have been made.
	Call(ctx context.Context, connection, tool string, args any) (Output, error)
}

// MCPTool is a tool of a connection, in the server's words, which need not be true.
type MCPTool struct {
	Name        string          // as the server has it
	Title       string          // "" if it has none
	Description string          // "" if it has none
	InputSchema json.RawMessage // a JSON Schema
	Reads       bool            // a call changes nothing, as far as the connection's definition says or trusts the server
}
