package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
)

// period is how long the values of a metric are put together, in seconds.
const period = 300

// alarm is something that somebody should look at.
type alarm struct {
	id, what  string
	threshold int
	metrics   []awscloudwatch.IMetric // added up
}

// watch adds alarms, and a dashboard that shows what they look at. Every metric of an alarm has its price, so an alarm has no
// more than it takes: a function that fails shows as a failed execution, an answer of 5xx or an old stream.
func (s *stack) watch() {
	step := s.functions[deploy.Step]
	failed := awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("bdk"), MetricName: jsii.String("TurnsFailed"), Label: jsii.String("turns failed"),
		DimensionsMap: &map[string]*string{"slug": &s.Manifest.Slug}, Statistic: awscloudwatch.Stats_SUM(), Period: seconds(period),
	})
	alarms := []alarm{
		{"TurnsFailed", "turns failed", 1, []awscloudwatch.IMetric{failed}},
		{"ExecutionsFailed", "executions of the state machine failed or timed out: their turns have no end in the log", 1, []awscloudwatch.IMetric{
			s.machine.MetricFailed(sum()), s.machine.MetricTimedOut(sum()),
		}},
		{"SweepErrors", "the sweep function fails: turns that were accepted may not be started", 3, []awscloudwatch.IMetric{
			s.functions[deploy.Sweep].MetricErrors(sum()),
		}},
		{"IteratorAge", "the purge function is behind by more than 30 minutes", 30 * 60 * 1000, []awscloudwatch.IMetric{
			s.functions[deploy.Purge].Metric(jsii.String("IteratorAge"), &awscloudwatch.MetricOptions{
				Statistic: awscloudwatch.Stats_MAXIMUM(), Period: seconds(period),
			}),
		}},
		{"DeadLetters", "something was given up: see the queue", 1, []awscloudwatch.IMetric{
			s.dead.MetricApproximateNumberOfMessagesVisible(&awscloudwatch.MetricOptions{Period: seconds(period)}),
		}},
		{"Throttles", "more functions would run at once than the account allows", 1, []awscloudwatch.IMetric{
			s.functions[deploy.Sessions].MetricThrottles(sum()), step.MetricThrottles(sum()), s.functions[deploy.Stream].MetricThrottles(sum()),
		}},
		{"ServerErrors", "the API answered 5xx", 1, []awscloudwatch.IMetric{
			s.api.DeploymentStage().MetricServerError(sum()),
		}},
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

func sum() *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: awscloudwatch.Stats_SUM(), Period: seconds(period)}
}

func (s *stack) addAlarm(a alarm) awscloudwatch.Alarm {
	metric := a.metrics[0]
	if len(a.metrics) > 1 {
		using, expression := map[string]awscloudwatch.IMetric{}, ""
		for i, m := range a.metrics {
			id := fmt.Sprint("m", i)
			using[id] = m
			if i > 0 {
				expression += "+"
			}
			expression += "FILL(" + id + ",0)"
		}
		metric = awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
			Expression: &expression, UsingMetrics: &using, Label: &a.id, Period: seconds(period),
		})
	}
	return awscloudwatch.NewAlarm(s.Stack, jsii.String(a.id+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmDescription: jsii.String(s.Manifest.Slug + ": " + a.what), Metric: metric,
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
	stage := s.api.DeploymentStage()
	widgets := []awscloudwatch.IWidget{
		graph("requests", stage.MetricCount(sum()), stage.MetricClientError(sum()), stage.MetricServerError(sum())),
		graph("turns", s.machine.MetricStarted(sum()), s.machine.MetricSucceeded(sum()), s.machine.MetricFailed(sum())),
		graph("duration of steps", s.functions[deploy.Step].MetricDuration(nil)),
	}
	for _, a := range alarms {
		widgets = append(widgets, graph(a.id, a.metrics...))
	}
	awscloudwatch.NewDashboard(s.Stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: s.StackName(), Widgets: &[]*[]awscloudwatch.IWidget{&widgets},
	})
}
