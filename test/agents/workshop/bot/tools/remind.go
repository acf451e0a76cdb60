package tools

import (
	"context"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type remindInput struct {
	Message string `json:"message"`
	Ms      int    `json:"ms"`
	Cancel  bool   `json:"cancel,omitempty" jsonschema:"make another one, and cancel it"`
}

// Remind has the session sent a message later.
var Remind = bdk.DefineTool(bdk.ToolSpec{Description: "Be reminded.", Effect: bdk.Write}, remind)

func remind(ctx context.Context, call *bdk.Call, in remindInput) ([]bdk.ReminderRecord, error) {
	after := time.Duration(in.Ms) * time.Millisecond
	if _, err := call.Reminders.Create(ctx, bdk.Reminder{Message: in.Message, After: after, Key: "only"}); err != nil {
		return nil, err
	}
	if in.Cancel {
		other, err := call.Reminders.Create(ctx, bdk.Reminder{Message: "cancelled", After: after})
		if err == nil {
			err = call.Reminders.Cancel(ctx, other.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	return call.Reminders.List(ctx)
}
