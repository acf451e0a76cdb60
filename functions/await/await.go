// Package await is the function that parks a call of a turn until somebody decides about it.
package await

import (
	"context"
	"errors"
	"log/slog"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// New returns the Lambda handler. The state machine goes on when the token is returned to it, not when the handler ends.
func New(park func(context.Context, sfnturn.AwaitInput) error, log *slog.Logger) func(context.Context, sfnturn.AwaitInput) error {
	return func(ctx context.Context, in sfnturn.AwaitInput) error {
		return invocation.Run(ctx, log, "await", func() ([]slog.Attr, error) {
			if in.SessionID == "" || in.TurnID == "" || in.CallID == "" || in.Token == "" {
				return nil, errors.New("parking a call: the input lacks an id or the token")
			}
			return nil, park(ctx, in)
		}, slog.String("session_id", in.SessionID), slog.String("turn_id", in.TurnID), slog.String("call_id", in.CallID))
	}
}
