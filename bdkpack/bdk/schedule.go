package bdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/cron"
)

// Schedule has something done again and again. The file bot/schedules/heartbeat.go defines the schedule heartbeat, and
// bot/schedules/daily.md one whose front matter has the Cron and whose text is the Prompt. [DefineSchedule] makes one; the zero
// Schedule is a mistake that `bdk validate` reports. A Schedule is immutable and safe for concurrent use.
type Schedule struct {
	spec ScheduleSpec
	cron cron.Schedule
	err  error
}

// ScheduleSpec says when a schedule is due, and what happens then. Cron is required, and exactly one of Prompt and Run.
type ScheduleSpec struct {
	// Cron is when the schedule is due, in UTC: minute (0-59), hour (0-23), day of the month (1-31), month (1-12, JAN-DEC) and day of
	// the week (0-7, SUN-SAT; 0 and 7 are Sunday), each *, or values, ranges a-b and steps */n or a-b/n with commas between them.
	// If both days are restricted, either has to match. Or @hourly, @daily, @weekly, @monthly, @yearly. It must be a constant.
	Cron string

	// Prompt is the message that starts a task session, exactly once for each time that the schedule is due. The session belongs to
	// the principal schedule:NAME.
	Prompt string

	// Run is called for each time that the schedule is due, at most once: a call that was cut off by the end of its process, an error
	// and a panic are logged, and not tried again. Runs of one schedule may overlap, if one takes longer than the next is away.
	Run func(context.Context, *ScheduleContext) error

	// Timeout bounds one Run. Default: 10 minutes. At most 14.
	Timeout time.Duration
}

// Limits of [ScheduleSpec].Timeout.
const (
	defaultRunTime = 10 * time.Minute
	maxRunTime     = 14 * time.Minute
)

// DefineSchedule returns a schedule.
//
// A host that was not running, or was asleep, at a time that the schedule was due makes up for the last one that it missed, if that
// was within a day. Several processes on one state root count as one host. A schedule that is new, or has another Cron, does
// not make up for times before that. Under `bdk dev` nothing is due by itself: POST /v1/dev/schedules/NAME has it happen.
func DefineSchedule(spec ScheduleSpec) Schedule {
	var errs []error
	when, err := cron.Parse(spec.Cron)
	if err != nil {
		errs = append(errs, fmt.Errorf("the Cron of the schedule: %w", err))
	}
	switch text := strings.TrimSpace(spec.Prompt); {
	case text == "" && spec.Run == nil:
		errs = append(errs, errors.New("the schedule has nothing to do: give it a Prompt, or a function Run"))
	case text != "" && spec.Run != nil:
		errs = append(errs, errors.New("the schedule has a Prompt and a function Run: keep one, which can send the other"))
	}
	if spec.Timeout < 0 || spec.Timeout > maxRunTime {
		errs = append(errs, fmt.Errorf("the Timeout is %s: give at most 14 minutes, or leave it out for 10", spec.Timeout))
	}
	if spec.Timeout == 0 {
		spec.Timeout = defaultRunTime
	}
	return Schedule{spec: spec, cron: when, err: errors.Join(errs...)}
}

// Err returns what is wrong with the definition, nil if nothing is.
func (s Schedule) Err() error {
	if s.err == nil && s.spec.Cron == "" {
		return errors.New("the schedule is empty: define it with bdk.DefineSchedule")
	}
	return s.err
}

// Spec returns what the schedule was defined with, with its Timeout.
func (s Schedule) Spec() ScheduleSpec { return s.spec }

// Next returns the first time after t that the schedule is due, in UTC; the zero time if the definition is wrong.
func (s Schedule) Next(t time.Time) time.Time { return s.cron.Next(t) }

// Last returns the last time at or before t that the schedule was due, in UTC; the zero time if the definition is wrong.
func (s Schedule) Last(t time.Time) time.Time { return s.cron.Last(t) }

// ScheduleContext is what a schedule's function knows. The zero ScheduleContext is usable in tests of a function.
type ScheduleContext struct {
	Services // of the host, for the principal schedule:NAME

	Schedule string    // the name of the schedule
	Agent    string    // the agent's slug
	At       time.Time // the time that the schedule was due, in UTC; when it was asked for, if somebody has it happen
	ID       string    // of this time that it is due: another for each, so it serves as an idempotency key
	Sessions Sessions  // the conversations of the agent: what is sent belongs to schedule:NAME by default; nil in the zero ScheduleContext
	Tools    Tools     // the agent's tools; nil in the zero ScheduleContext
}
