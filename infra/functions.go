package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
)

// addFunctions adds the functions, all from one archive. Each has a role of its own, without any rights yet.
func (s *stack) addFunctions() {
	s.logs = s.addLogs("Logs", "/bdk/"+s.Manifest.Slug)
	s.functions = map[string]awslambda.Function{}
	code := awslambda.Code_FromAsset(&s.Archive, nil)
	for _, f := range s.Manifest.Functions {
		s.functions[f.Name] = awslambda.NewFunction(s.Stack, &f.Name, s.function(f, code))
	}
}

func (s *stack) function(f deploy.Function, code awslambda.Code) *awslambda.FunctionProps {
	props := &awslambda.FunctionProps{
		Description: jsii.String(s.Manifest.Slug + ": " + f.Name),
		Runtime:     awslambda.Runtime_PROVIDED_AL2023(), Architecture: awslambda.Architecture_ARM_64(),
		Code: code, Handler: &f.Name, MemorySize: number(f.Memory), Timeout: seconds(f.Seconds),
		Role: awsiam.NewRole(s.Stack, jsii.String(f.Name+"Role"), &awsiam.RoleProps{
			AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		}),
		LogGroup: s.logs, LoggingFormat: awslambda.LoggingFormat_JSON,
		// turns that run go on with the version they began with, also when the next one is deployed
		CurrentVersionOptions: &awslambda.VersionOptions{RemovalPolicy: awscdk.RemovalPolicy_RETAIN},
	}
	if s.Manifest.Architecture == "amd64" {
		props.Architecture = awslambda.Architecture_X86_64()
	}
	if f.Name == deploy.Stream && s.MaxStreams > 0 {
		props.ReservedConcurrentExecutions = number(s.MaxStreams)
	}
	if f.Name == deploy.Exec || f.Name == deploy.Step {
		props.EphemeralStorageSize = awscdk.Size_Mebibytes(number(1024)) // for the files of a script, and an archive of them
	}
	if f.Name == deploy.Exec && !s.ExecProvided {
		prepareExec(props)
	}
	return props
}

// prepareExec gives scripts bash and Python, which are in the image of Python's runtime. That starts our program instead of its own, with
// its own as an argument, because it is named as a wrapper.
func prepareExec(props *awslambda.FunctionProps) {
	props.Runtime = awslambda.Runtime_PYTHON_3_13()
	props.Environment = &map[string]*string{deploy.EnvWrapper: jsii.String("/var/task/bootstrap")}
}
