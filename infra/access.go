package infra

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// resource is something that a function works with.
type resource string

const (
	sessions resource = "Sessions" // tables, by their ids in the stack
	events   resource = "Events"
	control  resource = "Control"

	indexes    resource = "indexes"  // of the sessions
	removals   resource = "removals" // the stream of the sessions
	appends    resource = "appends"  // the stream of the events
	queues     resource = "queues"   // of subscribers
	streams    resource = "streams"  // all there are: IAM cannot tell one from another where they are listed
	blobs      resource = "blobs"    // objects
	sent       resource = "sent"     // objects on their way to the exec function, and back
	bucket     resource = "bucket"   // without the right to list it, a missing object is a forbidden one
	secret     resource = "secret"
	machine    resource = "machine"    // what runs turns
	executions resource = "executions" // the turns it runs
	waiting    resource = "waiting"    // what waits in them for an answer
	begun      resource = "begun"      // other turns, which the tools of a turn begin
	ended      resource = "ended"      // and end
	logs       resource = "logs"       // where everything logs
	models     resource = "models"     // those of Bedrock that the agent uses
	scripts    resource = "scripts"    // the exec function, any version of it
	alarms     resource = "alarms"     // the schedules of reminders
	ringer     resource = "ringer"     // the role that they have
	rings      resource = "rings"      // the queue that they send to
)

// may lets a function do things with a resource.
type may struct {
	with    resource
	actions []string // without the service, which goes with the resource
}

// access says what each function does, and so what it may do. Transactions need the rights of what is in them. The exec function is in the
// hands of scripts: it may do nothing.
func access() map[string][]may {
	write := []string{"GetItem", "PutItem", "Query"}
	row := []string{"ConditionCheckItem", "GetItem", "UpdateItem"}
	keys := []string{"GetItem", "PutItem"}                          // idempotency keys, claims, tokens
	values := []string{"DeleteItem", "GetItem", "PutItem", "Query"} // these, and what tools keep
	log := may{logs, []string{"CreateLogStream", "PutLogEvents"}}
	list := may{bucket, []string{"ListBucket"}}
	remind := []may{{alarms, []string{"CreateSchedule", "DeleteSchedule"}}, {ringer, []string{"PassRole"}}, {rings, nil}}
	bearer := may{secret, []string{"GetSecretValue"}}
	// what the author's code needs, beside a turn
	code := []may{
		log,
		{sessions, row},
		{events, write},
		{control, values},
		{blobs, []string{"DeleteObject", "GetObject", "PutObject"}},
		list,
		{machine, []string{"StartExecution"}},
		{executions, []string{"StopExecution"}},
	}
	return map[string][]may{
		deploy.Discovery: {log, bearer},
		deploy.Sessions: {
			log, bearer,
			{sessions, row},
			{indexes, []string{"Query"}},
			{events, write},
			{control, []string{"GetItem", "PutItem", "Query"}}, // artifacts are listed
			{blobs, []string{"GetObject", "PutObject"}},
			list,
			{machine, []string{"StartExecution"}},
			{executions, []string{"StopExecution"}},
			{waiting, []string{"SendTaskSuccess"}},
		},
		deploy.Stream: {
			{logs, []string{"CreateLogStream", "FilterLogEvents", "PutLogEvents"}},
			bearer,
			{sessions, []string{"GetItem"}},
			{events, []string{"Query"}},
			{control, []string{"GetItem"}},
			{blobs, []string{"GetObject"}},
			list,
		},
		deploy.Step: append(remind, []may{
			log, bearer,
			{sessions, row},
			{events, write},
			{control, values},
			{blobs, []string{"DeleteObject", "GetObject", "PutObject"}},
			list,
			{models, nil},
			{scripts, []string{"InvokeFunction"}},
			{sent, []string{"DeleteObject", "GetObject", "PutObject"}},
			{begun, []string{"StartExecution"}},
			{ended, []string{"StopExecution"}},
		}...),
		deploy.Tools: slices.Concat(code, []may{bearer}, remind),
		deploy.Wake:  append(slices.Clip(code), bearer), // connections have keys
		deploy.Exec:  {log},
		deploy.Dispatch: {
			log, {appends, []string{"DescribeStream", "GetRecords", "GetShardIterator"}}, {streams, []string{"ListStreams"}}, {queues, []string{"GetQueueUrl", "SendMessage"}},
		},
		deploy.Hook:  slices.Concat(code[:len(code)-2], []may{bearer, {queues, []string{"DeleteMessage", "GetQueueAttributes", "ReceiveMessage"}}}, remind),
		deploy.Await: {log, {sessions, []string{"GetItem"}}, {control, keys}, {waiting, []string{"SendTaskSuccess"}}},
		deploy.Sweep: {
			log,
			{sessions, row},
			{indexes, []string{"Query"}},
			{events, write},
			{control, values}, // reminders
			{blobs, []string{"GetObject", "PutObject"}},
			list,
			{rings, []string{"DeleteMessage", "GetQueueAttributes", "ReceiveMessage"}},
			{machine, []string{"StartExecution"}},
			{executions, []string{"DescribeExecution"}},
			{waiting, []string{"SendTaskSuccess"}},
		},
		deploy.Purge: {
			log,
			{sessions, []string{"GetItem"}},
			{removals, []string{"DescribeStream", "GetRecords", "GetShardIterator"}},
			{streams, []string{"ListStreams"}},
			{events, []string{"BatchWriteItem", "Query"}},
			{blobs, []string{"DeleteObject"}},
		},
	}
}

