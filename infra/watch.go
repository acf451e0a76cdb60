package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

// period is how long the values of a metric are put together, in seconds.
const period = 300

// alarm is something that somebody should look at.
type alarm struct {
	id, what  string
	threshold int
	metric    awscloudwatch.IMetric
}

// watch adds alarms, and a dashboard that shows what they look at. Every alarm has its price, so there is none for what others
// show: a function that fails shows as failed turns, an answer of 5xx or an old stream.
func (s *stack) watch() {
	alarms := []alarm{
		{"TurnsFailed", "turns failed", 1, s.metric(telemetry.TurnsFailed, awscloudwatch.Stats_SUM())},
		{"ExecutionsFailed", "executions of the state machine failed: they could not end their turns", 1, s.machine.MetricFailed(sum())},
		{"SweepErrors", "the sweep function fails: turns that were accepted may not be started", 3, s.functions[deploy.Sweep].MetricErrors(sum())},
		{"IteratorAge", "the purge function is behind by more than 30 minutes", 30 * 60 * 1000, s.functions[deploy.Purge].Metric(
			jsii.String("IteratorAge"), &awscloudwatch.MetricOptions{Statistic: awscloudwatch.Stats_MAXIMUM(), Period: seconds(period)},
		)},
		{"DeadLetters", "something was given up: see the queue", 1, s.dead.MetricApproximateNumberOfMessagesVisible(
			&awscloudwatch.MetricOptions{Period: seconds(period)},
		)},
		{"ServerErrors", "the API answered 5xx", 1, s.api.DeploymentStage().MetricServerError(sum())},
	}
	if s.deadHooks != nil {
		alarms = append(alarms, alarm{"DeadHooks", "a hook was not told what was recorded: see the queue", 1, s.deadHooks.MetricApproximateNumberOfMessagesVisible(
			&awscloudwatch.MetricOptions{Period: seconds(period)},
		)})
	}
	for _, name := range []string{deploy.Sessions, deploy.Step, deploy.Stream, deploy.Tools} {
		alarms = append(alarms, alarm{
			"Throttles_" + name, "the " + name + " function would run more often at once than the account allows", 1,
			s.functions[name].MetricThrottles(sum()),
		})
	}
	var action awscloudwatch.IAlarmAction
	if s.Email != "" {
		topic := awssns.NewTopic(s.Stack, jsii.String("Alarms"), &awssns.TopicProps{EnforceSSL: jsii.Bool(true)})
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(&s.Email, nil))
		action = awscloudwatchactions.NewSnsAction(topic)
	}
	for _, a := range alarms {
		made := s.addAlarm(a)
		if action != nil {
			made.AddAlarmAction(action)
		}
	}
	s.addDashboard(alarms)
}

// metric returns one that the functions log.
func (s *stack) metric(name string, statistic *string) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(telemetry.Namespace), MetricName: &name, Statistic: statistic, Period: seconds(period),
		DimensionsMap: &map[string]*string{telemetry.SlugKey: &s.Manifest.Slug},
	})
}

func sum() *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: awscloudwatch.Stats_SUM(), Period: seconds(period)}
}

func (s *stack) addAlarm(a alarm) awscloudwatch.Alarm {
	return awscloudwatch.NewAlarm(s.Stack, jsii.String(a.id+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmDescription: jsii.String(s.Manifest.Slug + ": " + a.what), Metric: a.metric,
		Threshold: number(a.threshold), EvaluationPeriods: number(1),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
}

// addDashboard shows what alarms look at, and how much there is to do.
func (s *stack) addDashboard(alarms []alarm) {
	graph := func(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: &title, Width: number(8), Left: &metrics})
	}
	stage, added := s.api.DeploymentStage(), awscloudwatch.Stats_SUM()
	widgets := []awscloudwatch.IWidget{
		graph("requests", stage.MetricCount(sum()), stage.MetricClientError(sum()), stage.MetricServerError(sum())),
		graph("turns", s.metric(telemetry.Turns, added), s.metric(telemetry.TurnsFailed, added), s.metric(telemetry.ModelCalls, added)),
		graph("milliseconds of turns", s.metric(telemetry.TurnTime, jsii.String("p50")), s.metric(telemetry.TurnTime, jsii.String("p95"))),
		graph("milliseconds of requests", s.metric(telemetry.Latency, jsii.String("p50")), s.metric(telemetry.Latency, jsii.String("p95"))),
		graph("tokens", s.metric(telemetry.InputTokens, added), s.metric(telemetry.OutputTokens, added)),
	}
	for _, a := range alarms {
		widgets = append(widgets, graph(a.id, a.metric))
	}
	awscloudwatch.NewDashboard(s.Stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: s.StackName(), Widgets: &[]*[]awscloudwatch.IWidget{&widgets},
	})
}
