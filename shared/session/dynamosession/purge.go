package dynamosession

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// Purge removes what belongs to a session whose row the table has removed: its events, and what of them is in the blob
// store. Snapshot is the attribute tables.Snapshot of the removed row, "" if it had none. Purge fails with bdkerr.Conflict while
// the row is there. Done again after it was cut off, it goes on.
func (d *Driver) Purge(ctx context.Context, id, snapshot string) error {
	item, err := d.get(ctx, id, tables.SessionID)
	switch {
	case err != nil:
		return err
	case item != nil:
		return bdkerr.New(bdkerr.Conflict, "session %q has not been removed", id)
	}
	if snapshot != "" {
		if err := d.blobs.Delete(ctx, blob.Ref(snapshot)); err != nil {
			return dynamox.Fault(ctx, err)
		}
	}
	in := &dynamodb.QueryInput{
		TableName: &d.tables.Events, KeyConditionExpression: aws.String(tables.SessionID + " = :s"),
		ProjectionExpression:      aws.String("#n, #ref"),
		ExpressionAttributeNames:  map[string]string{"#n": tables.Index, "#ref": ref},
		ExpressionAttributeValues: dynamox.Item{":s": dynamox.S(id)},
	}
	for {
		out, err := d.client.Query(ctx, in)
		if err != nil {
			return dynamox.Fault(ctx, err)
		}
		for page := range slices.Chunk(out.Items, 25) { // as many as one request may delete
			if err := d.remove(ctx, id, page); err != nil {
				return dynamox.Fault(ctx, err)
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return nil
		}
	}
}

// remove deletes events of a session, with their blobs.
func (d *Driver) remove(ctx context.Context, id string, events []dynamox.Item) error {
	requests := make([]types.WriteRequest, len(events))
	for i, e := range events {
		if name := dynamox.Str(e, ref); name != "" {
			if err := d.blobs.Delete(ctx, blob.Ref(name)); err != nil {
				return err
			}
		}
		key := dynamox.Item{tables.SessionID: dynamox.S(id), tables.Index: e[tables.Index]}
		requests[i] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}
	}
	return dynamox.Retry(ctx, func() error {
		in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{d.tables.Events: requests}}
		out, err := d.client.BatchWriteItem(ctx, in)
		if err != nil {
			return err
		}
		if requests = out.UnprocessedItems[d.tables.Events]; len(requests) > 0 {
			return dynamox.ErrContended
		}
		return nil
	})
}
