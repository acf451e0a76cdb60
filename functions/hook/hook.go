// Package hook is the function that tells the subscribers of an agent, its hooks, what was recorded. The queue of each of them calls it.
package hook

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/hook"
)

// New returns the Lambda handler. A message that cannot be told comes again, and so do those behind it. One that is no message is passed
// over.
func New(receive func(context.Context, hook.Message) error, log *slog.Logger) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, in events.SQSEvent) (events.SQSEventResponse, error) {
		res := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, r := range in.Records {
			var m hook.Message
			err := invocation.Run(ctx, log, "hook", func() ([]slog.Attr, error) {
				if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
					return []slog.Attr{slog.Bool("passed_over", true), slog.Any("reason", err)}, nil
				}
				attrs := []slog.Attr{slog.String("subscriber", m.Subscriber), slog.String("session_id", m.SessionID), slog.Any("indexes", m.Indexes)}
				if len(res.BatchItemFailures) > 0 {
					return append(attrs, slog.Bool("left", true)), nil
				}
				return attrs, receive(ctx, m)
			})
			if err != nil || len(res.BatchItemFailures) > 0 {
				res.BatchItemFailures = append(res.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
			}
		}
		return res, nil
	}
}
