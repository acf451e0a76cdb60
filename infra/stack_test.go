package infra_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/test/emulator"
)

const (
	agent  = "pr-approver"
	full   = "other_agent" // everything that can be set is set
	nagged = "nagged"      // see makeWorld
)

func differ(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: want -, got +:\n%s", what, diff)
	}
}

// TestResources: the stack consists of these, so that none is added without a thought.
func TestResources(t *testing.T) {
	got := map[string]int{}
	for _, e := range load(t, agent).Resources {
		got[strings.TrimPrefix(e.Type, "AWS::")]++
	}
	differ(t, "resources", map[string]int{
		"ApiGateway::Account": 1, "ApiGateway::Deployment": 1, "ApiGateway::GatewayResponse": 4, "ApiGateway::Method": 24,
		"ApiGateway::Resource": 25, "ApiGateway::RestApi": 1, "ApiGateway::Stage": 1,
		"CloudWatch::Alarm": 10, "CloudWatch::Dashboard": 1, "DynamoDB::Table": 3, "Events::Rule": 1, "IAM::Policy": 19, "IAM::Role": 16,
		"Lambda::EventInvokeConfig": 1, "Lambda::EventSourceMapping": 2, "Lambda::Function": 12, "Lambda::Permission": 5, "Lambda::Version": 3,
		"Logs::LogGroup": 3, "S3::Bucket": 1, "S3::BucketPolicy": 1, "SQS::Queue": 2, "SQS::QueuePolicy": 2, "Scheduler::Schedule": 1, "Scheduler::ScheduleGroup": 1,
		"SecretsManager::Secret": 1, "StepFunctions::StateMachine": 1,
	}, got)
}

// paths returns the paths of the resources of an API by their ids, which references have whole.
func paths(tmpl template) map[string]string {
	all := map[string]string{"<Api.RootResourceId>": "/"}
	for range tmpl.Resources { // a path is found once its parent's is
		for id, e := range tmpl.Resources {
			if parent, ok := all[fmt.Sprint(e.at("ParentId"))]; ok && e.Type == "AWS::ApiGateway::Resource" {
				all["<"+withoutHash(id)+">"] = strings.TrimSuffix(parent, "/") + "/" + fmt.Sprint(e.at("PathPart"))
			}
		}
	}
	return all
}

// methods returns what answers the requests to each path.
func methods(tmpl template) map[string]string {
	all, path := map[string]string{}, paths(tmpl)
	for _, e := range tmpl.of("AWS::ApiGateway::Method") {
		all[path[fmt.Sprint(e.at("ResourceId"))]] += fmt.Sprint(e.at("HttpMethod"), " ", e.at("AuthorizationType"), " ", e.at("Integration", "Type"), " ",
			e.at("Integration", "ResponseTransferMode"), " ", e.at("Integration", "TimeoutInMillis"), " ", e.at("Integration", "Uri"))
	}
	return all
}

// answers returns what [methods] should return.
func answers() map[string]string {
	all := map[string]string{}
	for _, r := range deploy.Routes() {
		how, uri := "BUFFERED 29000", "2015-03-31/functions/<"+r.Function+".Arn>/invocations"
		if r.Function == deploy.Stream || r.Function == deploy.Tools {
			how, uri = "STREAM 900000", "2021-11-15/functions/<"+r.Function+".Arn>/response-streaming-invocations"
		}
		all[r.Path] = "ANY NONE AWS_PROXY " + how + " arn:<AWS::Partition>:apigateway:<AWS::Region>:lambda:path/" + uri
	}
	return all
}

// TestRoutes: every route goes to its function, within the time that API Gateway has for it, and there are no others.
func TestRoutes(t *testing.T) {
	differ(t, "routes", answers(), methods(load(t, agent)))
}

