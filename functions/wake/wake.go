// Package wake is the function that has the agent's schedules happen: EventBridge Scheduler calls it for each time that one is due.
package wake

import (
	"context"
	"log/slog"
	"time"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
)

// Event is a time that a schedule is due.
type Event struct {
	Schedule string    `json:"schedule"` // its name
	At       time.Time `json:"at"`       // the same however often the event is sent
}

// Schedules is what knows the schedules.
type Schedules interface {
	// Dispatch has a schedule happen for a tick, once.
	Dispatch(ctx context.Context, t engine.Tick) (engine.Dispatched, error)
}

// New returns the Lambda handler. A tick that could not be dispatched is an error, so that it is tried again; a function of the author's that
// fails is not, and neither is a schedule that there is not any more.
func New(schedules Schedules, log *slog.Logger) func(context.Context, Event) error {
	return func(ctx context.Context, e Event) error {
		return invocation.Run(ctx, log, "wake", func() ([]slog.Attr, error) {
			if e.Schedule == "" || e.At.IsZero() {
				return nil, bdkerr.New(bdkerr.InvalidRequest, "the event names no schedule, or no time")
			}
			done, err := schedules.Dispatch(ctx, engine.Tick{Schedule: e.Schedule, At: e.At.UTC().Truncate(time.Minute)})
			attrs := []slog.Attr{slog.Any("session_ids", append([]string{}, done.SessionIDs...)), slog.Bool("repeated", done.Repeated), slog.Bool("failed", done.Failed != nil)}
			if bdkerr.CodeOf(err) == bdkerr.NotFound {
				return append(attrs, slog.Bool("unknown", true)), nil
			}
			return attrs, err
		}, slog.String("schedule", e.Schedule), slog.Time("tick", e.At))
	}
}
