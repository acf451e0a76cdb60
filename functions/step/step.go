// Package step is the function that works on turns: the state machine calls it until a turn is done.
package step

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// reserve is how much of its time an invocation keeps for coming to a point where another one can go on.
const reserve = time.Minute

// Turns is what runs turns.
type Turns interface {
	Step(ctx context.Context, ref turn.Ref) (turn.Outcome, error)
	Fail(ctx context.Context, ref turn.Ref, message string) error
}

// New returns the Lambda handler.
func New(turns Turns, clk clock.Clock, log *slog.Logger) func(context.Context, sfnturn.StepInput) (sfnturn.StepOutput, error) {
	return func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		began := clk.Now()
		out, err := run(ctx, turns, clk, in)
		attrs := []slog.Attr{
			slog.String("session_id", in.SessionID), slog.String("turn_id", in.TurnID), slog.String("outcome", string(out)),
			slog.Duration("duration", clk.Now().Sub(began)),
		}
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			attrs = append(attrs, slog.String("request_id", lc.AwsRequestID))
		}
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelError
			attrs = append(attrs, slog.Any("error", err))
		}
		log.LogAttrs(ctx, level, "step", attrs...)
		return sfnturn.StepOutput{Outcome: out}, err
	}
}

func run(ctx context.Context, turns Turns, clk clock.Clock, in sfnturn.StepInput) (turn.Outcome, error) {
	if in.Error != nil {
		return turn.Done, turns.Fail(ctx, in.Ref, in.Error.Message())
	}
	if end, ok := ctx.Deadline(); ok {
		ctx = turn.WithYield(ctx, func() bool { return end.Sub(clk.Now()) < reserve })
	}
	return turns.Step(ctx, in.Ref)
}
