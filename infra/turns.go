package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// addTurns adds the state machine that runs turns. It calls published versions of its functions, so that a deployment does not
// change the code under a turn that runs; such a turn may need a version of any earlier deployment.
func (s *stack) addTurns() {
	step, await := s.functions[deploy.Step], s.functions[deploy.Await]
	role := awsiam.NewRole(s.Stack, jsii.String("TurnsRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("states.amazonaws.com"), nil),
	})
	role.AddToPrincipalPolicy(allow([]string{"lambda:InvokeFunction"}, *step.FunctionArn()+":*", *await.FunctionArn()+":*"))
	s.machine = awsstepfunctions.NewStateMachine(s.Stack, jsii.String("Turns"), &awsstepfunctions.StateMachineProps{
		StateMachineType: awsstepfunctions.StateMachineType_STANDARD,
		DefinitionBody:   awsstepfunctions.DefinitionBody_FromString(jsii.String(sfnturn.Definition)),
		DefinitionSubstitutions: &map[string]*string{
			"StepFunctionArn": step.CurrentVersion().FunctionArn(), "AwaitFunctionArn": await.CurrentVersion().FunctionArn(),
		},
		Role: role,
		Logs: &awsstepfunctions.LogOptions{ // every execution has a history; the log is for those that went wrong
			Destination: s.addLogs("TurnsLogs", "/aws/vendedlogs/states/bdk/"+s.Manifest.Slug), Level: awsstepfunctions.LogLevel_ERROR,
			IncludeExecutionData: jsii.Bool(false),
		},
	})
}
