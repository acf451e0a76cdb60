// Package purge is the function that the stream of the sessions table calls: it removes what is left of sessions that
// DynamoDB has removed because they had expired.
package purge

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// New returns the Lambda handler. It tries every record, so that one that fails for long keeps none from being purged, and names
// the first that failed: Lambda calls again with that and all behind it. Purging a session again has to be harmless.
func New(purge func(ctx context.Context, id, snapshot string) error, log *slog.Logger) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		res := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
		for _, r := range event.Records {
			id := text(r, tables.SessionID)
			if id == "" || !expired(r) {
				continue
			}
			err := invocation.Run(ctx, log, "purge", func() ([]slog.Attr, error) {
				return nil, purge(ctx, id, text(r, tables.Snapshot))
			}, slog.String("session_id", id))
			if err != nil && len(res.BatchItemFailures) == 0 {
				res.BatchItemFailures = append(res.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: r.Change.SequenceNumber})
			}
		}
		return res, nil
	}
}

// expired reports whether DynamoDB itself has removed the row of a session, at the end of its time.
func expired(r events.DynamoDBEventRecord) bool {
	return r.EventName == string(events.DynamoDBOperationTypeRemove) &&
		r.UserIdentity != nil && r.UserIdentity.Type == "Service" && r.UserIdentity.PrincipalID == "dynamodb.amazonaws.com"
}

// text returns a string attribute of the removed row, "" if it has none of that name.
func text(r events.DynamoDBEventRecord, name string) string {
	if v, ok := r.Change.OldImage[name]; ok && v.DataType() == events.DataTypeString {
		return v.String()
	}
	return ""
}
