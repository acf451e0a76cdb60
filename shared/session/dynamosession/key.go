package dynamosession

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// The attributes of an idempotency key.
const (
	bodyHash = "hash"
	answered = "answer"
	until    = "until" // milliseconds
)

func keyKey(name string) dynamox.Item {
	return dynamox.Item{tables.Partition: dynamox.S("request/" + name), tables.Sort: dynamox.S("-")}
}

// keyAction stores k unless its name is taken at the given time.
func (d *Driver) keyAction(k session.Key, now time.Time) action {
	item := keyKey(k.Name)
	item[bodyHash], item[answered], item[until] = dynamox.S(k.BodyHash), dynamox.B(k.Answer), dynamox.N(k.ExpiresAt.UnixMilli())
	item[tables.Expires] = dynamox.N(dynamox.Seconds(k.ExpiresAt))
	put := &types.Put{
		TableName: &d.tables.Control, Item: item, ReturnValuesOnConditionCheckFailure: allOld,
		ConditionExpression:       aws.String("attribute_not_exists(" + tables.Partition + ") OR #until <= :now"),
		ExpressionAttributeNames:  map[string]string{"#until": until},
		ExpressionAttributeValues: dynamox.Item{":now": dynamox.N(now.UnixMilli())},
	}
	return action{types.TransactWriteItem{Put: put}, func(old dynamox.Item) error {
		return &session.KeyError{Key: key(k.Name, old)}
	}}
}

func key(name string, item dynamox.Item) session.Key {
	return session.Key{
		Name: name, BodyHash: dynamox.Str(item, bodyHash), Answer: dynamox.Bytes(item, answered), ExpiresAt: dynamox.Time(dynamox.Int(item, until)),
	}
}

// Key implements [session.Driver].
func (d *Driver) Key(ctx context.Context, name string) (session.Key, error) {
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &d.tables.Control, Key: keyKey(name), ConsistentRead: aws.Bool(true),
	})
	switch {
	case err != nil:
		return session.Key{}, dynamox.Fault(ctx, err)
	case out.Item == nil:
		return session.Key{}, session.ErrNotFound
	}
	return key(name, out.Item), nil
}
