package dynamosession

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// Each list is kept in several parts, or the busiest agent or owner would be limited to the writes of one partition: a turn
// changes a list by four of the thousand that a part takes a second.
const shards = 4

// The states that places in the list of an agent begin with, so that one index serves both kinds of lists of agents.
const (
	idle    = "0"
	running = "1"
)

// An entry is where an index has a session.
type entry struct{ shard, place string }

// places returns where a row stands in the indexes.
func places(r session.Record) (owner, agent entry) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.ID)) // never fails
	shard := int(h.Sum32() % shards)
	state := idle
	if r.Turn.ID != "" {
		state = running
	}
	return entry{ownerShard(r.Agent, r.Owner, shard), place(r)}, entry{agentShard(r.Agent, shard), state + place(r)}
}

func ownerShard(agent, owner string, n int) string { return fmt.Sprintf("%s/%d/%s", agent, n, owner) }

func agentShard(agent string, n int) string { return fmt.Sprintf("%s/%d", agent, n) }

// timeDigits is the width of the time in a place.
const timeDigits = 16

// place returns the order of a row among others: by update, then by id.
func place(r session.Record) string {
	return fmt.Sprintf("%0*x.%s", timeDigits, uint64(r.UpdatedAt.UnixMilli())^1<<63, r.ID)
}

// List implements [session.Driver].
func (d *Driver) List(ctx context.Context, q session.Query) ([]session.Record, string, error) {
	before, err := decode(q)
	if err != nil {
		return nil, "", err
	}
	ranges := d.ranges(q, before)
	parts := make([][]session.Record, len(ranges))
	g, part := errgroup.WithContext(ctx)
	for i, in := range ranges {
		g.Go(func() (err error) {
			parts[i], err = d.part(part, in, before, q.Limit+1) // one more tells whether there is a next page
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, "", dynamox.Fault(ctx, err)
	}
	rows := slices.Concat(parts...)
	slices.SortFunc(rows, func(a, b session.Record) int { return cmp.Compare(place(b), place(a)) })
	if len(rows) <= q.Limit {
		return rows, "", nil
	}
	rows = rows[:q.Limit]
	return rows, session.EncodeCursor(q, place(rows[q.Limit-1])), nil
}

// decode returns the place before which the page ends, one that is above all for the first page.
func decode(q session.Query) (string, error) {
	place, err := session.DecodeCursor(q)
	if err != nil || place == "" {
		return "g", err // follows every hexadecimal digit
	}
	if len(place) <= timeDigits+1 || place[timeDigits] != '.' {
		return "", session.BadCursor()
	}
	if _, err := strconv.ParseUint(place[:timeDigits], 16, 64); err != nil {
		return "", session.BadCursor()
	}
	return place, nil
}

// ranges returns the queries whose answers make up the list.
func (d *Driver) ranges(q session.Query, before string) []*dynamodb.QueryInput {
	var all []*dynamodb.QueryInput
	add := func(index, shard, value, place, from, to string) {
		all = append(all, &dynamodb.QueryInput{
			TableName: &d.tables.Sessions, IndexName: &index, ScanIndexForward: aws.Bool(false),
			KeyConditionExpression:    aws.String(shard + " = :shard AND " + place + " BETWEEN :from AND :to"),
			ExpressionAttributeValues: dynamox.Item{":shard": dynamox.S(value), ":from": dynamox.S(from), ":to": dynamox.S(to)},
		})
	}
	for n := range shards {
		if q.Owner != "" {
			add(tables.ByOwner, tables.OwnerShard, ownerShard(q.Agent, q.Owner, n), tables.OwnerPlace, "0", before)
			continue
		}
		add(tables.ByAgent, tables.AgentShard, agentShard(q.Agent, n), tables.AgentPlace, running, running+before)
		if q.All {
			add(tables.ByAgent, tables.AgentShard, agentShard(q.Agent, n), tables.AgentPlace, idle, idle+before)
		}
	}
	return all
}

// part returns the first rows of a range, leaving out one that stands at before itself.
func (d *Driver) part(ctx context.Context, in *dynamodb.QueryInput, before string, limit int) ([]session.Record, error) {
	var rows []session.Record
	for {
		in.Limit = aws.Int32(int32(limit - len(rows) + 1)) //nolint:gosec // at most 1002
		out, err := d.client.Query(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			r, err := record(item)
			if err != nil {
				return nil, err
			}
			if place(r) != before && len(rows) < limit {
				rows = append(rows, r)
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil || len(rows) == limit {
			return rows, nil
		}
	}
}
