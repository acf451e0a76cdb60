// Package schedulerwake has EventBridge Scheduler ring the alarms of package wake: with schedules that fire once, and are gone then.
package schedulerwake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/internal/awsx"
	"github.com/bdk-lambda/bdk/shared/wake"
)

const (
	// ahead is how far ahead the service is asked for at least: it fires in a minute, not at a second, and not in the past.
	ahead    = 30 * time.Second
	attempts = 3   // after the first one
	maxAge   = 900 // seconds
)

// Ring is what the queue is sent, as JSON.
type Ring struct {
	Reminder string `json:"reminder"` // the id that the alarm was set for
}

// Client is the part of the Scheduler client that an Alarm needs.
type Client interface {
	CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, options ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error)
	DeleteSchedule(ctx context.Context, in *scheduler.DeleteScheduleInput, options ...func(*scheduler.Options)) (*scheduler.DeleteScheduleOutput, error)
}

// NewClient returns a client.
func NewClient(cfg aws.Config) *scheduler.Client { return scheduler.NewFromConfig(cfg) }

// Config says where alarms are kept and what they ring. All but Clock are required.
type Config struct {
	Group string      // of schedules: the agent's own
	Queue string      // the ARN of the queue that is sent a [Ring]
	Role  string      // the ARN of the role that may do that
	Clock clock.Clock // default: the system clock
}

// Alarm is a [wake.Alarm]. It is safe for concurrent use.
type Alarm struct {
	client Client
	config Config
}

var _ wake.Alarm = (*Alarm)(nil)

// New returns an alarm.
func New(client Client, config Config) *Alarm {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	return &Alarm{client, config}
}

// name returns the name of an id's schedule: 64 characters, whatever the id is.
func name(id string) *string {
	sum := sha256.Sum256([]byte(id))
	return aws.String(hex.EncodeToString(sum[:]))
}

// Set implements [wake.Alarm]. The time is rounded up to a whole minute.
func (a *Alarm) Set(ctx context.Context, id string, at time.Time) error {
	if soonest := a.config.Clock.Now().Add(ahead); at.Before(soonest) {
		at = soonest
	}
	at = at.UTC().Add(time.Minute - 1).Truncate(time.Minute)
	input, err := json.Marshal(Ring{id})
	if err != nil {
		return fmt.Errorf("encoding the ring of an alarm: %w", err)
	}
	_, err = a.client.CreateSchedule(ctx, &scheduler.CreateScheduleInput{
		Name: name(id), GroupName: &a.config.Group, ClientToken: name(id), Description: &id,
		ScheduleExpression:    aws.String(at.Format("at(2006-01-02T15:04:05)")),
		FlexibleTimeWindow:    &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion: types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: &a.config.Queue, RoleArn: &a.config.Role, Input: aws.String(string(input)),
			RetryPolicy: &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(attempts), MaximumEventAgeInSeconds: aws.Int32(maxAge)},
		},
	})
	if _, taken := errors.AsType[*types.ConflictException](err); taken {
		err = nil // it was set before
	}
	if err != nil {
		return fmt.Errorf("setting the alarm of %s: %w", id, awsx.Fault(ctx, err))
	}
	return nil
}

// Unset implements [wake.Alarm].
func (a *Alarm) Unset(ctx context.Context, id string) error {
	_, err := a.client.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: name(id), GroupName: &a.config.Group, ClientToken: name(id)})
	if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("removing the alarm of %s: %w", id, awsx.Fault(ctx, err))
	}
	return nil
}
