package infra

import (
	"crypto/sha256"
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
)

// addWakes adds what calls functions without a request: the schedules, and the stream of removed sessions. What cannot be
// delivered ends in one queue.
func (s *stack) addWakes() {
	for _, schedule := range s.Manifest.Schedules {
		s.addSchedule(schedule)
	}
	s.addCrons()
	s.addPurge()
	s.addEnded()
	// every sweep does all there is to do, so it may be tried again; but no other is told of an execution that ended
	s.functions[deploy.Sweep].ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		RetryAttempts: number(2), MaxEventAge: awscdk.Duration_Hours(number(1)), OnFailure: awslambdadestinations.NewSqsDestination(s.dead),
	})
}

// addAlarms adds the queue of what was given up, and what reminders are made with: schedules of their own, which functions add to the group
// and which are gone once they have fired, and the queue that they send to.
func (s *stack) addAlarms() {
	queue := func(id string, props awssqs.QueueProps) awssqs.Queue {
		props.Encryption, props.EnforceSSL = awssqs.QueueEncryption_SQS_MANAGED, jsii.Bool(true)
		return awssqs.NewQueue(s.Stack, &id, &props)
	}
	s.dead = queue("Dead", awssqs.QueueProps{RetentionPeriod: awscdk.Duration_Days(number(14))})
	s.group = awsscheduler.NewCfnScheduleGroup(s.Stack, jsii.String("Wakes"), nil)
	s.rings = queue("Rings", awssqs.QueueProps{
		VisibilityTimeout: awscdk.Duration_Minutes(number(6)), // as long as a few sweeps take
		DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: s.dead, MaxReceiveCount: number(3)},
	})
	s.ringer = s.schedulerRole("RingerRole")
	s.ringer.AddToPrincipalPolicy(allow([]string{"sqs:SendMessage"}, *s.rings.QueueArn()))
	awslambda.NewEventSourceMapping(s.Stack, jsii.String("Reminders"), &awslambda.EventSourceMappingProps{
		Target: s.functions[deploy.Sweep], EventSourceArn: s.rings.QueueArn(), BatchSize: number(10),
	})
}

// schedulerRole adds a role for the schedules of this account.
func (s *stack) schedulerRole(id string) awsiam.Role {
	return awsiam.NewRole(s.Stack, &id, &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": s.Account()}},
		}),
	})
}

// addCrons adds the agent's own schedules. One may be two here, which are due together now and then: the function tells their ticks
// apart by the time alone. Where they are, and what they call, is the same in each deployment.
func (s *stack) addCrons() {
	if len(s.Manifest.Crons) == 0 {
		return
	}
	fn := s.functions[deploy.Wake]
	role := s.schedulerRole("WakeScheduleRole")
	role.AddToPrincipalPolicy(allow([]string{"lambda:InvokeFunction"}, *fn.FunctionArn()))
	role.AddToPrincipalPolicy(allow([]string{"sqs:SendMessage"}, *s.dead.QueueArn()))
	fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{ // what was dispatched is not dispatched again
		RetryAttempts: number(2), MaxEventAge: awscdk.Duration_Minutes(number(15)), OnFailure: awslambdadestinations.NewSqsDestination(s.dead),
	})
	for _, c := range s.Manifest.Crons {
		for i, expression := range c.Expressions {
			sum := sha256.Sum256([]byte(c.Schedule)) // of names that are told apart by - and _ alone, too
			id := fmt.Sprintf("Cron%x%d", sum[:8], i+1)
			made := awsscheduler.NewCfnSchedule(s.Stack, &id, &awsscheduler.CfnScheduleProps{
				Description: jsii.String(s.Manifest.Slug + ": " + c.Schedule + ", " + c.Cron), GroupName: s.group.Ref(),
				ScheduleExpression: &expression, ScheduleExpressionTimezone: jsii.String("UTC"),
				FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
				Target: &awsscheduler.CfnSchedule_TargetProperty{
					Arn: fn.FunctionArn(), RoleArn: role.RoleArn(), Input: jsii.String(fmt.Sprintf(`{"schedule":%q,"at":"<aws.scheduler.scheduled-time>"}`, c.Schedule)),
					DeadLetterConfig: &awsscheduler.CfnSchedule_DeadLetterConfigProperty{Arn: s.dead.QueueArn()},
					RetryPolicy:      &awsscheduler.CfnSchedule_RetryPolicyProperty{MaximumRetryAttempts: number(3), MaximumEventAgeInSeconds: number(900)},
				},
			})
			made.Node().AddDependency(role)
		}
	}
}