// service returns the prefix of the actions on a resource.
func (r resource) service() string {
	switch r {
	case blobs, bucket, sent:
		return "s3:"
	case scripts:
		return "lambda:"
	case alarms:
		return "scheduler:"
	case ringer:
		return "iam:"
	case rings, queues:
		return "sqs:"
	case secret:
		return "secretsmanager:"
	case machine, executions, waiting, begun, ended:
		return "states:"
	case logs:
		return "logs:"
	default:
		return "dynamodb:"
	}
}

// arns returns the names of a resource in policies.
func (s *stack) arns(r resource) []string {
	switch r {
	case indexes:
		table := *s.tables[sessions].TableArn() + "/index/"
		return []string{table + tables.ByAgent, table + tables.ByOwner}
	case appends:
		return []string{*s.tables[events].TableStreamArn()}
	case queues:
		arns := make([]string, len(s.queues))
		for i, q := range s.queues {
			arns[i] = *q.QueueArn()
		}
		return arns
	case removals:
		return []string{*s.tables[sessions].TableStreamArn()}
	case streams:
		return []string{"*"}
	case blobs:
		return []string{*s.bucket.ArnForObjects(jsii.String(deploy.BlobPrefix + "*"))}
	case sent:
		return []string{*s.bucket.ArnForObjects(jsii.String(deploy.ExecPrefix + "*"))}
	case scripts:
		return []string{*s.functions[deploy.Exec].FunctionArn() + ":*"}
	case alarms:
		return []string{*s.FormatArn(&awscdk.ArnComponents{
			Service: jsii.String("scheduler"), Resource: jsii.String("schedule"), ResourceName: jsii.String(*s.group.Ref() + "/*"),
		})}
	case ringer:
		return []string{*s.ringer.RoleArn()}
	case rings:
		return []string{*s.rings.QueueArn()}
	case bucket:
		return []string{*s.bucket.BucketArn()}
	case secret:
		return []string{*s.secret.SecretArn()}
	case machine, waiting, begun:
		return []string{*s.machine.StateMachineArn()}
	case executions, ended:
		return []string{*s.FormatArn(&awscdk.ArnComponents{
			Service: jsii.String("states"), Resource: jsii.String("execution"),
			ResourceName: jsii.String(*s.machine.StateMachineName() + ":*"), ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
		})}
	case logs:
		return []string{*s.logs.LogGroupArn()}
	default:
		return []string{*s.tables[r].TableArn()}
	}
}

// rights returns what a function may do. What nothing calls, for lack of subscribers, writes its log alone.
func (s *stack) rights(function string) []may {
	all := access()[function]
	if len(s.queues) == 0 && (function == deploy.Dispatch || function == deploy.Hook) {
		all = slices.DeleteFunc(all, func(m may) bool { return m.with != logs })
	}
	return all
}

// grant gives every function what access says: the rights, and the names of what it works with in its environment.
func (s *stack) grant() {
	for _, f := range s.Manifest.Functions {
		fn := s.functions[f.Name]
		var late []awsiam.PolicyStatement
		for _, m := range s.rights(f.Name) {
			switch m.with {
			case models:
				for _, statement := range s.invokeModels() {
					fn.Role().AddToPrincipalPolicy(statement)
				}
			case waiting, begun, ended:
				late = append(late, s.allow(m))
			default:
				if len(m.actions) > 0 {
					fn.Role().AddToPrincipalPolicy(s.allow(m))
				}
			}
			if name, value := s.variable(m.with); name != "" {
				fn.AddEnvironment(&name, value, nil)
			}
		}
		if len(late) > 0 {
			// a policy of its own: the machine is made after the function, and the function after the role's first policy
			awsiam.NewPolicy(s.Stack, jsii.String(f.Name+"Turns"), &awsiam.PolicyProps{Roles: &[]awsiam.IRole{fn.Role()}, Statements: &late})
		}
		if f.Name != deploy.Exec { // what is in variables may be a secret
			s.configure(f, fn)
		}
	}
}

