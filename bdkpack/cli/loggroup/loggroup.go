// Package loggroup reads what a deployed agent logs from CloudWatch Logs, where all its functions write to one log group.
package loggroup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/bdk-lambda/bdk/bdkpack/cli/account"
)

const (
	late     = 10 * time.Second // entries may become visible so much later than others that are younger
	maxPages = 10_000           // of one reading
)

// Client is the part of the CloudWatch Logs client that a Reader needs.
type Client interface {
	FilterLogEvents(ctx context.Context, in *cloudwatchlogs.FilterLogEventsInput, options ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error)
}

// Entry is what a function wrote, or the service about it.
type Entry struct {
	Time    time.Time
	Stream  string // which function and instance
	Message string // a JSON object as a rule, without a line end
}

// Reader reads a log group from a time on, each entry once. It is not safe for concurrent use.
type Reader struct {
	client Client
	group  string
	where  string // region, for people
	text   string // what entries must contain, "" for nothing
	from   int64  // where to read on, in milliseconds of the epoch
	seen   map[string]int64
}

// New returns a reader of the entries of a log group that are not older than from and contain text, a word or "".
func New(client Client, group, text string, from time.Time) *Reader {
	return &Reader{client: client, group: group, text: text, from: from.UnixMilli(), seen: map[string]int64{}}
}

// Open is New with the account and region of this machine's user, as its environment and files say.
func Open(ctx context.Context, group, text string, from time.Time) (*Reader, error) {
	cfg, err := account.Config(ctx)
	if err != nil {
		return nil, err
	}
	r := New(cloudwatchlogs.NewFromConfig(cfg), group, text, from)
	r.where = " in " + cfg.Region
	return r, nil
}

// Read passes on the entries that were not read yet, oldest first but for those that came late.
func (r *Reader) Read(ctx context.Context, show func(Entry) error) error {
	in := &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &r.group, StartTime: aws.Int64(r.from)}
	if r.text != "" {
		in.FilterPattern = aws.String(`"` + strings.ReplaceAll(r.text, `"`, `\"`) + `"`)
	}
	newest := r.from
	for range maxPages {
		out, err := r.client.FilterLogEvents(ctx, in)
		if missing, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
			return fmt.Errorf("there is no log group %s%s, is the agent deployed there? %w", r.group, r.where, missing)
		}
		if err != nil {
			return fmt.Errorf("reading the log group %s: %w", r.group, err)
		}
		for _, e := range out.Events {
			id, at := identity(e), aws.ToInt64(e.Timestamp)
			newest = max(newest, at)
			if _, again := r.seen[id]; again {
				continue
			}
			r.seen[id] = at
			entry := Entry{time.UnixMilli(at).UTC(), aws.ToString(e.LogStreamName), strings.TrimRight(aws.ToString(e.Message), "\r\n")}
			if err := show(entry); err != nil {
				return err
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	r.from = max(r.from, newest-late.Milliseconds())
	for id, at := range r.seen {
		if at < r.from {
			delete(r.seen, id)
		}
	}
	return nil
}

// identity returns what an entry is known again by: the service's id, or where it has none, all there is.
func identity(e types.FilteredLogEvent) string {
	if id := aws.ToString(e.EventId); id != "" {
		return id
	}
	return fmt.Sprintln(aws.ToString(e.LogStreamName), aws.ToInt64(e.Timestamp), aws.ToString(e.Message))
}
