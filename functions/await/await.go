// Package await is the function that parks a call of a turn until somebody decides about it.
package await

import (
	"context"
	"fmt"

	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// New returns the Lambda handler. The state machine goes on when the token is returned to it, not when the handler ends.
func New(park func(context.Context, sfnturn.AwaitInput) error) func(context.Context, sfnturn.AwaitInput) error {
	return func(ctx context.Context, in sfnturn.AwaitInput) error {
		if in.SessionID == "" || in.TurnID == "" || in.CallID == "" || in.Token == "" {
			return fmt.Errorf("parking call %q of turn %q: the input lacks an id or the token", in.CallID, in.TurnID)
		}
		return park(ctx, in)
	}
}