func TestAPI(t *testing.T) {
	tmpl := load(t, agent)
	api, stage := tmpl.of("AWS::ApiGateway::RestApi")["Api"], tmpl.of("AWS::ApiGateway::Stage")["ApiDeploymentStageprapprover"]
	differ(t, "endpoint", any(map[string]any{"Types": []any{"REGIONAL"}}), api.at("EndpointConfiguration"))
	differ(t, "stage", any(agent), stage.at("StageName"))
	differ(t, "limits", any([]any{map[string]any{
		"HttpMethod": "*", "ResourcePath": "/*", "ThrottlingBurstLimit": 1000.0, "ThrottlingRateLimit": 500.0, "DataTraceEnabled": false,
	}}), stage.at("MethodSettings"))
	for _, name := range []string{"requestId", "status", "functionError", "route"} {
		if format := fmt.Sprint(stage.at("AccessLogSetting", "Format")); !strings.Contains(format, `"`+name+`":"$context.`) {
			t.Errorf("the access log has no %s: %s", name, format)
		}
	}
	got := map[string]string{}
	for _, e := range tmpl.of("AWS::ApiGateway::GatewayResponse") {
		got[fmt.Sprint(e.at("ResponseType"))] = fmt.Sprint(e.at("ResponseTemplates", "application/json"))
	}
	differ(t, "errors", map[string]string{
		"DEFAULT_4XX":       `{"ok":false,"error":"invalid_request","message":$context.error.messageString}`,
		"DEFAULT_5XX":       `{"ok":false,"error":"unavailable","message":$context.error.messageString}`,
		"REQUEST_TOO_LARGE": `{"ok":false,"error":"payload_too_large","message":$context.error.messageString}`,
		"THROTTLED":         `{"ok":false,"error":"unavailable","message":$context.error.messageString}`,
	}, got)
}

// TestOrigins: the functions of the API let pages of all origins read answers, the fixed headers of API Gateway those of one.
func TestOrigins(t *testing.T) {
	for slug, want := range map[string]struct{ variable, header string }{
		agent:  {"<nil>", "<nil>"},
		full:   {"https://app.example.com", "'https://app.example.com' 'Retry-After'"},
		nagged: {"https://app.example.com,http://localhost:5173", "<nil>"},
	} {
		tmpl := load(t, slug)
		for _, f := range deploy.Functions() {
			got := fmt.Sprint(tmpl.of("AWS::Lambda::Function")[f.Name].at("Environment", "Variables", deploy.EnvOrigins))
			if expected := map[bool]string{true: "<nil>", false: want.variable}[f.Kind == deploy.Worker]; got != expected {
				t.Errorf("%s of %s: got %s; want %s", f.Name, slug, got, expected)
			}
		}
		responses := tmpl.of("AWS::ApiGateway::GatewayResponse")
		for _, e := range responses {
			header := func(name string) string {
				return fmt.Sprint(e.at("ResponseParameters", "gatewayresponse.header."+name))
			}
			got := header("Access-Control-Allow-Origin")
			if exposed := header("Access-Control-Expose-Headers"); exposed != "<nil>" {
				got += " " + exposed
			}
			if got != want.header {
				t.Errorf("%v of %s: got %s; want %s", e.at("ResponseType"), slug, got, want.header)
			}
			if after := header("Retry-After"); e.at("ResponseType") == "THROTTLED" && after != "'1'" {
				t.Errorf("throttled requests of %s: Retry-After %s", slug, after)
			}
		}
		if len(responses) != 4 {
			t.Errorf("%s has %d answers of API Gateway's own", slug, len(responses))
		}
	}
}

