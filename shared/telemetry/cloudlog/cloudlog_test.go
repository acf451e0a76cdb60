package cloudlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/telemetry"
	"github.com/bdk-lambda/bdk/shared/telemetry/cloudlog"
)

// group is a log group with entries in time order; an answer has two of them.
type group struct {
	entries []entry
	err     error
	calls   int
}

type entry struct {
	at   int64
	text string
}

func (g *group) FilterLogEvents(_ context.Context, in *cloudwatchlogs.FilterLogEventsInput, _ ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error) {
	g.calls++
	if g.err != nil {
		return nil, g.err
	}
	from := 0
	if in.NextToken != nil {
		if _, err := fmt.Sscan(*in.NextToken, &from); err != nil {
			return nil, err
		}
	}
	out := &cloudwatchlogs.FilterLogEventsOutput{}
	for i := from; i < len(g.entries); i++ {
		if g.entries[i].at < aws.ToInt64(in.StartTime) {
			continue
		}
		if len(out.Events) == 2 {
			out.NextToken = aws.String(fmt.Sprint(i))
			break
		}
		out.Events = append(out.Events, types.FilteredLogEvent{Timestamp: aws.Int64(g.entries[i].at), Message: &g.entries[i].text})
	}
	return out, nil
}

func line(msg string) string {
	return fmt.Sprintf(`{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":%q,"slug":"a","Turns":1,"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Metrics":[{"Name":"Turns"}]}]}}`, msg)
}

func TestAfter(t *testing.T) {
	t.Parallel()
	now := clock.System{}.Now().UnixMilli()
	g := &group{entries: []entry{
		{now - 16*60_000, line("old")},
		{now - 50, line("one")},
		{now - 40, "REPORT RequestId: x"},
		{now - 39, `{"type":"platform.start"}`},
		{now - 38, "[]"},
		{now - 30, line("two")},
	}}
	r := cloudlog.New(g, "/bdk/a", clock.System{})
	records, next, err := r.After(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []telemetry.Record{
		{N: now - 50, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Level: slog.LevelWarn, Message: "one", Attrs: map[string]json.RawMessage{"slug": json.RawMessage(`"a"`)}},
		{N: now - 30, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Level: slog.LevelWarn, Message: "two", Attrs: map[string]json.RawMessage{"slug": json.RawMessage(`"a"`)}},
	}
	if d := cmp.Diff(want, records, cmpopts.IgnoreUnexported(telemetry.Record{})); d != "" {
		t.Error(d)
	}
	if records[0].Slug() != "a" || next != now-30 {
		t.Errorf("slug %q, next %d", records[0].Slug(), next)
	}
	if records, again, err := r.After(t.Context(), next); err != nil || len(records) != 0 || again != next {
		t.Errorf("got %d records, next %d, %v", len(records), again, err)
	}
}

// TestBounded: an answer has a bounded number of pages; the next one goes on where it ended.
func TestBounded(t *testing.T) {
	t.Parallel()
	now := clock.System{}.Now().UnixMilli()
	g := &group{}
	for i := range 9 {
		g.entries = append(g.entries, entry{now - 100 + int64(i), line(fmt.Sprint(i))})
	}
	r := cloudlog.New(g, "/bdk/a", clock.System{})
	seen, next := map[string]bool{}, int64(0)
	for range 3 {
		records, n, err := r.After(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			seen[rec.Message] = true
		}
		next = n
	}
	if len(seen) != 9 || g.calls > 9 {
		t.Errorf("saw %v in %d calls", seen, g.calls)
	}
}

func TestFault(t *testing.T) {
	t.Parallel()
	r := cloudlog.New(&group{err: &smithy.GenericAPIError{Code: "ThrottlingException"}}, "/bdk/a", clock.System{})
	if _, _, err := r.After(t.Context(), 0); bdkerr.CodeOf(err) != bdkerr.Unavailable {
		t.Errorf("got %v", err)
	}
}
