// Package engine runs the turns of one agent: it reads the session's log, asks the model, runs the tools, and records
// each thing as it happens, so that any process can go on where another one stopped.
package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/filestore"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/reminder"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// Engine serves one agent. It is safe for concurrent use.
type Engine struct {
	project   bdk.Project
	deps      Deps
	main      mind            // of the agent itself
	subagents map[string]mind // of its subagents, by name
	cache     *cache
}

// NamedModel is a model and its id.
type NamedModel struct {
	ID    string // provider:name
	Model model.Model
}

// Deps are what an engine works with. Those without a default are required.
type Deps struct {
	Sessions  *session.Store
	Runner    turn.Runner             // runs Step for the turns that Start and Send accept
	Tools     *tool.Set               // the agent's tools
	Models    []NamedModel            // the agent's model, then its fallbacks; at least one
	Subagents map[string][]NamedModel // the models of subagents that have their own, by name
	Guide     string                  // what the agent and its subagents are told beside their instructions; "" for nothing

	Connections Connections // servers of tools and other agents; nil: none

	Artifacts  *artifact.Store  // what sessions have made; nil: none
	Reminders  *reminder.Store  // what sessions are to be reminded of; nil: calls have none
	Files      *filestore.Store // of sessions and of the deployment, beside workspaces; nil: calls have none
	KV         *kv.Store        // keeps the values of tools; nil: calls have none
	Workspaces *workspace.Store // the files of sessions; nil: calls have none
	Blobs      *blob.Store      // has the files that clients gave; required with Workspaces

	Clock     clock.Clock   // default: the system clock
	NewID     func() string // default: 130 random bits in base 32, lower case
	Log       *slog.Logger
	StateRoot string // passed to tools; "" where the host has none
}

// New returns the engine of an agent. It fails without a model, and with sizes or limits that cannot be meant.
func New(project bdk.Project, deps Deps) (*Engine, error) {
	if len(deps.Models) == 0 {
		return nil, errors.New("an agent needs a model")
	}
	if deps.Clock == nil {
		deps.Clock = clock.System{}
	}
	if deps.NewID == nil {
		deps.NewID = func() string { return strings.ToLower(rand.Text()) }
	}
	project.Agent = project.Agent.WithDefaults()
	if err := checkLimits(project.Agent); err != nil {
		return nil, err
	}
	if project.Agent.Instructions != "" {
		project.Instructions = project.Agent.Instructions
	}
	if err := project.Err(); err != nil {
		return nil, err
	}
	tools := deps.Tools.Offer()
	e := &Engine{project: project, deps: deps, subagents: make(map[string]mind), cache: newCache(cacheSessions, cacheBytes)}
	e.main = newMind(told(project.Instructions, deps.Guide, resultNote(project.Agent.Result.JSON())), deps.Models, tools)
	tools = slices.DeleteFunc(slices.Clone(tools), func(t model.Tool) bool { return t.Name == bdk.ToolTask })
	for _, s := range project.Subagents {
		models := deps.Subagents[s.Name]
		if len(models) == 0 {
			models = deps.Models
		}
		e.subagents[s.Name] = newMind(told(cmp.Or(s.Agent.Instructions, s.Instructions, project.Instructions), deps.Guide), models, tools)
	}
	return e, nil
}

// told returns a system prompt of several parts.
func told(instructions bdk.Instructions, more ...string) string {
	parts := append([]string{string(instructions)}, more...)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n")
}

// Project returns the agent, with the documented defaults filled in.
func (e *Engine) Project() bdk.Project { return e.project }

// Sessions returns the store of the agent's sessions.
func (e *Engine) Sessions() *session.Store { return e.deps.Sessions }

// Artifacts returns what the agent's sessions have made, nil if it is not kept.
func (e *Engine) Artifacts() *artifact.Store { return e.deps.Artifacts }

// Models returns the ids of the agent's model and its fallbacks.
func (e *Engine) Models() []string {
	ids := make([]string, len(e.deps.Models))
	for i, m := range e.deps.Models {
		ids[i] = m.ID
	}
	return ids
}

