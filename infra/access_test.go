package infra_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/infra"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// allowed returns the statements of a policy as lines.
func allowed(policy any) []string {
	var out []string
	statements, _ := policy.(map[string]any)["Statement"].([]any)
	for _, one := range statements {
		s, _ := one.(map[string]any)
		line := fmt.Sprint(s["Effect"], " ", strings.Join(lines(s["Action"]), " "), " on ", strings.Join(lines(s["Resource"]), " "))
		if s["Condition"] != nil {
			line += fmt.Sprint(" if ", s["Condition"])
		}
		out = append(out, line)
	}
	return out
}

// TestPermissions: each role may do exactly this.
func TestPermissions(t *testing.T) {
	tmpl := load(t, agent)
	got := map[string][]string{}
	for _, e := range tmpl.of("AWS::IAM::Policy") {
		for _, role := range lines(e.at("Roles")) {
			got[role] = append(got[role], allowed(e.at("PolicyDocument"))...)
		}
	}
	for name, e := range tmpl.of("AWS::IAM::Role") {
		got["<"+name+">"] = append(got["<"+name+">"], lines(e.at("ManagedPolicyArns"))...)
	}
	for role := range got {
		got[role] = slices.DeleteFunc(got[role], func(s string) bool { return s == "<nil>" })
		slices.Sort(got[role])
	}
	const (
		log        = "Allow logs:CreateLogStream logs:PutLogEvents on <Logs.Arn>"
		bearer     = "Allow secretsmanager:GetSecretValue on <Secret>"
		row        = "Allow dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:UpdateItem on <Sessions.Arn>"
		lists      = "Allow dynamodb:Query on <Sessions.Arn>/index/byAgent <Sessions.Arn>/index/byOwner"
		events     = "Allow dynamodb:GetItem dynamodb:PutItem dynamodb:Query on <Events.Arn>"
		control    = "Allow dynamodb:GetItem dynamodb:PutItem on <Control.Arn>"
		values     = "Allow dynamodb:DeleteItem dynamodb:GetItem dynamodb:PutItem dynamodb:Query on <Control.Arn>"
		list       = "Allow s3:ListBucket on <Blobs.Arn>"
		executions = "on arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:<Turns.Name>:*"
		alarm      = "Allow scheduler:CreateSchedule scheduler:DeleteSchedule on arn:<AWS::Partition>:scheduler:<AWS::Region>:<AWS::AccountId>:schedule/<Wakes>/*"
		ringer     = "Allow iam:PassRole on <RingerRole.Arn>"
		foundation = "arn:<AWS::Partition>:bedrock:*::foundation-model/"
	)
	want := map[string][]string{
		"<awaitRole>":     {control, "Allow dynamodb:GetItem on <Sessions.Arn>", log, "Allow states:SendTaskSuccess on <Turns>"},
		"<discoveryRole>": {log, bearer},
		"<dispatchRole>":  {log},
		"<execRole>":      {log},
		"<hookRole>":      {log},
		"<purgeRole>": {
			"Allow dynamodb:BatchWriteItem dynamodb:Query on <Events.Arn>",
			"Allow dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on <Sessions.StreamArn>", "Allow dynamodb:ListStreams on *",
			"Allow dynamodb:GetItem on <Sessions.Arn>", log, "Allow s3:DeleteObject on <Blobs.Arn>/blobs/*",
			"Allow sqs:GetQueueAttributes sqs:GetQueueUrl sqs:SendMessage on <Dead.Arn>",
		},
		"<sessionsRole>": {
			row, "Allow dynamodb:GetItem dynamodb:PutItem dynamodb:Query on <Control.Arn> <Events.Arn>", lists, log, "Allow s3:GetObject s3:PutObject on <Blobs.Arn>/blobs/*", list, bearer,
			"Allow states:StartExecution on <Turns>", "Allow states:StopExecution " + executions, "Allow states:SendTaskSuccess on <Turns>",
		},
		"<stepRole>": {
			"Allow states:StartExecution on <Turns>", "Allow states:StopExecution " + executions,
			"Allow bedrock:InvokeModel bedrock:InvokeModelWithResponseStream on " +
				"arn:<AWS::Partition>:bedrock:<AWS::Region>:<AWS::AccountId>:inference-profile/us.anthropic.claude-x " +
				foundation + "anthropic.claude-x " + foundation + "us.anthropic.claude-x",
			row, values, events, log, "Allow s3:DeleteObject s3:GetObject s3:PutObject on <Blobs.Arn>/blobs/* <Blobs.Arn>/exec/*", list, bearer, alarm, ringer,
			"Allow lambda:InvokeFunction on <exec.Arn>:*",
		},
		"<streamRole>": {
			"Allow dynamodb:Query on <Events.Arn>", "Allow dynamodb:GetItem on <Control.Arn> <Sessions.Arn>",
			"Allow logs:CreateLogStream logs:FilterLogEvents logs:PutLogEvents on <Logs.Arn>",
			"Allow s3:GetObject on <Blobs.Arn>/blobs/*", list, bearer,
		},
		"<sweepRole>": {
			row, values, "Allow s3:GetObject s3:PutObject on <Blobs.Arn>/blobs/*", list, "Allow sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage on <Rings.Arn>", events, lists, log, "Allow states:DescribeExecution " + executions, "Allow states:StartExecution on <Turns>",
			"Allow states:SendTaskSuccess on <Turns>", "Allow sqs:GetQueueAttributes sqs:GetQueueUrl sqs:SendMessage on <Dead.Arn>",
		},
		"<sweepScheduleRole>": {"Allow lambda:InvokeFunction on <sweep.Arn>", "Allow sqs:SendMessage on <Dead.Arn>"},
		"<toolsRole>": {
			row, values, events, log, "Allow s3:DeleteObject s3:GetObject s3:PutObject on <Blobs.Arn>/blobs/*", list, bearer, alarm, ringer,
			"Allow states:StartExecution on <Turns>", "Allow states:StopExecution " + executions,
		},
		"<wakeRole>": {
			row, values, events, log, "Allow s3:DeleteObject s3:GetObject s3:PutObject on <Blobs.Arn>/blobs/*", list, bearer,
			"Allow states:StartExecution on <Turns>", "Allow states:StopExecution " + executions,
		},
		"<RingerRole>": {"Allow sqs:SendMessage on <Rings.Arn>"},
		"<TurnsRole>": {
			"Allow lambda:InvokeFunction on <await.Arn>:* <step.Arn>:*",
			"Allow logs:CreateLogDelivery logs:DeleteLogDelivery logs:DescribeLogGroups logs:DescribeResourcePolicies logs:GetLogDelivery " +
				"logs:ListLogDeliveries logs:PutResourcePolicy logs:UpdateLogDelivery on *",
		},
		"<ApiCloudWatchRole>": {"arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"},
	}
	for role := range want {
		slices.Sort(want[role])
	}
	differ(t, "roles", want, got)
}

