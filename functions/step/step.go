// Package step is the function that works on turns: the state machine calls it until a turn is done.
package step

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// What an invocation keeps of its time.
const (
	handBack = 3 * time.Minute  // for an answer of the model
	reserve  = 5 * time.Second  // for telling of work that has not come to a point where another one can go on
	settle   = 10 * time.Second // for recording what a tool has done in all the time it may take
	fresh    = time.Minute      // an invocation so young does not hand back: the next one would have no more time
)

// Turns is what runs turns.
type Turns interface {
	Step(ctx context.Context, ref turn.Ref) (turn.Outcome, error)
	// Parked returns the calls that a turn waits for after turn.Await, none if it does not any more.
	Parked(ctx context.Context, ref turn.Ref) ([]string, error)
	Fail(ctx context.Context, ref turn.Ref, message string) error
}

// New returns the Lambda handler. An error means that the step is to be tried again.
func New(turns Turns, clk clock.Clock, log *slog.Logger) func(context.Context, sfnturn.StepInput) (sfnturn.StepOutput, error) {
	return func(ctx context.Context, in sfnturn.StepInput) (out sfnturn.StepOutput, err error) {
		err = invocation.Run(ctx, log, "step", func() ([]slog.Attr, error) {
			out.Outcome, err = run(ctx, turns, clk, in)
			if err == nil && out.Outcome == turn.Await {
				if out.Calls, err = turns.Parked(ctx, in.Ref); len(out.Calls) == 0 {
					out.Outcome = turn.Continue
				}
			}
			attrs := []slog.Attr{slog.String("outcome", string(out.Outcome))}
			if in.Error != nil {
				attrs = append(attrs, slog.String("failure", in.Error.Error), slog.String("cause", in.Error.Cause))
			}
			return attrs, err
		}, slog.String("session_id", in.SessionID), slog.String("turn_id", in.TurnID))
		return out, err
	}
}

func run(ctx context.Context, turns Turns, clk clock.Clock, in sfnturn.StepInput) (turn.Outcome, error) {
	if in.SessionID == "" || in.TurnID == "" {
		return "", errors.New("working on a turn: the input lacks an id")
	}
	if in.Error != nil {
		return turn.Done, turns.Fail(ctx, in.Ref, in.Error.Message())
	}
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-reserve))
		defer cancel()
		began := clk.Now()
		ctx = turn.WithYield(ctx, func(need time.Duration) bool {
			now := clk.Now()
			return now.Sub(began) >= fresh && end.Sub(now) < max(handBack, need+settle)
		})
	}
	return turns.Step(sfnturn.WithExecution(ctx, in.Execution), in.Ref)
}
