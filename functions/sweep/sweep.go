// Package sweep is the function that a schedule calls each minute: it finds turns that nobody runs.
package sweep

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
)

// New returns the Lambda handler. What the event says does not matter.
func New(sweep func(context.Context) error, log *slog.Logger) func(context.Context, json.RawMessage) error {
	return func(ctx context.Context, _ json.RawMessage) error {
		return invocation.Run(ctx, log, "sweep", func() ([]slog.Attr, error) { return nil, sweep(ctx) })
	}
}
