package httpapi

import (
	"cmp"
	"encoding/json"
	"html"
	"math"
	"net/http"
	"strings"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

// card is an agent in an index.
type card struct {
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url"` // of the agent's routes
}

func (x *exchange) cards() []card {
	cards := make([]card, 0, len(x.agents))
	for _, a := range x.agents {
		p := a.Project()
		cards = append(cards, card{p.Slug, cmp.Or(p.Agent.Name, p.Slug), p.Agent.Description, x.prefix(p.Slug) + "/v1"})
	}
	return cards
}

// index shows the agents to people.
func (x *exchange) index() error {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Agents</title>\n<h1>Agents</h1>\n<ul>\n")
	for _, c := range x.cards() {
		url := html.EscapeString(c.URL)
		b.WriteString("<li><a href=\"" + url + "/info\">" + html.EscapeString(c.Name) + "</a> <code>" + url + "</code>")
		if c.Description != "" {
			b.WriteString("<br>" + html.EscapeString(c.Description))
		}
		b.WriteString("\n")
	}
	b.WriteString("</ul>\n</html>\n")
	h := x.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	x.extend()
	_, _ = x.w.Write([]byte(b.String())) // the reader is gone: nobody to tell
	return nil
}

// listAgents shows the agents to programs.
func (x *exchange) listAgents() error {
	cards := x.cards()
	for i := range cards {
		cards[i].URL = x.base() + cards[i].URL
	}
	x.json(http.StatusOK, struct {
		OK     bool   `json:"ok"`
		Agents []card `json:"agents"`
	}{true, cards})
	return nil
}

// health says that the host, or the agent, is alive.
func (x *exchange) health() error {
	answer := struct {
		OK     bool   `json:"ok"`
		Agent  string `json:"agent,omitempty"`  // the slug; absent for the host
		Agents int    `json:"agents,omitempty"` // of the host
	}{OK: true, Agent: x.slug}
	if x.agent == nil {
		answer.Agents = len(x.agents)
	}
	x.json(http.StatusOK, answer)
	return nil
}

// info shows what was discovered of the agent.
func (x *exchange) info() error {
	if _, err := x.query(); err != nil {
		return err
	}
	p := x.agent.Project()
	x.json(http.StatusOK, struct {
		OK bool `json:"ok"`
		Info
		ConnectionErrors []engine.ConnectionFault `json:"connectionErrors"` // as far as it is known; GET /v1/tools finds out
	}{true, Describe(p, x.agent.Models(), x.opts.Diagnostics[p.Slug], x.opts.Clock.Now()), append([]engine.ConnectionFault{}, x.agent.ConnectionFaults()...)})
	return nil
}

// logs shows the latest log records of the agent and of the host.
func (x *exchange) logs() error {
	q, err := x.query("after")
	if err != nil {
		return err
	}
	after, err := q.number("after", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	answer := struct {
		OK   bool               `json:"ok"`
		Logs []telemetry.Record `json:"logs"`
		Next int64              `json:"next"` // what to ask after the next time
	}{OK: true, Logs: []telemetry.Record{}}
	if x.opts.Logs != nil {
		var records []telemetry.Record
		if records, answer.Next, err = x.opts.Logs.After(x.r.Context(), after); err != nil {
			return err
		}
		for _, r := range records {
			if slug := r.Slug(); (slug == "" || slug == x.slug) && x.maySee(r) {
				answer.Logs = append(answer.Logs, r)
			}
		}
	}
	x.json(http.StatusOK, answer)
	return nil
}

// maySee reports whether a log record is for the caller: what is about a session, or a request, is for its owner alone.
func (x *exchange) maySee(r telemetry.Record) bool {
	who := func(key string) string {
		var name string
		_ = json.Unmarshal(r.Attrs[key], &name) // absent: ""
		return name
	}
	owner := cmp.Or(who("owner"), who("principal"))
	return owner == string(x.caller) || owner == "" && (r.Attrs["session_id"] == nil || x.caller == auth.Local)
}