// addSchedule adds a schedule. A wake-up that is late by more than its interval is of no use: the next one is there.
func (s *stack) addSchedule(schedule deploy.Schedule) {
	fn := s.functions[schedule.Function]
	role := s.schedulerRole(schedule.Name + "ScheduleRole")
	role.AddToPrincipalPolicy(allow([]string{"lambda:InvokeFunction"}, *fn.FunctionArn()))
	role.AddToPrincipalPolicy(allow([]string{"sqs:SendMessage"}, *s.dead.QueueArn()))
	unit := "minutes"
	if schedule.Rate == 1 {
		unit = "minute"
	}
	made := awsscheduler.NewCfnSchedule(s.Stack, jsii.String(schedule.Name+"Schedule"), &awsscheduler.CfnScheduleProps{
		Description:        jsii.String(s.Manifest.Slug + ": " + schedule.Name),
		ScheduleExpression: jsii.String(fmt.Sprintf("rate(%d %s)", schedule.Rate, unit)),
		FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
		Target: &awsscheduler.CfnSchedule_TargetProperty{
			Arn: fn.FunctionArn(), RoleArn: role.RoleArn(),
			DeadLetterConfig: &awsscheduler.CfnSchedule_DeadLetterConfigProperty{Arn: s.dead.QueueArn()},
			RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{
				MaximumRetryAttempts: number(1), MaximumEventAgeInSeconds: number(60 * schedule.Rate),
			},
		},
	})
	made.Node().AddDependency(role)
}

// addEnded has the sweep function told of executions that ended otherwise than by themselves: their turns may still be open.
func (s *stack) addEnded() {
	awsevents.NewRule(s.Stack, jsii.String("Ended"), &awsevents.RuleProps{
		Description: jsii.String(s.Manifest.Slug + ": executions that ended otherwise than by themselves"),
		EventPattern: &awsevents.EventPattern{
			Source: list("aws.states"), DetailType: list("Step Functions Execution Status Change"),
			Detail: &map[string]any{
				"stateMachineArn": list(*s.machine.StateMachineArn()), "status": list("FAILED", "TIMED_OUT", "ABORTED"),
			},
		},
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(s.functions[deploy.Sweep], &awseventstargets.LambdaFunctionProps{
			DeadLetterQueue: s.dead, RetryAttempts: number(10), MaxEventAge: awscdk.Duration_Hours(number(6)),
		})},
	})
}

// addPurge has the sessions that the table removed, because their time was over, told to the purge function.
func (s *stack) addPurge() {
	awslambda.NewEventSourceMapping(s.Stack, jsii.String("Removals"), &awslambda.EventSourceMappingProps{
		Target: s.functions[deploy.Purge], EventSourceArn: s.tables[sessions].TableStreamArn(),
		StartingPosition: awslambda.StartingPosition_TRIM_HORIZON, BatchSize: number(10),
		Filters: &[]*map[string]any{awslambda.FilterCriteria_Filter(&map[string]any{
			"eventName": awslambda.FilterRule_IsEqual("REMOVE"),
			"userIdentity": map[string]any{
				"type": awslambda.FilterRule_IsEqual("Service"), "principalId": awslambda.FilterRule_IsEqual("dynamodb.amazonaws.com"),
			},
		})},
		ReportBatchItemFailures: jsii.Bool(true), BisectBatchOnError: jsii.Bool(true),
		RetryAttempts: number(10), MaxRecordAge: awscdk.Duration_Hours(number(6)), // by default one bad record stops its shard for a day
		OnFailure: awslambdaeventsources.NewSqsDlq(s.dead),
	})
}
