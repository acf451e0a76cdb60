// Package purge is the function that the stream of the sessions table calls: it removes what is left of sessions that
// DynamoDB has removed because they had expired.
package purge

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/bdk-lambda/bdk/shared/tables"
)

// New returns the Lambda handler. It ends at the first record that fails and names it: Lambda calls again from there on.
func New(purge func(ctx context.Context, id, snapshot string) error, log *slog.Logger) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		var res events.DynamoDBEventResponse
		for _, r := range event.Records {
			if !expired(r) {
				continue
			}
			id, snapshot := text(r, tables.SessionID), text(r, tables.Snapshot)
			if err := purge(ctx, id, snapshot); err != nil {
				log.ErrorContext(ctx, "removing what is left of a session", slog.String("session_id", id), slog.Any("error", err))
				res.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: r.Change.SequenceNumber}}
				return res, nil
			}
			log.InfoContext(ctx, "session purged", slog.String("session_id", id))
		}
		return res, nil
	}
}

// expired reports whether DynamoDB itself has removed the row of a session, at the end of its time.
func expired(r events.DynamoDBEventRecord) bool {
	return r.EventName == string(events.DynamoDBOperationTypeRemove) && text(r, tables.SessionID) != "" &&
		r.UserIdentity != nil && r.UserIdentity.Type == "Service" && r.UserIdentity.PrincipalID == "dynamodb.amazonaws.com"
}

// text returns a string attribute of the removed row, "" if it has none of that name.
func text(r events.DynamoDBEventRecord, name string) string {
	if v, ok := r.Change.OldImage[name]; ok && v.DataType() == events.DataTypeString {
		return v.String()
	}
	return ""
}