// configure gives a function the variables that the deployment has for all.
func (s *stack) configure(f deploy.Function, fn awslambda.Function) {
	if s.Manifest.Model != "" {
		fn.AddEnvironment(jsii.String(deploy.EnvModel), &s.Manifest.Model, nil)
	}
	if f.Kind != deploy.Worker && len(s.Origins) > 0 {
		fn.AddEnvironment(jsii.String(deploy.EnvOrigins), jsii.String(strings.Join(s.Origins, ",")), nil)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
		fn.AddEnvironment(&name, jsii.String(s.Variables[name]), nil)
	}
}

// variable returns the environment variable with the name of a resource, "" if there is none.
func (s *stack) variable(r resource) (name string, value *string) {
	switch r {
	case sessions:
		return deploy.EnvSessions, s.tables[r].TableName()
	case events:
		return deploy.EnvEvents, s.tables[r].TableName()
	case control:
		return deploy.EnvControl, s.tables[r].TableName()
	case blobs:
		return deploy.EnvBucket, s.bucket.BucketName()
	case secret:
		return deploy.EnvSecret, s.secret.SecretArn()
	case machine:
		return deploy.EnvMachine, s.machine.StateMachineArn()
	case alarms:
		return deploy.EnvAlarmGroup, s.group.Ref()
	case ringer:
		return deploy.EnvAlarmRole, s.ringer.RoleArn()
	case rings:
		return deploy.EnvAlarmQueue, s.rings.QueueArn()
	case scripts: // a published version, which goes with the version of its caller
		return deploy.EnvExec, s.functions[deploy.Exec].CurrentVersion().FunctionArn()
	default:
		return "", nil
	}
}

func (s *stack) allow(m may) awsiam.PolicyStatement {
	actions := make([]string, len(m.actions))
	for i, a := range m.actions {
		actions[i] = m.with.service() + a
	}
	return allow(actions, s.arns(m.with)...)
}

func allow(actions []string, arns ...string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: list(actions...), Resources: list(arns...)})
}

// invokeModels allows the models of Bedrock that the agent uses.
func (s *stack) invokeModels() []awsiam.PolicyStatement {
	var statements []awsiam.PolicyStatement
	for _, m := range bedrock(modelIDs(s.Config), *s.Partition(), *s.Region()+":"+*s.Account()) {
		statement := allow([]string{"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}, m.arns...)
		if m.profile != "" {
			statement.AddCondition(jsii.String("StringEquals"), map[string]any{"bedrock:InferenceProfileArn": m.profile})
		}
		statements = append(statements, statement)
	}
	return statements
}

// modelIDs returns the models that the agent is deployed with, none if that is not known.
func modelIDs(c Config) []string {
	if id := cmp.Or(c.Variables[deploy.EnvModel], c.Manifest.Model); id != "" {
		return []string{id}
	}
	return slices.DeleteFunc(slices.Clone(c.Manifest.Models), func(id string) bool { return id == "" })
}

// modelAccess is what may be called at Bedrock: what has one of the names, if not empty only through an inference profile.
type modelAccess struct {
	arns    []string
	profile string
}

// bedrock returns which models of Bedrock an agent may call that uses the given models; all if it does not say which. The place
// of a deployment is REGION:ACCOUNT. A model is named by itself, by an inference profile (us.provider.model) or by the ARN of
// either. A profile passes calls on to models in regions of its choice, so these have to be allowed everywhere.
func bedrock(ids []string, partition, place string) []modelAccess {
	if len(ids) == 0 {
		ids = []string{model.ProviderBedrock + ":*"}
	}
	foundation := "arn:" + partition + ":bedrock:*::foundation-model/"
	var all []modelAccess
	for _, id := range ids {
		name, ok := strings.CutPrefix(id, model.ProviderBedrock+":")
		switch {
		case !ok:
		case strings.HasPrefix(name, "arn:"):
			all = append(all, modelAccess{arns: []string{name}}, modelAccess{[]string{foundation + "*"}, name})
		default:
			arns := []string{foundation + name, "arn:" + partition + ":bedrock:" + place + ":inference-profile/" + name}
			if _, base, ok := strings.Cut(name, "."); ok {
				arns = append(arns, foundation+base)
			}
			all = append(all, modelAccess{arns: arns})
		}
	}
	return all
}
