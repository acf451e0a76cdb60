package engine

import (
	"context"
	"log/slog"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/values"
)

// record appends to the log of a session.
type record func(context.Context, ...event.Data) error

// services returns what the host offers to code that works for a session: it reads the session's files with read, and what it records
// for people is told with record.
func (e *Engine) services(s bdk.SessionInfo, log *slog.Logger, read func(context.Context, string) ([]byte, error), record record) bdk.Services {
	services := bdk.Services{StateRoot: e.deps.StateRoot, Logger: log}
	if e.deps.Connections != nil {
		services.MCP = e.deps.Connections.For(s)
	}
	if e.deps.Artifacts != nil {
		services.Artifacts = &made{e, s, read, record}
	}
	if e.deps.Files != nil {
		services.Files = e.deps.Files.Session(s.ID, s.DryRun)
		if s.ID == "" {
			services.Files = e.deps.Files.Deployment()
		}
	}
	if e.deps.KV != nil {
		services.KV = values.New(e.deps.KV, e.project.Slug)
	}
	return services
}

// infoOf describes a session, in which a turn does something.
func infoOf(row session.Record, turnID string) bdk.SessionInfo {
	return bdk.SessionInfo{
		ID: row.ID, TurnID: turnID, Agent: row.Agent, Title: row.Title, Channel: row.Channel, Mode: string(row.Mode),
		Purpose: row.Purpose, Owner: row.Owner, DryRun: row.DryRun, AsOf: row.AsOf,
	}
}
