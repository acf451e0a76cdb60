// Package dynamokv keeps the entries of package kv in the control table. Every change is one conditional write of one item.
//
// Entries are spread over partitions by a hash of their keys, so that no kind of key makes a busy partition; a list asks
// all of them at once. Entries that have expired are removed by the table itself, some time later.
//
// A change whose answer was lost is sent again. If its condition fails then and the entry does not show who changed it, the
// outcome is unknown, which is an error with code bdkerr.Unavailable and none of those of package kv.
package dynamokv

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/shared/internal/awsx"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/tables"
)

var _ kv.Driver = (*Driver)(nil)

// shards is the number of partitions. Each takes a thousand writes a second; a list costs a request for each.
const shards = 8

// The attributes of an entry. The sort key is its key.
const (
	value   = "value"
	version = "v"
	until   = "until" // milliseconds; none: for ever
)

// Driver is a [kv.Driver] over the control table, made by [New]. It is safe for concurrent use.
type Driver struct {
	client *dynamodb.Client
	table  string
}

// New returns a driver over the control table.
func New(client *dynamodb.Client, control string) *Driver {
	return &Driver{client: client, table: control}
}

func primary(key string) dynamox.Item {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return dynamox.Item{tables.Partition: dynamox.S(shard(int(h.Sum32() % shards))), tables.Sort: dynamox.S(key)}
}

func shard(n int) string { return fmt.Sprint("kv/", n) }

func entry(item dynamox.Item) kv.Entry {
	e := kv.Entry{Key: dynamox.Str(item, tables.Sort), Value: dynamox.Bytes(item, value), Version: dynamox.Int(item, version)}
	if item[until] != nil {
		e.ExpiresAt = dynamox.Time(dynamox.Int(item, until))
	}
	return e
}

// Get implements [kv.Driver].
func (d *Driver) Get(ctx context.Context, key string) (kv.Entry, error) {
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.table, Key: primary(key), ConsistentRead: aws.Bool(true)})
	switch {
	case err != nil:
		return kv.Entry{}, dynamox.Fault(ctx, err)
	case out.Item == nil:
		return kv.Entry{}, kv.ErrNotFound
	}
	return entry(out.Item), nil
}

// Create implements [kv.Driver].
func (d *Driver) Create(ctx context.Context, e kv.Entry, now time.Time) error {
	const free = "attribute_not_exists(#pk) OR #v = :new OR #until <= :now"
	return d.put(ctx, e, free, dynamox.Item{":now": dynamox.N(now.UnixMilli())}, kv.ErrExists)
}

// Swap implements [kv.Driver].
func (d *Driver) Swap(ctx context.Context, e kv.Entry, old int64, now time.Time) error {
	const current = "attribute_exists(#pk) AND (#v = :new OR #v = :old AND (attribute_not_exists(#until) OR #until > :now))"
	return d.put(ctx, e, current, dynamox.Item{":old": dynamox.N(old), ":now": dynamox.N(now.UnixMilli())}, kv.ErrVersion)
}

// put stores e on a condition, or returns refused.
func (d *Driver) put(ctx context.Context, e kv.Entry, condition string, values dynamox.Item, refused error) error {
	item := primary(e.Key)
	item[value], item[version] = dynamox.B(e.Value), dynamox.N(e.Version)
	if !e.ExpiresAt.IsZero() {
		item[until], item[tables.Expires] = dynamox.N(e.ExpiresAt.UnixMilli()), dynamox.N(dynamox.Seconds(e.ExpiresAt))
	}
	values[":new"] = dynamox.N(e.Version)
	return d.write(ctx, refused, func(watch option) error {
		_, err := d.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &d.table, Item: item, ConditionExpression: &condition, ExpressionAttributeValues: values,
			ExpressionAttributeNames: map[string]string{"#pk": tables.Partition, "#v": version, "#until": until},
		}, watch)
		return err
	})
}

// Delete implements [kv.Driver].
func (d *Driver) Delete(ctx context.Context, key string, old int64) error {
	return d.write(ctx, kv.ErrVersion, func(watch option) error {
		in := &dynamodb.DeleteItemInput{TableName: &d.table, Key: primary(key)}
		if old != 0 {
			in.ConditionExpression = aws.String("#v = :old")
			in.ExpressionAttributeNames, in.ExpressionAttributeValues = map[string]string{"#v": version}, dynamox.Item{":old": dynamox.N(old)}
		}
		_, err := d.client.DeleteItem(ctx, in, watch)
		return err
	})
}

type option = func(*dynamodb.Options)

// write makes a change, and returns refused if its condition failed.
func (d *Driver) write(ctx context.Context, refused error, change func(watch option) error) error {
	lost := false
	err := dynamox.Retry(ctx, func() error { return change(dynamox.Watch(&lost)) })
	switch _, failed := dynamox.Refused(err); {
	case failed && lost:
		return awsx.Unavailable(err)
	case failed:
		return refused
	}
	return dynamox.Fault(ctx, err)
}

// List implements [kv.Driver].
func (d *Driver) List(ctx context.Context, prefix, after string, limit int, now time.Time) ([]kv.Entry, error) {
	parts := make([][]kv.Entry, shards)
	g, part := errgroup.WithContext(ctx)
	for n := range shards {
		g.Go(func() (err error) {
			parts[n], err = d.part(part, n, prefix, after, limit, now)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, dynamox.Fault(ctx, err)
	}
	list := slices.Concat(parts...)
	slices.SortFunc(list, func(a, b kv.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return list[:min(len(list), limit)], nil
}

// part returns what one partition adds to a list.
func (d *Driver) part(ctx context.Context, n int, prefix, after string, limit int, now time.Time) ([]kv.Entry, error) {
	in := &dynamodb.QueryInput{
		TableName: &d.table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(limit)), //nolint:gosec // at most kv.MaxList
		KeyConditionExpression:    aws.String("#pk = :pk"),
		FilterExpression:          aws.String("attribute_not_exists(#until) OR #until > :now"),
		ExpressionAttributeNames:  map[string]string{"#pk": tables.Partition, "#until": until},
		ExpressionAttributeValues: dynamox.Item{":pk": dynamox.S(shard(n)), ":now": dynamox.N(now.UnixMilli())},
	}
	if from := max(prefix, after); from != "" {
		*in.KeyConditionExpression += " AND #sk >= :from"
		in.ExpressionAttributeNames["#sk"], in.ExpressionAttributeValues[":from"] = tables.Sort, dynamox.S(from)
	}
	var list []kv.Entry
	for {
		out, err := d.client.Query(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			e := entry(item)
			switch {
			case e.Key == after:
			case !strings.HasPrefix(e.Key, prefix) || len(list) == limit:
				return list, nil // the keys that begin with prefix stand together
			default:
				list = append(list, e)
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil || len(list) == limit {
			return list, nil
		}
	}
}
