// Package dispatch is the function that the stream of the events table calls: it has subscribers told of what was recorded.
package dispatch

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/bdk-lambda/bdk/functions/internal/invocation"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// New returns the Lambda handler. Dispatch returns the position of the first event that has to be dispatched again, with all behind it, -1 if
// there is none. A record that is no event is passed over: it would stop all behind it.
func New(dispatch func(context.Context, []event.Event) (int, error), log *slog.Logger) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, in events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		res := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
		err := invocation.Run(ctx, log, "dispatch", func() ([]slog.Attr, error) {
			told, numbers, passed := read(in)
			attrs := []slog.Attr{slog.Int("events", len(told)), slog.Int("passed_over", passed)}
			if len(told) == 0 {
				return attrs, nil
			}
			failed, err := dispatch(ctx, told)
			if failed >= 0 && failed < len(numbers) {
				res.BatchItemFailures = append(res.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: numbers[failed]})
			}
			return attrs, err
		})
		if len(res.BatchItemFailures) > 0 {
			err = nil // the answer says which
		}
		return res, err
	}
}

// read returns the events of a stream's records, without their data, the number of the record of each, and how many records are no event.
func read(in events.DynamoDBEvent) (told []event.Event, numbers []string, passed int) {
	for _, r := range in.Records {
		image := r.Change.NewImage
		e := event.Event{SessionID: text(image, tables.SessionID), Type: event.Type(text(image, tables.EventType)), TurnID: text(image, tables.EventTurn)}
		n, ok := image[tables.Index]
		if r.EventName != string(events.DynamoDBOperationTypeInsert) || e.SessionID == "" || e.Type == "" || !ok || n.DataType() != events.DataTypeNumber {
			passed++
			continue
		}
		index, err := strconv.ParseInt(n.Number(), 10, 64)
		if err != nil || index < 0 {
			passed++
			continue
		}
		e.Index = index
		told, numbers = append(told, e), append(numbers, r.Change.SequenceNumber)
	}
	return told, numbers, passed
}

// text returns a string attribute, "" if there is none of that name.
func text(image map[string]events.DynamoDBAttributeValue, name string) string {
	if v, ok := image[name]; ok && v.DataType() == events.DataTypeString {
		return v.String()
	}
	return ""
}
