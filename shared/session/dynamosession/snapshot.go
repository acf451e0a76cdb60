package dynamosession

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// snapNext is the attribute of a session's item beside the reference of its snapshot. No index holds them.
const snapNext = "snapNext"

// PutSnapshot implements [session.Driver]. The blob of the snapshot before is removed.
func (d *Driver) PutSnapshot(ctx context.Context, id string, s session.Snapshot) error {
	name, err := d.blobs.Put(ctx, salted(snapSalt(id, s.Next), s.Data))
	if err != nil {
		return dynamox.Fault(ctx, err)
	}
	var before dynamox.Item
	err = dynamox.Retry(ctx, func() error {
		out, err := d.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &d.tables.Sessions, Key: rowKey(id),
			UpdateExpression:          aws.String("SET " + tables.Snapshot + " = :ref, " + snapNext + " = :next"),
			ConditionExpression:       aws.String(there + " AND (attribute_not_exists(" + snapNext + ") OR " + snapNext + " <= :next)"),
			ExpressionAttributeValues: dynamox.Item{":ref": dynamox.S(string(name)), ":next": dynamox.N(s.Next)},
			ReturnValues:              types.ReturnValueUpdatedOld, ReturnValuesOnConditionCheckFailure: allOld,
		})
		if err == nil {
			before = out.Attributes
		}
		return err
	})
	old, refused := dynamox.Refused(err)
	switch {
	case refused && len(old) == 0:
		return errors.Join(session.ErrNotFound, d.blobs.Delete(ctx, name))
	case refused && dynamox.Str(old, tables.Snapshot) != string(name):
		return dynamox.Fault(ctx, d.blobs.Delete(ctx, name))
	case refused || err != nil:
		return dynamox.Fault(ctx, err)
	}
	if was := dynamox.Str(before, tables.Snapshot); was != "" && was != string(name) {
		return dynamox.Fault(ctx, d.blobs.Delete(ctx, blob.Ref(was)))
	}
	return nil
}

// snapSalt makes the snapshots of a session differ from those of others, and from its earlier ones.
func snapSalt(id string, next int64) string { return id + "@" + strconv.FormatInt(next, 10) }

// Snapshot implements [session.Driver]. A snapshot whose blob is gone counts as none: it can be made again.
func (d *Driver) Snapshot(ctx context.Context, id string) (session.Snapshot, error) {
	const tries = 3 // a snapshot may be replaced while it is read
	for range tries {
		item, err := d.get(ctx, id, tables.Snapshot, snapNext)
		if err != nil || item[tables.Snapshot] == nil {
			return session.Snapshot{}, err
		}
		next := dynamox.Int(item, snapNext)
		data, err := d.load(ctx, snapSalt(id, next), dynamox.Str(item, tables.Snapshot))
		if !errors.Is(err, blob.ErrNotFound) {
			return session.Snapshot{Next: next, Data: data}, dynamox.Fault(ctx, err)
		}
	}
	return session.Snapshot{}, nil
}
