// Package cloudlog reads back what the functions of a deployment have logged: all of them write to one log group, and no
// process of them has seen what another one wrote.
package cloudlog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/internal/awsx"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

const (
	recent   = 15 * time.Minute // how far back a reader begins
	pageSize = 1000             // entries in an answer of the service
	maxPages = 3                // in an answer of After
)

// Client is the part of the CloudWatch Logs client that a Reader needs.
type Client interface {
	FilterLogEvents(ctx context.Context, in *cloudwatchlogs.FilterLogEventsInput, options ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error)
}

// Reader reads one log group. It is safe for concurrent use.
type Reader struct {
	client Client
	group  string
	clock  clock.Clock
}

// New returns a reader of the log group with the given name.
func New(client Client, group string, clk clock.Clock) *Reader { return &Reader{client, group, clk} }

// After returns records that were logged after the time n, in milliseconds of the epoch, oldest first, and what to ask
// with the next time; with 0 it begins 15 minutes ago. The number of a record is its time. It returns at most 3,000
// records. What reaches the log group late, by seconds as a rule, is not returned to those who have read on.
func (r *Reader) After(ctx context.Context, n int64) (records []telemetry.Record, next int64, err error) {
	n = max(n, r.clock.Now().Add(-recent).UnixMilli())
	in := &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &r.group, StartTime: aws.Int64(n + 1), Limit: aws.Int32(pageSize)}
	next = n
	for range maxPages {
		out, err := r.client.FilterLogEvents(ctx, in)
		if err != nil {
			return nil, 0, awsx.Fault(ctx, err)
		}
		for _, e := range out.Events {
			next = max(next, aws.ToInt64(e.Timestamp))
			if rec, ok := record(e); ok {
				records = append(records, rec)
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return records, next, nil
		}
	}
	return records, max(next-1, n), nil // others of the last millisecond may follow
}

// record reads an entry. Those that are not of our log, such as the reports of the service, are left out.
func record(e types.FilteredLogEvent) (telemetry.Record, bool) {
	rec := telemetry.Record{N: aws.ToInt64(e.Timestamp)}
	if json.Unmarshal([]byte(aws.ToString(e.Message)), &rec.Attrs) != nil {
		return rec, false
	}
	take := func(key string, to any) bool {
		raw := rec.Attrs[key]
		delete(rec.Attrs, key)
		return json.Unmarshal(raw, to) == nil
	}
	ok := take("time", &rec.Time) && take("level", &rec.Level) && take("msg", &rec.Message)
	withoutMetrics(rec.Attrs)
	return rec, ok
}

// withoutMetrics removes what [telemetry.EMF] has added.
func withoutMetrics(attrs map[string]json.RawMessage) {
	var meta struct {
		Sets []struct {
			Metrics []struct {
				Name string `json:"Name"`
			} `json:"Metrics"`
		} `json:"CloudWatchMetrics"`
	}
	if json.Unmarshal(attrs["_aws"], &meta) == nil {
		for _, set := range meta.Sets {
			for _, m := range set.Metrics {
				delete(attrs, m.Name)
			}
		}
	}
	delete(attrs, "_aws")
}
