package engine

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/tool"
)

// callTools runs calls at the same time, as many as the limit allows, and records each result as it comes.
func (r *run) callTools(ctx context.Context, calls []event.ActionCall) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.project.Agent.Limits.ParallelTools)
	for _, c := range calls {
		g.Go(func() error {
			out := r.callTool(ctx, c)
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return r.append(ctx, event.ActionResult{
				CallID: c.CallID, ToolName: c.ToolName, Output: out.Output, IsError: out.IsError, Stubbed: out.Stubbed,
			})
		})
	}
	return g.Wait()
}

func (r *run) callTool(ctx context.Context, c event.ActionCall) tool.Outcome {
	if err := context.Cause(ctx); err != nil {
		return tool.Outcome{}
	}
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
	return r.deps.Tools.Run(ctx, call, c.ToolName, c.Args)
}

func (r *run) whyMalformed(callID string) error {
	const remedy = "the tool was not run; call it again with arguments that are one JSON object"
	if err := r.malformed[callID]; err != nil {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return fmt.Errorf("the arguments are not a JSON object: %s", remedy)
}