// TestFunctions: each function has what its line in package deploy says, and the variables of what it works with.
func TestFunctions(t *testing.T) {
	type function struct {
		Runtime, Handler, Role, Log string
		Memory, Seconds, Disk       int
		Variables                   string
	}
	tables, bucket := "BDK_CONTROL_TABLE=<Control> BDK_EVENTS_TABLE=<Events> BDK_SESSIONS_TABLE=<Sessions>", "BDK_BUCKET=<Blobs> "
	secret, machine := "BDK_SECRET_ARN=<Secret>", "BDK_STATE_MACHINE_ARN=<Turns>"
	alarms := "BDK_ALARM_GROUP=<Wakes> BDK_ALARM_QUEUE_ARN=<Rings.Arn> BDK_ALARM_ROLE_ARN=<RingerRole.Arn> "
	variables := map[string]string{
		"await": "BDK_CONTROL_TABLE=<Control> BDK_SESSIONS_TABLE=<Sessions>", "discovery": secret,
		"exec":     "AWS_LAMBDA_EXEC_WRAPPER=/var/task/bootstrap",
		"purge":    bucket + "BDK_EVENTS_TABLE=<Events> BDK_SESSIONS_TABLE=<Sessions>",
		"sessions": bucket + strings.Replace(tables, " BDK_SESSIONS", " "+secret+" BDK_SESSIONS", 1) + " " + machine,
		"step":     alarms + "BDK_EXEC_FUNCTION=<execCurrentVersion> " + bucket + strings.Replace(tables, " BDK_SESSIONS", " "+secret+" BDK_SESSIONS", 1),
		"stream":   bucket + tables + " " + secret,
		"sweep":    "BDK_ALARM_QUEUE_ARN=<Rings.Arn> " + bucket + tables + " " + machine,
		"tools":    alarms + bucket + strings.Replace(tables, " BDK_SESSIONS", " "+secret+" BDK_SESSIONS", 1) + " " + machine,
		"wake":     bucket + strings.Replace(tables, " BDK_SESSIONS", " "+secret+" BDK_SESSIONS", 1) + " " + machine,
	}
	disks := map[string]int{"exec": 1024, "step": 1024}
	for slug, more := range map[string][2]string{agent: {"arm64"}, full: {"x86_64", "BDK_MODEL=scripted:model.yaml LEVEL=debug"}} {
		want, got := map[string]function{}, map[string]function{}
		for _, f := range deploy.Functions() {
			want[f.Name] = function{
				runtimeOf(f.Name) + " [" + more[0] + "]", f.Name, "<" + f.Name + "Role.Arn>", "map[LogFormat:JSON LogGroup:<Logs>]", f.Memory, f.Seconds, disks[f.Name],
				sorted(variables[f.Name] + " " + more[1]),
			}
			if slug == full && f.Name == deploy.Exec {
				want[f.Name] = function{"provided.al2023 [x86_64]", f.Name, "<execRole.Arn>", "map[LogFormat:JSON LogGroup:<Logs>]", f.Memory, f.Seconds, 1024, ""}
			}
			if slug == full && f.Name == deploy.Hook {
				one := want[f.Name]
				one.Variables = sorted(one.Variables + " " + bucket + tables + " " + secret + " BDK_ALARM_GROUP=<Wakes> BDK_ALARM_QUEUE_ARN=<Rings.Arn> BDK_ALARM_ROLE_ARN=<RingerRole.Arn>")
				want[f.Name] = one
			}
			if slug == full && f.Kind != deploy.Worker {
				one := want[f.Name]
				one.Variables = sorted(one.Variables + " BDK_ALLOWED_ORIGINS=https://app.example.com")
				want[f.Name] = one
			}
		}
		for name, e := range load(t, slug).of("AWS::Lambda::Function") {
			if strings.HasPrefix(name, "Custom") { // removes the objects of a bucket that is to be destroyed
				continue
			}
			env := ""
			vars, _ := e.at("Environment", "Variables").(map[string]any)
			for key, value := range vars {
				env += fmt.Sprintf("%s=%v ", key, value)
			}
			memory, _ := e.at("MemorySize").(float64)
			seconds, _ := e.at("Timeout").(float64)
			disk, _ := e.at("EphemeralStorage", "Size").(float64)
			got[name] = function{
				fmt.Sprint(e.at("Runtime"), " ", e.at("Architectures")), fmt.Sprint(e.at("Handler")), fmt.Sprint(e.at("Role")),
				fmt.Sprint(e.at("LoggingConfig")), int(memory), int(seconds), int(disk), sorted(env),
			}
		}
		differ(t, slug, want, got)
	}
}

// runtimeOf returns the runtime of a function: scripts need Python.
func runtimeOf(function string) string {
	if function == deploy.Exec {
		return "python3.13"
	}
	return "provided.al2023"
}

