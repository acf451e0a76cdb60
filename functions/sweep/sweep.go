// Package sweep is the function that a schedule calls each minute: it finds turns that nobody runs.
package sweep

import (
	"context"
	"encoding/json"
)

// New returns the Lambda handler. What the event says does not matter.
func New(sweep func(context.Context) error) func(context.Context, json.RawMessage) error {
	return func(ctx context.Context, _ json.RawMessage) error { return sweep(ctx) }
}