// Start records a new session of the agent and has its first turn run. The agent's slug is filled in.
func (e *Engine) Start(ctx context.Context, in session.Start) (session.Accepted, error) {
	in.Agent = e.project.Slug
	if !in.AsOf.IsZero() {
		if err := e.deps.Tools.CheckTimeArgs(); err != nil {
			return session.Accepted{}, err
		}
	}
	if err := e.checkFiles(ctx, in.Files); err != nil {
		return session.Accepted{}, err
	}
	acc, err := e.deps.Sessions.Start(ctx, in)
	return e.started(ctx, acc, err)
}

// Send records a follow-up and has its turn run. A turn that is active is stopped.
func (e *Engine) Send(ctx context.Context, in session.Message) (session.Accepted, error) {
	acc, err := e.deps.Sessions.Send(ctx, in)
	if err == nil && acc.Interrupted != "" && !acc.Repeated {
		e.release(ctx, turn.Ref{SessionID: acc.SessionID, TurnID: acc.Interrupted})
	}
	return e.started(ctx, acc, err)
}

// Stop ends the active turn of a session, see [session.Store.Stop].
func (e *Engine) Stop(ctx context.Context, id, turnID string) (string, error) {
	stopped, err := e.deps.Sessions.Stop(ctx, id, turnID)
	if err == nil && stopped != "" {
		e.release(ctx, turn.Ref{SessionID: id, TurnID: stopped})
	}
	return stopped, err
}

// started hands an accepted turn to the runner. The message is durable by now, so a fault here is only logged: the runner
// finds turns that were accepted and not started.
func (e *Engine) started(ctx context.Context, acc session.Accepted, err error) (session.Accepted, error) {
	if err != nil || acc.Repeated {
		return acc, err
	}
	ref := turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID}
	if err := e.deps.Runner.Start(ctx, ref); err != nil {
		e.deps.Log.WarnContext(ctx, "turn waits for recovery", slog.String("session_id", ref.SessionID), slog.String("turn_id", ref.TurnID), slog.Any("error", err))
	}
	return acc, nil
}

func (e *Engine) release(ctx context.Context, ref turn.Ref) {
	if err := e.deps.Runner.Stop(ctx, ref); err != nil {
		e.deps.Log.WarnContext(ctx, "stopped turn still holds its runner", slog.String("session_id", ref.SessionID), slog.String("turn_id", ref.TurnID), slog.Any("error", err))
	}
}

// maxFails bounds how often Fail tries to end a turn that still writes. Each lost try means that the turn got on.
const maxFails = 64

// Fail ends a turn with turn.failed, for runners that give up on it. A turn that has already ended stays as it is. Fail does
// not look at what is in the log, so it also ends a turn that cannot be run because of it.
func (e *Engine) Fail(ctx context.Context, ref turn.Ref, message string) error {
	for range maxFails {
		w, err := e.deps.Sessions.Open(ctx, ref.SessionID, ref.TurnID)
		if over(err) {
			return nil
		}
		if err == nil {
			err = w.Skip(ctx)
		}
		if err == nil {
			_, err = w.Finish(ctx, failure(w.Row(), message)...)
		}
		if err == nil {
			e.logOf(ref, w.Row()).InfoContext(ctx, "turn ended", slog.Bool("failed", true))
			return nil
		}
		if !errors.Is(err, session.ErrFenced) {
			return fmt.Errorf("failing a turn: %w", err)
		}
	}
	return fmt.Errorf("failing turn %s: it writes too fast", ref.TurnID)
}

// failure returns the events that end a turn with an error.
func failure(row session.Record, message string) []event.Data {
	end := event.Data(event.SessionWaiting{})
	if row.Mode == session.Task {
		end = event.SessionFailed{Message: message}
	}
	return []event.Data{event.TurnFailed{Message: message, Status: event.StatusError}, end}
}
