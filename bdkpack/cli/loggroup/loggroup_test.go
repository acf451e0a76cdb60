package loggroup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/cli/loggroup"
)

// group is a log group whose answers have two entries each; an entry is named after its time in seconds.
type group struct {
	seconds []int64
	err     error
	filter  string

	nameless bool // entries have no ids
}

func (g *group) FilterLogEvents(_ context.Context, in *cloudwatchlogs.FilterLogEventsInput, _ ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error) {
	g.filter = aws.ToString(in.FilterPattern)
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
	slices.Sort(g.seconds)
	for i := from; i < len(g.seconds); i++ {
		if g.seconds[i]*1000 < *in.StartTime {
			continue
		}
		if len(out.Events) == 2 {
			out.NextToken = aws.String(fmt.Sprint(i))
			break
		}
		name := fmt.Sprint(g.seconds[i])
		e := types.FilteredLogEvent{EventId: &name, Timestamp: aws.Int64(g.seconds[i] * 1000), Message: aws.String(name + "\n")}
		if g.nameless {
			e.EventId = nil
		}
		out.Events = append(out.Events, e)
	}
	return out, nil
}

func read(t *testing.T, r *loggroup.Reader) []string {
	t.Helper()
	var got []string
	if err := r.Read(t.Context(), func(e loggroup.Entry) error { got = append(got, e.Message); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEachEntryIsReadOnceAlsoIfItComesLate(t *testing.T) {
	t.Parallel()
	for _, nameless := range []bool{false, true} { // some emulators give entries no ids
		eachOnce(t, &group{seconds: []int64{99, 100, 101, 102, 103, 120}, nameless: nameless})
	}
}

func eachOnce(t *testing.T, g *group) {
	t.Helper()
	r := loggroup.New(g, "/bdk/a", `ses_"a`, time.Unix(100, 0))
	for _, step := range []struct {
		more []int64
		want []string
	}{
		{nil, []string{"100", "101", "102", "103", "120"}},
		{[]int64{115, 121}, []string{"115", "121"}},
		{[]int64{90}, nil},
		{[]int64{140}, []string{"140"}},
	} {
		g.seconds = append(g.seconds, step.more...)
		if diff := cmp.Diff(step.want, read(t, r)); diff != "" {
			t.Errorf("after %v came (-want +got):\n%s", step.more, diff)
		}
	}
	if want := `"ses_\"a"`; g.filter != want {
		t.Errorf("the filter is %s, want %s", g.filter, want)
	}
}

func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	stop := errors.New("nobody reads")
	for name, c := range map[string]struct {
		group *group
		want  string
	}{
		"no group": {&group{err: &types.ResourceNotFoundException{}}, "there is no log group /bdk/a, is the agent deployed there?"},
		"throttle": {&group{err: errors.New("slow down")}, "reading the log group /bdk/a: slow down"},
		"reader":   {&group{seconds: []int64{1}}, "nobody reads"},
	} {
		err := loggroup.New(c.group, "/bdk/a", "", time.Unix(0, 0)).Read(t.Context(), func(loggroup.Entry) error { return stop })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
