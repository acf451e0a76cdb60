package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
)

// callTools runs calls at the same time, as many as ParallelTools allows, and records each result as it comes. How many
// calls a step has is bounded by what the model can write in one answer, and by nothing else. A result that cannot be
// recorded does not end the calls beside it, unless the turn is not ours any more.
func (r *run) callTools(ctx context.Context, calls []event.ActionCall) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var g errgroup.Group
	g.SetLimit(r.project.Agent.Limits.ParallelTools)
	for _, c := range calls {
		g.Go(func() error {
			out := r.callTool(ctx, c)
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if out.IsError {
				r.log.WarnContext(ctx, "tool call failed", slog.String("call_id", c.CallID), slog.String("tool", c.ToolName))
			}
			err := r.append(ctx, event.ActionResult{
				CallID: c.CallID, ToolName: c.ToolName, Output: out.Output, IsError: out.IsError, Stubbed: out.Stubbed,
			})
			if errors.Is(err, session.ErrFenced) {
				cancel(err)
			}
			return err
		})
	}
	return g.Wait()
}

func (r *run) callTool(ctx context.Context, c event.ActionCall) tool.Outcome {
	if len(c.Args) == 0 {
		return tool.Failed(r.whyMalformed(c.CallID))
	}
	row := r.w.Row()
	call := &bdk.Call{
		ID:        c.CallID,
		StateRoot: r.deps.StateRoot,
		Logger:    r.log.With(slog.String("call_id", c.CallID), slog.String("tool", c.ToolName)),
		Session: bdk.SessionInfo{
			ID: row.ID, TurnID: r.ref.TurnID, Agent: row.Agent, Channel: row.Channel, Mode: string(row.Mode),
			Purpose: row.Purpose, Owner: row.Owner, DryRun: row.DryRun, AsOf: row.AsOf,
		},
	}
	return r.deps.Tools.Run(ctx, call, c.ToolName, c.Args, r.inherited[c.CallID])
}

func (r *run) whyMalformed(callID string) error {
	const remedy = "the tool was not run; call it again with arguments that are one JSON object"
	if err := r.malformed[callID]; err != nil {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return fmt.Errorf("the arguments are not a JSON object: %s", remedy)
}