// sorted returns words in order.
func sorted(words string) string {
	all := strings.Fields(words)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestTurns: the machine runs published versions, which stay when the next is published, and may call any of them.
func TestTurns(t *testing.T) {
	tmpl := load(t, agent)
	m := tmpl.of("AWS::StepFunctions::StateMachine")["Turns"]
	differ(t, "definition", any(sfnturn.Definition), m.at("DefinitionString"))
	differ(t, "type", any("STANDARD"), m.at("StateMachineType"))
	differ(t, "functions", any(map[string]any{"StepFunctionArn": "<stepCurrentVersion>", "AwaitFunctionArn": "<awaitCurrentVersion>"}), m.at("DefinitionSubstitutions"))
	differ(t, "log", any(map[string]any{
		"Destinations":         []any{map[string]any{"CloudWatchLogsLogGroup": map[string]any{"LogGroupArn": "<TurnsLogs.Arn>"}}},
		"IncludeExecutionData": false, "Level": "ERROR",
	}), m.at("LoggingConfiguration"))
	versions := map[string]string{}
	for name, e := range tmpl.of("AWS::Lambda::Version") {
		versions[name] = fmt.Sprint(e.at("FunctionName"), " ", e.DeletionPolicy, " ", e.UpdateReplacePolicy)
	}
	differ(t, "versions", map[string]string{"stepCurrentVersion": "<step> Retain Retain", "awaitCurrentVersion": "<await> Retain Retain", "execCurrentVersion": "<exec> Retain Retain"}, versions)
}

// TestWakes: what calls functions by itself tries again within bounds, and what it gives up is kept for two weeks.
func TestWakes(t *testing.T) {
	tmpl := load(t, agent)
	differ(t, "schedules", map[string]any{"sweepSchedule": map[string]any{
		"Description": "pr-approver: sweep", "ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": map[string]any{"Mode": "OFF"},
		"Target": map[string]any{
			"Arn": "<sweep.Arn>", "RoleArn": "<sweepScheduleRole.Arn>", "DeadLetterConfig": map[string]any{"Arn": "<Dead.Arn>"},
			"RetryPolicy": map[string]any{"MaximumEventAgeInSeconds": 60.0, "MaximumRetryAttempts": 1.0},
		},
	}}, map[string]any{"sweepSchedule": tmpl.of("AWS::Scheduler::Schedule")["sweepSchedule"].at()})
	differ(t, "calls of sweep", any(map[string]any{
		"FunctionName": "<sweep>", "MaximumEventAgeInSeconds": 3600.0, "MaximumRetryAttempts": 2.0, "Qualifier": "$LATEST",
		"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Destination": "<Dead.Arn>"}},
	}), tmpl.of("AWS::Lambda::EventInvokeConfig")["sweepEventInvokeConfig"].at())
	ended := tmpl.of("AWS::Events::Rule")["Ended"]
	differ(t, "executions that ended", any(map[string]any{
		"source": []any{"aws.states"}, "detail-type": []any{"Step Functions Execution Status Change"},
		"detail": map[string]any{"stateMachineArn": []any{"<Turns>"}, "status": []any{"FAILED", "TIMED_OUT", "ABORTED"}},
	}), ended.at("EventPattern"))
	differ(t, "who is told of them", any([]any{map[string]any{
		"Arn": "<sweep.Arn>", "Id": "Target0", "DeadLetterConfig": map[string]any{"Arn": "<Dead.Arn>"},
		"RetryPolicy": map[string]any{"MaximumEventAgeInSeconds": 21600.0, "MaximumRetryAttempts": 10.0},
	}}), ended.at("Targets"))
	differ(t, "the stream of removals", any(map[string]any{
		"FunctionName": "<purge>", "EventSourceArn": "<Sessions.StreamArn>", "StartingPosition": "TRIM_HORIZON", "BatchSize": 10.0,
		"BisectBatchOnFunctionError": true, "FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		"MaximumRecordAgeInSeconds": 21600.0, "MaximumRetryAttempts": 10.0,
		"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Destination": "<Dead.Arn>"}},
		"FilterCriteria": map[string]any{"Filters": []any{map[string]any{
			"Pattern": `{"eventName":["REMOVE"],"userIdentity":{"principalId":["dynamodb.amazonaws.com"],"type":["Service"]}}`,
		}}},
	}), tmpl.of("AWS::Lambda::EventSourceMapping")["Removals"].at())
	differ(t, "queue", any(map[string]any{"MessageRetentionPeriod": 1209600.0, "SqsManagedSseEnabled": true}), tmpl.of("AWS::SQS::Queue")["Dead"].at())
}

