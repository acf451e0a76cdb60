package bdk_test

import (
	"context"
	"fmt"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// A schedule that looks at something each weekday, and starts a conversation only if there is anything to say.
func ExampleDefineSchedule() {
	heartbeat := bdk.DefineSchedule(bdk.ScheduleSpec{
		Cron: "0 9 * * MON-FRI",
		Run: func(ctx context.Context, c *bdk.ScheduleContext) error {
			last, err := c.KV.Get(ctx, "heartbeat")
			if err == nil && string(last.Value) == "0" {
				return nil
			}
			_, err = c.Sessions.Send(ctx, bdk.Message{Text: "Look at what is open since " + c.At.Format(time.DateOnly) + ".", Task: true})
			return err
		},
	})
	fmt.Println(heartbeat.Err(), heartbeat.Next(time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC)))
	// Output: <nil> 2026-12-07 09:00:00 +0000 UTC
}

// A tool that has the conversation go on tomorrow, once, however often it is called.
func ExampleReminders() {
	later := bdk.DefineTool(bdk.ToolSpec{Description: "Look at the question again tomorrow."}, func(ctx context.Context, call *bdk.Call, in question) (string, error) {
		made, err := call.Reminders.Create(ctx, bdk.Reminder{Message: "Look again: " + in.Text, After: 24 * time.Hour, Key: "later"})
		if err != nil {
			return "", err
		}
		return "reminded at " + made.At.Format(time.RFC3339), nil
	})
	fmt.Println(later.Err())
	// Output: <nil>
}
