package host

import (
	"context"
	"log/slog"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// Parts are what an agent works with. All but StateRoot are required.
type Parts struct {
	Sessions  *session.Store
	KV        *kv.Store
	Runner    turn.Runner
	Models    Models
	Clock     clock.Clock
	Log       *slog.Logger
	StateRoot string // passed to tools; "" where the host has none
}

// NewEngine returns the engine of an agent whose folder is root, see [Models.Of].
func NewEngine(ctx context.Context, project bdk.Project, root string, parts Parts) (*engine.Engine, error) {
	models, err := parts.Models.Of(ctx, project.Agent, root)
	if err != nil {
		return nil, err
	}
	tools, err := tool.NewSet(project.Tools, tool.Options{Claims: parts.KV, Clock: parts.Clock})
	if err != nil {
		return nil, err
	}
	return engine.New(project, engine.Deps{
		Sessions: parts.Sessions, Runner: parts.Runner, Tools: tools, Models: models,
		Clock: parts.Clock, Log: parts.Log, StateRoot: parts.StateRoot,
	})
}
