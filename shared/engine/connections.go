package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/model"
)

// Connections are the servers of tools, and the other agents, that an agent is connected to. Implementations are safe for concurrent use.
type Connections interface {
	// Tools returns the tools of connections that the model is offered in a session, in name order. What cannot be reached is left out.
	Tools(ctx context.Context, s bdk.SessionInfo) []bdk.NamedTool
	// Find returns the tool of a connection that the model knows by a name. It asks nobody.
	Find(name string) (bdk.NamedTool, bool)
	// Faults returns what is wrong with the connections now.
	Faults() []ConnectionFault
	// For returns the connections as the code of a session has them.
	For(s bdk.SessionInfo) bdk.MCP
}

// ConnectionFault says why a connection, or a part of it, cannot be used.
type ConnectionFault struct {
	Name    string `json:"name"`    // of the connection
	Message string `json:"message"` // for people
}

// ConnectedTools returns the tools of connections that are offered in a session, and what is wrong with the connections.
func (e *Engine) ConnectedTools(ctx context.Context, s bdk.SessionInfo) ([]bdk.NamedTool, []ConnectionFault) {
	if e.deps.Connections == nil {
		return nil, nil
	}
	s.Agent = e.project.Slug
	tools := e.deps.Connections.Tools(ctx, s)
	return tools, e.deps.Connections.Faults()
}

// ConnectionFaults returns what is wrong with the connections, as far as it is known.
func (e *Engine) ConnectionFaults() []ConnectionFault {
	if e.deps.Connections == nil {
		return nil
	}
	return e.deps.Connections.Faults()
}

// find returns a tool of the agent, or of a connection.
func (e *Engine) find(name string) (bdk.NamedTool, bool) {
	i := slices.IndexFunc(e.project.Tools, func(t bdk.NamedTool) bool { return t.Name == name })
	switch {
	case i >= 0:
		return e.project.Tools[i], true
	case e.deps.Connections != nil:
		return e.deps.Connections.Find(name)
	}
	return bdk.NamedTool{}, false
}

// with returns a mind that is offered more tools.
func (m mind) with(more []model.Tool) mind {
	if len(more) == 0 {
		return m
	}
	tools := append(slices.Clone(m.tools), more...)
	slices.SortFunc(tools, func(a, b model.Tool) int { return strings.Compare(a.Name, b.Name) })
	return newMind(m.instructions, m.models, tools)
}

// connect finds out which tools of connections the turn has. That it has only some of them, or none, is no reason not to run.
func (r *run) connect(ctx context.Context) {
	if r.deps.Connections == nil {
		return
	}
	for _, t := range r.deps.Connections.Tools(ctx, infoOf(r.w.Row(), r.ref.TurnID)) {
		r.connected = append(r.connected, model.Tool{Name: t.Name, Description: t.Tool.Spec().Description, InputSchema: t.Tool.InputSchema()})
	}
}
