package dynamosession

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tables"
)

const (
	free     = "attribute_not_exists(" + tables.SessionID + ")"
	there    = "attribute_exists(" + tables.SessionID + ")"
	allOld   = types.ReturnValuesOnConditionCheckFailureAllOld
	maxItems = 100 // in a transaction
)

// Commit implements [session.Driver]. A batch holds up to 100 events, less one each for the row and the key.
func (d *Driver) Commit(ctx context.Context, b session.Batch) error {
	items, err := d.items(ctx, b.Events)
	if err != nil {
		return dynamox.Fault(ctx, err)
	}
	switch {
	case b.At < 0 || len(items) == 0 && b.Row == nil:
		return fmt.Errorf("committing to session %s: %d events cannot begin at index %d", b.SessionID, len(items), b.At)
	case len(items) == 0:
		err = d.putRow(ctx, *b.Row)
	case len(items) == 1 && b.Row == nil && b.Key == nil && b.At > 0:
		err = d.putEvent(ctx, b.Events[0].ID, items[0])
	default:
		err = d.transact(ctx, b, items)
	}
	return dynamox.Fault(ctx, err)
}

// putEvent appends one event.
func (d *Driver) putEvent(ctx context.Context, id string, item dynamox.Item) error {
	err := dynamox.Retry(ctx, func() error {
		_, err := d.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &d.tables.Events, Item: item, ConditionExpression: aws.String(free), ReturnValuesOnConditionCheckFailure: allOld,
		})
		return err
	})
	if old, refused := dynamox.Refused(err); refused {
		return conflict(id, old)
	}
	return err
}

// conflict returns what it means that an event stands where one with the given id was to go.
func conflict(id string, old dynamox.Item) error {
	if dynamox.Str(old, eventID) == id {
		return nil // an earlier try of the same call
	}
	return &session.ConflictError{Event: head(old)}
}

// putRow changes a row alone.
func (d *Driver) putRow(ctx context.Context, r session.Record) error {
	u, err := d.rowUpdate(r, rand.Text())
	if err != nil {
		return err
	}
	err = dynamox.Retry(ctx, func() error {
		_, err := d.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: allOld,
		})
		return err
	})
	if old, refused := dynamox.Refused(err); refused {
		if dynamox.Str(old, written) == dynamox.Str(u.ExpressionAttributeValues, ":w") {
			return nil // an earlier try of the same call
		}
		return session.ErrStale
	}
	return err
}

// An action is one item of a transaction, and what it means that its condition failed.
type action struct {
	types.TransactWriteItem

	refused func(old dynamox.Item) error
}

// transact commits b in one transaction. The client repeats a request under a token by which the service knows it again;
// a call that is made anew is known by its first event.
func (d *Driver) transact(ctx context.Context, b session.Batch, items []dynamox.Item) error {
	actions, err := d.actions(b, items)
	if err != nil {
		return err
	}
	if len(actions) > maxItems {
		return fmt.Errorf("committing %d events to session %s: a transaction has %d items, at most %d are allowed",
			len(items), b.SessionID, len(actions), maxItems)
	}
	writes := make([]types.TransactWriteItem, len(actions))
	for i, a := range actions {
		writes[i] = a.TransactWriteItem
	}
	err = dynamox.Retry(ctx, func() error {
		_, err := d.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		return err
	})
	reasons := dynamox.Reasons(err)
	if len(reasons) != len(actions) {
		return err
	}
	own, lookup := d.isOwn(ctx, b, reasons[len(actions)-len(items)])
	if own || lookup != nil {
		return lookup
	}
	for i, a := range actions {
		if reasons[i].Refused {
			return a.refused(reasons[i].Old)
		}
	}
	return err
}

// isOwn reports whether the first event of b is there already. The reason given for it may be missing when another item was refused.
func (d *Driver) isOwn(ctx context.Context, b session.Batch, first dynamox.Reason) (bool, error) {
	old := first.Old
	if !first.Refused {
		out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &d.tables.Events, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String(eventID),
			Key: dynamox.Item{tables.SessionID: dynamox.S(b.SessionID), tables.Index: dynamox.N(b.At)},
		})
		if err != nil {
			return false, err
		}
		old = out.Item
	}
	return old != nil && dynamox.Str(old, eventID) == b.Events[0].ID, nil
}

// actions returns what to write, in the order in which a refusal counts; the events come last.
func (d *Driver) actions(b session.Batch, items []dynamox.Item) ([]action, error) {
	var all []action
	if b.Key != nil {
		all = append(all, d.keyAction(*b.Key, b.Events[0].At))
	}
	switch {
	case b.Row != nil:
		u, err := d.rowUpdate(*b.Row, b.Events[0].ID)
		if err != nil {
			return nil, err
		}
		all = append(all, action{types.TransactWriteItem{Update: u}, func(dynamox.Item) error { return session.ErrStale }})
	case b.At == 0:
		check := &types.ConditionCheck{TableName: &d.tables.Sessions, Key: rowKey(b.SessionID), ConditionExpression: aws.String(there)}
		all = append(all, action{types.TransactWriteItem{ConditionCheck: check}, func(dynamox.Item) error { return session.ErrNotFound }})
	}
	for i, item := range items {
		put := &types.Put{
			TableName: &d.tables.Events, Item: item, ConditionExpression: aws.String(free), ReturnValuesOnConditionCheckFailure: allOld,
		}
		refused := func(old dynamox.Item) error {
			err := conflict(b.Events[i].ID, old)
			if err == nil { // what is there cannot be of this batch, whose first event is not
				err = errors.New("an event of the batch stands behind a hole")
			}
			return err
		}
		all = append(all, action{types.TransactWriteItem{Put: put}, refused})
	}
	return all, nil
}

// Events implements [session.Driver].
func (d *Driver) Events(ctx context.Context, id string, from int64, limit int) ([]event.Event, error) {
	items, err := d.query(ctx, id, from, limit)
	if err != nil {
		return nil, err
	}
	events, err := d.events(ctx, items)
	return events, dynamox.Fault(ctx, err)
}

// Heads implements [session.Header].
func (d *Driver) Heads(ctx context.Context, id string, from int64, limit int) ([]event.Event, error) {
	items, err := d.query(ctx, id, from, limit, tables.SessionID, tables.Index, eventID, tables.EventType, tables.EventTurn, at)
	events := make([]event.Event, len(items))
	for i, item := range items {
		events[i] = head(item)
	}
	return events, err
}

// query returns items of events with the given attributes, with all if none is given.
func (d *Driver) query(ctx context.Context, id string, from int64, limit int, attributes ...string) ([]dynamox.Item, error) {
	names, projection := project(attributes)
	out, err := d.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &d.tables.Events, ProjectionExpression: projection, ExpressionAttributeNames: names,
		KeyConditionExpression:    aws.String(tables.SessionID + " = :s AND " + tables.Index + " >= :n"),
		ExpressionAttributeValues: dynamox.Item{":s": dynamox.S(id), ":n": dynamox.N(max(from, 0))},
		Limit:                     aws.Int32(int32(min(limit, 1<<20))), //nolint:gosec // it fits
		ConsistentRead:            aws.Bool(true),
	})
	if err != nil {
		return nil, dynamox.Fault(ctx, err)
	}
	return out.Items, nil
}