// TestPermissionsOfHooks: what tells hooks may do this where there are some.
func TestPermissionsOfHooks(t *testing.T) {
	policies := load(t, full).of("AWS::IAM::Policy")
	queues := "<Queuehookauditusage.Arn> <Queuehookmemory.Arn>"
	differ(t, "dispatch", []string{
		"Allow dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on <Events.StreamArn>", "Allow dynamodb:ListStreams on *",
		"Allow logs:CreateLogStream logs:PutLogEvents on <Logs.Arn>", "Allow sqs:GetQueueAttributes sqs:GetQueueUrl sqs:SendMessage on <Dead.Arn>",
		"Allow sqs:GetQueueUrl sqs:SendMessage on " + queues,
	}, inOrder(allowed(policies["dispatchRoleDefaultPolicy"].at("PolicyDocument"))))
	differ(t, "hook", []string{
		"Allow dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:UpdateItem on <Sessions.Arn>",
		"Allow dynamodb:DeleteItem dynamodb:GetItem dynamodb:PutItem dynamodb:Query on <Control.Arn>", "Allow dynamodb:GetItem dynamodb:PutItem dynamodb:Query on <Events.Arn>",
		"Allow iam:PassRole on <RingerRole.Arn>", "Allow logs:CreateLogStream logs:PutLogEvents on <Logs.Arn>",
		"Allow s3:DeleteObject s3:GetObject s3:PutObject on <Blobs.Arn>/blobs/*", "Allow s3:ListBucket on <Blobs.Arn>",
		"Allow scheduler:CreateSchedule scheduler:DeleteSchedule on arn:<AWS::Partition>:scheduler:<AWS::Region>:<AWS::AccountId>:schedule/<Wakes>/*", "Allow secretsmanager:GetSecretValue on <Secret>",
		"Allow sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage on " + queues,
	}, inOrder(allowed(policies["hookRoleDefaultPolicy"].at("PolicyDocument"))))
}

func inOrder(list []string) []string {
	slices.Sort(list)
	return list
}