// TestReminders: what an alarm rings reaches the sweep function, or ends with what was given up.
func TestReminders(t *testing.T) {
	tmpl := load(t, agent)
	differ(t, "the queue", any(map[string]any{
		"SqsManagedSseEnabled": true, "VisibilityTimeout": 360.0, "RedrivePolicy": map[string]any{"deadLetterTargetArn": "<Dead.Arn>", "maxReceiveCount": 3.0},
	}), tmpl.of("AWS::SQS::Queue")["Rings"].at())
	differ(t, "who is told", any(map[string]any{"FunctionName": "<sweep>", "EventSourceArn": "<Rings.Arn>", "BatchSize": 10.0}), tmpl.of("AWS::Lambda::EventSourceMapping")["Reminders"].at())
}

// TestCrons: each schedule of the agent calls the wake function at its times, one that has both day fields by two schedules. Neither their ids
// nor their targets change from one deployment to the next, whatever is in the archive.
func TestCrons(t *testing.T) {
	got := map[string]string{}
	for id, e := range load(t, nagged).Resources {
		if e.Type != "AWS::Scheduler::Schedule" || !strings.HasPrefix(id, "Cron") {
			continue
		}
		got[id[len(id)-1:]+" "+fmt.Sprint(e.at("Description"))] = fmt.Sprint(e.at("ScheduleExpression"), " ", e.at("Target", "Input"))
		differ(t, id, map[string]any{
			"Arn": "<wake.Arn>", "RoleArn": "<WakeScheduleRole.Arn>", "Input": e.at("Target", "Input"), "DeadLetterConfig": map[string]any{"Arn": "<Dead.Arn>"},
			"RetryPolicy": map[string]any{"MaximumEventAgeInSeconds": 900.0, "MaximumRetryAttempts": 3.0},
		}, e.at("Target").(map[string]any))
		differ(t, id, []any{"UTC", "<Wakes>", map[string]any{"Mode": "OFF"}}, []any{e.at("ScheduleExpressionTimezone"), e.at("GroupName"), e.at("FlexibleTimeWindow")})
	}
	const time = `,"at":"<aws.scheduler.scheduled-time>"}`
	differ(t, "schedules", map[string]string{
		"1 nagged: both-days, 0 0 13 * 5": `cron(0 0 13 * ? *) {"schedule":"both-days"` + time, "2 nagged: both-days, 0 0 13 * 5": `cron(0 0 ? * FRI *) {"schedule":"both-days"` + time,
		"1 nagged: daily, 30 9 * * MON-FRI": `cron(30 9 ? * MON,TUE,WED,THU,FRI *) {"schedule":"daily"` + time,
	}, got)
}

