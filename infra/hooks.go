package infra

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// addHooks adds what tells the agent's subscribers of events: a queue for each, and the stream of the events that leads to them. Without
// subscribers there is nothing.
func (s *stack) addHooks() {
	if len(s.Manifest.Subscribers) == 0 {
		return
	}
	const tries = 3
	dead := awssqs.NewQueue(s.Stack, jsii.String("DeadHooks"), &awssqs.QueueProps{
		Fifo: jsii.Bool(true), Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(number(14)),
	})
	s.deadHooks = dead
	s.queues = nil
	for _, subscriber := range s.Manifest.Subscribers {
		queue := awssqs.NewQueue(s.Stack, jsii.String("Queue "+subscriber.Name), &awssqs.QueueProps{
			QueueName: jsii.String(deploy.QueueName(s.Manifest.Slug, subscriber.Name)), Fifo: jsii.Bool(true),
			Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true),
			VisibilityTimeout: awscdk.Duration_Seconds(number(2 * deploy.HookSeconds)), // a message must not come again while it is worked on
			RetentionPeriod:   awscdk.Duration_Days(number(4)),
			DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: number(tries)},
		})
		s.queues = append(s.queues, queue)
		awslambda.NewEventSourceMapping(s.Stack, jsii.String("Messages "+subscriber.Name), &awslambda.EventSourceMappingProps{
			Target: s.functions[deploy.Hook], EventSourceArn: queue.QueueArn(),
			BatchSize: number(1), ReportBatchItemFailures: jsii.Bool(true), // with others in its batch, a slow session would hold them
		})
	}
	s.addAppends()
}

// addAppends has the events that somebody wants told to the dispatch function, soon and in order. A record that fails for long stops those
// behind it no longer than a minute or so.
func (s *stack) addAppends() {
	filter := map[string]any{"eventName": awslambda.FilterRule_IsEqual("INSERT")}
	if types := wanted(s.Manifest.Subscribers); len(types) > 0 {
		filter["dynamodb"] = map[string]any{"NewImage": map[string]any{tables.EventType: map[string]any{"S": types}}}
	}
	awslambda.NewEventSourceMapping(s.Stack, jsii.String("Appends"), &awslambda.EventSourceMappingProps{
		Target: s.functions[deploy.Dispatch], EventSourceArn: s.tables[events].TableStreamArn(),
		StartingPosition: awslambda.StartingPosition_LATEST, BatchSize: number(100), ParallelizationFactor: number(10),
		Filters:                 &[]*map[string]any{awslambda.FilterCriteria_Filter(&filter)},
		ReportBatchItemFailures: jsii.Bool(true), BisectBatchOnError: jsii.Bool(true),
		RetryAttempts: number(5), MaxRecordAge: awscdk.Duration_Hours(number(1)),
		OnFailure: awslambdaeventsources.NewSqsDlq(s.dead),
	})
}

// wanted returns the types of the events that subscribers want, none if one wants all.
func wanted(subscribers []deploy.Subscriber) []string {
	var types []string
	for _, s := range subscribers {
		if slices.Contains(s.Events, "*") {
			return nil
		}
		types = append(types, s.Events...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}