// TestWhoMayBeWhom: each role is for one service, the schedule's for this account's schedules alone; only the API calls functions.
func TestWhoMayBeWhom(t *testing.T) {
	tmpl := load(t, agent)
	got := map[string]string{}
	for name, e := range tmpl.of("AWS::IAM::Role") {
		for _, one := range e.at("AssumeRolePolicyDocument", "Statement").([]any) {
			s, _ := one.(map[string]any)
			got[name] += fmt.Sprint(s["Principal"], " ", s["Condition"])
		}
	}
	want := map[string]string{
		"TurnsRole":         "map[Service:states.amazonaws.com] <nil>",
		"ApiCloudWatchRole": "map[Service:apigateway.amazonaws.com] <nil>",
		"RingerRole":        "map[Service:scheduler.amazonaws.com] map[StringEquals:map[aws:SourceAccount:<AWS::AccountId>]]",
		"sweepScheduleRole": "map[Service:scheduler.amazonaws.com] map[StringEquals:map[aws:SourceAccount:<AWS::AccountId>]]",
	}
	for _, f := range []string{"await", "discovery", "dispatch", "exec", "hook", "purge", "sessions", "step", "stream", "sweep", "tools", "wake"} {
		want[f+"Role"] = "map[Service:lambda.amazonaws.com] <nil>"
	}
	differ(t, "trust", want, got)

	var calls []string
	for _, e := range tmpl.of("AWS::Lambda::Permission") {
		calls = append(calls, fmt.Sprint(e.at("Principal"), " ", e.at("Action"), " ", e.at("FunctionName"), " from ", e.at("SourceArn")))
	}
	slices.Sort(calls)
	api := "arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<Api>/*/*/*"
	differ(t, "permissions", []string{
		"apigateway.amazonaws.com lambda:InvokeFunction <discovery.Arn> from " + api,
		"apigateway.amazonaws.com lambda:InvokeFunction <sessions.Arn> from " + api,
		"apigateway.amazonaws.com lambda:InvokeFunction <stream.Arn> from " + api,
		"apigateway.amazonaws.com lambda:InvokeFunction <tools.Arn> from " + api,
		"events.amazonaws.com lambda:InvokeFunction <sweep.Arn> from <Ended.Arn>",
	}, calls)
	for kind, policy := range map[string]string{"AWS::S3::BucketPolicy": "BlobsPolicy", "AWS::SQS::QueuePolicy": "DeadPolicy"} {
		for _, line := range allowed(tmpl.of(kind)[policy].at("PolicyDocument")) {
			if line == "Allow sqs:SendMessage on <Dead.Arn> if map[ArnEquals:map[aws:SourceArn:<Ended.Arn>]]" && policy == "DeadPolicy" {
				continue // what the rule cannot deliver
			}
			if !strings.HasPrefix(line, "Deny ") || !strings.HasSuffix(line, "if map[Bool:map[aws:SecureTransport:false]]") {
				t.Errorf("%s: %s", policy, line)
			}
		}
	}
}

// TestModels: the step function may call the models of Bedrock that the agent uses, all of them if that is not known, and no others.
func TestModels(t *testing.T) {
	const (
		foundation  = "arn:aws:bedrock:*::foundation-model/"
		profile     = "arn:aws:bedrock:us-east-1:1:inference-profile/"
		application = "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"
	)
	uses := func(models ...string) deploy.Manifest { return deploy.Manifest{Models: models} }
	replaced := uses("bedrock:a.b")
	replaced.Model = "scripted:x.yaml"
	for name, tc := range map[string]struct {
		config infra.Config
		want   []string
	}{
		"unknown":             {infra.Config{}, []string{foundation + "* " + profile + "*"}},
		"computed":            {infra.Config{Manifest: uses("")}, []string{foundation + "* " + profile + "*"}},
		"none of Bedrock":     {infra.Config{Manifest: uses("openai:x", "anthropic:y")}, nil},
		"a fallback":          {infra.Config{Manifest: uses("openai:x", "bedrock:a.b-v1:0")}, []string{foundation + "a.b-v1:0 " + profile + "a.b-v1:0 " + foundation + "b-v1:0"}},
		"by a profile":        {infra.Config{Manifest: uses("bedrock:eu.a.b")}, []string{foundation + "eu.a.b " + profile + "eu.a.b " + foundation + "a.b"}},
		"by an ARN":           {infra.Config{Manifest: uses("bedrock:" + application)}, []string{application, foundation + "* through " + application}},
		"replaced in packing": {infra.Config{Manifest: replaced}, nil},
		"replaced by a variable": {
			infra.Config{Manifest: replaced, Variables: map[string]string{deploy.EnvModel: "bedrock:c"}},
			[]string{foundation + "c " + profile + "c"},
		},
	} {
		differ(t, name, tc.want, infra.Bedrock(tc.config, "aws", "us-east-1:1"))
	}
	for _, line := range allowed(load(t, full).of("AWS::IAM::Policy")["stepRoleDefaultPolicy"].at("PolicyDocument")) {
		if strings.Contains(line, "bedrock:") {
			t.Errorf("an agent with a script for a model: %s", line)
		}
	}
}
