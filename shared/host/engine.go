package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/filestore"
	"github.com/bdk-lambda/bdk/shared/harness"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/reminder"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/wake"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// Parts are what an agent works with. All but Scripts, Temp, StateRoot, Alarm and MaxArtifacts are required.
type Parts struct {
	Sessions  *session.Store
	KV        *kv.Store
	Blobs     *blob.Store
	Runner    turn.Runner
	Scripts   exec.Runner // runs agent tools and the commands of a shell; nil: the host runs none
	Models    Models
	Clock     clock.Clock
	Log       *slog.Logger
	Temp      string // where directories with the files of sessions are made; "" for the system's
	StateRoot string // passed to tools; "" where the host has none

	Connections engine.Connections // nil: none

	Alarm        wake.Alarm // rings for reminders; nil: somebody runs their loop
	MaxArtifacts int        // as of artifact.Options
}

// NewEngine returns the engine of an agent whose folder is root, see [Models.Of].
func NewEngine(ctx context.Context, project bdk.Project, root string, parts Parts) (*engine.Engine, error) {
	models, err := parts.Models.Of(ctx, project.Agent, root)
	if err != nil {
		return nil, err
	}
	lanes, err := subagentModels(ctx, project, root, parts.Models)
	if err != nil {
		return nil, err
	}
	opts := harness.Options{Allow: project.Agent.Tools, Skills: project.Skills, Subagents: project.Subagents, Kinds: project.ArtifactKinds, Scripts: parts.Scripts}
	more, err := harness.Tools(opts)
	if err != nil {
		return nil, err
	}
	tools, err := tool.NewSet(slices.Concat(project.Tools, more), tool.Options{
		Claims: parts.KV, Clock: parts.Clock, Scripts: parts.Scripts, More: moreTools(parts.Connections),
	})
	if err != nil {
		return nil, err
	}
	stored := filestore.New(parts.KV, parts.Blobs, parts.Clock, project.Slug)
	files, err := workspaces(project, root, parts, stored.Memory)
	if err != nil {
		return nil, err
	}
	return engine.New(project, engine.Deps{
		Sessions: parts.Sessions, Runner: parts.Runner, Tools: tools, Models: models, Subagents: lanes, Guide: harness.Instructions(opts),
		Artifacts: artifact.New(parts.KV, parts.Blobs, artifact.Options{
			Agent: project.Slug, Clock: parts.Clock, Kinds: project.ArtifactKinds.Kinds, Max: cmp.Or(parts.MaxArtifacts, project.ArtifactKinds.Max), Log: parts.Log,
		}),
		Reminders: reminder.New(parts.KV, reminder.Options{Agent: project.Slug, Clock: parts.Clock, Alarm: parts.Alarm, Log: parts.Log}),
		Files:     stored, KV: parts.KV, Workspaces: files, Blobs: parts.Blobs, Clock: parts.Clock, Log: parts.Log, StateRoot: parts.StateRoot,
		Connections: parts.Connections,
	})
}

// moreTools returns what finds the tools of connections.
func moreTools(c engine.Connections) func(string) (bdk.NamedTool, bool) {
	if c == nil {
		return nil
	}
	return c.Find
}

// subagentModels opens the models of the subagents that have their own.
func subagentModels(ctx context.Context, project bdk.Project, root string, models Models) (map[string][]engine.NamedModel, error) {
	lanes := make(map[string][]engine.NamedModel)
	for _, s := range project.Subagents {
		if s.Agent.Model == "" {
			continue
		}
		own, err := models.Of(ctx, s.Agent, root)
		if err != nil {
			return nil, fmt.Errorf("subagent %s: %w", s.Name, err)
		}
		lanes[s.Name] = own
	}
	return lanes, nil
}

// workspaces returns the files of the agent's sessions.
func workspaces(project bdk.Project, root string, parts Parts, shown func(context.Context) (map[string][]byte, error)) (*workspace.Store, error) {
	base, err := harness.Base(project, root)
	if err != nil {
		return nil, err
	}
	var seed *workspace.Layer
	if project.Seed != "" {
		if seed, err = workspace.LayerOf(filepath.Join(root, filepath.FromSlash(project.Seed)), ""); err != nil {
			return nil, err
		}
	}
	return workspace.New(parts.Blobs, workspace.Options{Base: base, Shown: shown, Seed: seed, TempDir: parts.Temp, Log: parts.Log}), nil
}
