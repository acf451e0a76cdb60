// Package schedules has what happens by itself, though not while a test runs.
package schedules

import (
	"context"
	"errors"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Pulse writes a note, and fails then.
var Pulse = bdk.DefineSchedule(bdk.ScheduleSpec{Cron: "0 0 31 12 *", Run: pulse})

func pulse(ctx context.Context, c *bdk.ScheduleContext) error {
	if _, err := c.Tools.Call(ctx, "note", map[string]int{"ms": 0}); err != nil {
		return err
	}
	return errors.New("the pulse stops")
}