// TestHooks: events lead to a queue for each subscriber, and nothing does where nobody wants any.
func TestHooks(t *testing.T) {
	tmpl := load(t, full)
	mappings := tmpl.of("AWS::Lambda::EventSourceMapping")
	differ(t, "the stream of events", any(map[string]any{
		"FunctionName": "<dispatch>", "EventSourceArn": "<Events.StreamArn>", "StartingPosition": "LATEST", "BatchSize": 100.0, "ParallelizationFactor": 10.0,
		"BisectBatchOnFunctionError": true, "FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		"MaximumRecordAgeInSeconds": 3600.0, "MaximumRetryAttempts": 5.0,
		"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Destination": "<Dead.Arn>"}},
		"FilterCriteria": map[string]any{"Filters": []any{map[string]any{
			"Pattern": `{"dynamodb":{"NewImage":{"t":{"S":["turn.completed","turn.failed"]}}},"eventName":["INSERT"]}`,
		}}},
	}), mappings["Appends"].at())
	for name, subscriber := range map[string]string{"auditusage": "hook/audit/usage", "memory": "hook/memory"} {
		differ(t, "the queue of "+subscriber, any(map[string]any{
			"QueueName": deploy.QueueName(full, subscriber), "FifoQueue": true, "SqsManagedSseEnabled": true, "VisibilityTimeout": 660.0, "MessageRetentionPeriod": 345600.0,
			"RedrivePolicy": map[string]any{"deadLetterTargetArn": "<DeadHooks.Arn>", "maxReceiveCount": 3.0},
		}), tmpl.of("AWS::SQS::Queue")["Queuehook"+name].at())
		differ(t, "what it calls", any(map[string]any{
			"FunctionName": "<hook>", "EventSourceArn": "<Queuehook" + name + ".Arn>", "BatchSize": 1.0, "FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		}), mappings["Messageshook"+name].at())
	}
	if tmpl.of("AWS::CloudWatch::Alarm")["DeadHooksAlarm"].Type == "" {
		t.Error("nobody is told of what hooks are not told")
	}
	filters := fmt.Sprint(load(t, nagged).of("AWS::Lambda::EventSourceMapping")["Appends"].at("FilterCriteria"))
	if want := `map[Filters:[map[Pattern:{"eventName":["INSERT"]}]]]`; filters != want {
		t.Errorf("who wants all events is told %s", filters)
	}
	if len(load(t, agent).of("AWS::SQS::Queue")) != 2 || len(load(t, agent).of("AWS::Lambda::EventSourceMapping")) != 2 {
		t.Error("there are queues without hooks")
	}
}

// TestAlarms: every alarm, with what it looks at for five minutes.
func TestAlarms(t *testing.T) {
	metric := func(m map[string]any) string {
		dimensions := ""
		list, _ := m["Dimensions"].([]any)
		for _, d := range list {
			dimensions += fmt.Sprint(" ", d.(map[string]any)["Value"])
		}
		return fmt.Sprint(m["Namespace"], " ", m["MetricName"], dimensions)
	}
	got := map[string]string{}
	for name, e := range load(t, agent).of("AWS::CloudWatch::Alarm") {
		what := fmt.Sprint(e.at("Statistic"), " ", e.at("Period"), " ", metric(e.at().(map[string]any)))
		got[name] = fmt.Sprint(e.at("ComparisonOperator"), " ", e.at("Threshold"), " of ", what, ", ", e.at("TreatMissingData"))
	}
	at := "GreaterThanOrEqualToThreshold "
	differ(t, "alarms", map[string]string{
		"TurnsFailedAlarm":       at + "1 of Sum 300 bdk TurnsFailed pr-approver, notBreaching",
		"ExecutionsFailedAlarm":  at + "1 of Sum 300 AWS/States ExecutionsFailed <Turns>, notBreaching",
		"SweepErrorsAlarm":       at + "3 of Sum 300 AWS/Lambda Errors <sweep>, notBreaching",
		"IteratorAgeAlarm":       at + "1.8e+06 of Maximum 300 AWS/Lambda IteratorAge <purge>, notBreaching",
		"DeadLettersAlarm":       at + "1 of Maximum 300 AWS/SQS ApproximateNumberOfMessagesVisible <Dead.QueueName>, notBreaching",
		"ThrottlessessionsAlarm": at + "1 of Sum 300 AWS/Lambda Throttles <sessions>, notBreaching",
		"ThrottlesstepAlarm":     at + "1 of Sum 300 AWS/Lambda Throttles <step>, notBreaching",
		"ThrottlesstreamAlarm":   at + "1 of Sum 300 AWS/Lambda Throttles <stream>, notBreaching",
		"ThrottlestoolsAlarm":    at + "1 of Sum 300 AWS/Lambda Throttles <tools>, notBreaching",
		"ServerErrorsAlarm":      at + "1 of Sum 300 AWS/ApiGateway 5XXError bdk-pr-approver <ApiDeploymentStageprapprover>, notBreaching",
	}, got)
}

// TestDashboard: what alarms look at is shown, and what is worth knowing otherwise.
func TestDashboard(t *testing.T) {
	body := fmt.Sprint(load(t, agent).of("AWS::CloudWatch::Dashboard")["Dashboard"].at("DashboardBody"))
	for _, name := range []string{
		"TurnsFailed", "ExecutionsFailed", "Errors", "IteratorAge", "ApproximateNumberOfMessagesVisible", "Throttles",
		"5XXError", "Turns", "TurnTime", "Latency", "ModelCalls", "InputTokens", "OutputTokens",
	} {
		if !strings.Contains(body, `"`+name+`"`) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// TestSwitches: what the configuration of a deployment can change.
func TestSwitches(t *testing.T) {
	tmpl := load(t, full)
	for name, e := range tmpl.of("AWS::DynamoDB::Table") {
		if e.DeletionPolicy != "Delete" || e.UpdateReplacePolicy != "Delete" {
			t.Errorf("%s stays though it is to be destroyed", name)
		}
	}
	if got := tmpl.of("AWS::S3::Bucket")["Blobs"].DeletionPolicy; got != "Delete" {
		t.Errorf("the bucket: %s", got)
	}
	if len(tmpl.of("Custom::S3AutoDeleteObjects")) != 1 {
		t.Error("a bucket that is not empty cannot be destroyed")
	}
	if len(tmpl.of("AWS::ApiGateway::Account")) != 0 {
		t.Error("the account's log role is set though it has one")
	}
	if got := tmpl.of("AWS::Lambda::Function")["stream"].at("ReservedConcurrentExecutions"); got != 5.0 {
		t.Errorf("%v streams at once", got)
	}
	var told []string
	for name, e := range tmpl.of("AWS::CloudWatch::Alarm") {
		told = append(told, fmt.Sprint(name, " ", e.at("AlarmActions")))
	}
	for _, one := range told {
		if !strings.HasSuffix(one, " [<Alarms>]") {
			t.Errorf("%s: want the topic", one)
		}
	}
	for _, e := range tmpl.of("AWS::SNS::Subscription") {
		differ(t, "subscription", any(map[string]any{"Endpoint": "ops@example.com", "Protocol": "email", "TopicArn": "<Alarms>"}), e.at())
	}
	if len(told) != 11 || len(tmpl.of("AWS::SNS::Subscription")) != 1 {
		t.Errorf("%d alarms, %d subscriptions", len(told), len(tmpl.of("AWS::SNS::Subscription")))
	}
}

func TestOutputs(t *testing.T) {
	got := map[string]string{}
	for name, o := range load(t, agent).Outputs {
		got[name] = fmt.Sprint(plain(o.Value))
	}
	differ(t, "outputs", map[string]string{
		deploy.OutputURL:    "https://<Api>.execute-api.<AWS::Region>.<AWS::URLSuffix>/<ApiDeploymentStageprapprover>",
		deploy.OutputSecret: "<Secret>", deploy.OutputMachine: "<Turns>", deploy.OutputLogs: "<Logs>",
	}, got)
}

// TestAgentsDoNotClash: the names that stacks choose themselves differ between agents.
func TestAgentsDoNotClash(t *testing.T) {
	names := func(slug string) map[string]bool {
		all := map[string]bool{}
		for _, e := range load(t, slug).Resources {
			for _, property := range []string{"Name", "LogGroupName", "DashboardName", "TableName", "BucketName", "FunctionName", "QueueName", "RoleName", "StateMachineName", "AlarmName"} {
				if name, ok := e.Properties[property].(string); ok && !strings.HasPrefix(e.Type, "Custom::") {
					all[e.Type+" "+name] = true
				}
			}
		}
		return all
	}
	one, another := names(agent), names(full)
	differ(t, "names", []string{
		"AWS::ApiGateway::RestApi bdk-pr-approver", "AWS::CloudWatch::Dashboard bdk-pr-approver",
		"AWS::Logs::LogGroup /aws/vendedlogs/states/bdk/pr-approver", "AWS::Logs::LogGroup /bdk/pr-approver", "AWS::Logs::LogGroup /bdk/pr-approver/access",
	}, slices.Sorted(maps.Keys(one)))
	for name := range one {
		if another[name] {
			t.Errorf("both stacks have %s", name)
		}
	}
	stacks := map[string]string{}
	for _, slug := range []string{"a-b", "a_b", "A_b", "a--b", "a__b", "a"} {
		name := deploy.StackName(slug)
		if stacks[name] != "" || strings.Contains(name, "_") {
			t.Errorf("the stack of %s is %s, that of %q too", slug, name, stacks[name])
		}
		stacks[name] = slug
	}
}

// TestSameTwice: the same configuration is the same template, so that nothing is deployed for nothing.
func TestSameTwice(t *testing.T) {
	tmpl, out := load(t, agent), t.TempDir()
	if _, err := synth(out, func(awscdk.Stack) {}, config(world.dir, agent)); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(tmpl.file)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(out, filepath.Base(tmpl.file)))
	if err != nil {
		t.Fatal(err)
	}
	differ(t, "template", string(first), string(second))
}

// TestLint: the linter of CloudFormation finds nothing but dependencies that the CDK states twice.
func TestLint(t *testing.T) {
	lint := emulator.Find(t, emulator.CFNLint)
	var files []string
	for _, slug := range []string{agent, full} {
		files = append(files, load(t, slug).file)
	}
	out, err := exec.CommandContext(t.Context(), lint, append([]string{"--ignore-checks", "W3005", "--"}, files...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
