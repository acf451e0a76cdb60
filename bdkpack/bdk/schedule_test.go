package bdk_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

func TestDefineSchedule(t *testing.T) {
	t.Parallel()
	run := func(context.Context, *bdk.ScheduleContext) error { return nil }
	for want, spec := range map[string]bdk.ScheduleSpec{
		"":                       {Cron: "0 9 * * 1-5", Prompt: "x"},
		"the Cron of the schedu": {Prompt: "x"},
		"seconds and years":      {Cron: "0 0 9 * * 1-5", Run: run},
		"nothing to do":          {Cron: "@daily", Prompt: " \n"},
		"a Prompt and a functio": {Cron: "@daily", Prompt: "x", Run: run},
		"at most 14 minutes":     {Cron: "@daily", Run: run, Timeout: 15 * time.Minute},
		"the Timeout is -1ns":    {Cron: "@daily", Run: run, Timeout: -1},
	} {
		err := bdk.DefineSchedule(spec).Err()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
	}
	if err := (bdk.Schedule{}).Err(); err == nil || !strings.Contains(err.Error(), "bdk.DefineSchedule") {
		t.Errorf("the zero Schedule: %v", err)
	}
	s := bdk.DefineSchedule(bdk.ScheduleSpec{Cron: "0 9 * * *", Run: run})
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	if s.Spec().Timeout != 10*time.Minute || s.Last(at) != at || s.Next(at) != at.AddDate(0, 0, 1) {
		t.Errorf("%+v, last %s, next %s", s.Spec(), s.Last(at), s.Next(at))
	}
}
