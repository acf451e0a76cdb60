package infra

import (
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
	s.dead = awssqs.NewQueue(s.Stack, jsii.String("Dead"), &awssqs.QueueProps{
		Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(number(14)),
	})
	for _, schedule := range s.Manifest.Schedules {
		s.addSchedule(schedule)
	}
	s.addPurge()
	s.addEnded()
	// every sweep does all there is to do, so it may be tried again; but no other is told of an execution that ended
	s.functions[deploy.Sweep].ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		RetryAttempts: number(2), MaxEventAge: awscdk.Duration_Hours(number(1)), OnFailure: awslambdadestinations.NewSqsDestination(s.dead),
	})
}

// addSchedule adds a schedule. A wake-up that is late by more than its interval is of no use: the next one is there.
func (s *stack) addSchedule(schedule deploy.Schedule) {
	fn := s.functions[schedule.Function]
	role := awsiam.NewRole(s.Stack, jsii.String(schedule.Name+"ScheduleRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": s.Account()}},
		}),
	})
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
