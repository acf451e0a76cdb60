// Package sweep is the function that looks after what nobody else does: turns that nobody runs, and reminders that are due. A schedule calls
// it each minute, an event for each execution that ends otherwise than by itself, and a queue for each reminder at its time.
package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/wake/schedulerwake"
)

// Turns is what knows the turns.
type Turns interface {
	// Sweep looks for turns that nobody runs.
	Sweep(ctx context.Context) error
	// Fail ends a turn. One that has ended stays as it is.
	Fail(ctx context.Context, ref turn.Ref, message string) error
	// Remind sends a reminder. One that cannot be sent yet is sent by a later Sweep.
	Remind(ctx context.Context, id string) error
}

// New returns the Lambda handler. Events that are not of an execution have it sweep, whatever they say.
func New(turns Turns, log *slog.Logger) func(context.Context, json.RawMessage) error {
	return func(ctx context.Context, raw json.RawMessage) error {
		if ids := rung(raw); len(ids) > 0 {
			return invocation.Run(ctx, log, "sweep", func() ([]slog.Attr, error) { return nil, remind(ctx, turns, ids) }, slog.Any("reminder_ids", ids))
		}
		ref, why, err := ended(raw)
		switch {
		case err != nil:
			return invocation.Run(ctx, log, "sweep", func() ([]slog.Attr, error) { return nil, err })
		case why != "":
			return invocation.Run(ctx, log, "sweep", func() ([]slog.Attr, error) { return nil, turns.Fail(ctx, ref, why) },
				slog.String("session_id", ref.SessionID), slog.String("turn_id", ref.TurnID))
		}
		return invocation.Run(ctx, log, "sweep", func() ([]slog.Attr, error) { return nil, turns.Sweep(ctx) })
	}
}

// rung returns the reminders that a queue's messages tell of. Messages that tell of none are left out.
func rung(raw json.RawMessage) (ids []string) {
	var event struct {
		Records []struct {
			Body string `json:"body"`
		} `json:"Records"`
	}
	_ = json.Unmarshal(raw, &event) // what is not such an event has none
	for _, r := range event.Records {
		var ring schedulerwake.Ring
		if json.Unmarshal([]byte(r.Body), &ring) == nil && ring.Reminder != "" {
			ids = append(ids, ring.Reminder)
		}
	}
	return ids
}

func remind(ctx context.Context, turns Turns, ids []string) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, turns.Remind(ctx, id))
	}
	return errors.Join(errs...)
}

// ended returns the turn of an execution that has ended, and why, if an event tells of one.
func ended(raw json.RawMessage) (ref turn.Ref, why string, err error) {
	var event struct {
		Source string          `json:"source"`
		Detail json.RawMessage `json:"detail"`
	}
	_ = json.Unmarshal(raw, &event) // what is not an event has no source
	if event.Source != "aws.states" {
		return ref, "", nil
	}
	var detail struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Input  string `json:"input"`
	}
	if err := json.Unmarshal(event.Detail, &detail); err != nil {
		return ref, "", fmt.Errorf("reading the event of an execution: %w", err)
	}
	if err := json.Unmarshal([]byte(detail.Input), &ref); err != nil || ref.SessionID == "" || ref.TurnID != detail.Name {
		return ref, "", fmt.Errorf("the execution %.80q is not of a turn", detail.Name)
	}
	return ref, "the execution of the turn ended: " + strings.ToLower(strings.ReplaceAll(detail.Status, "_", " ")), nil
}
