package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"
)

// addSecret adds the deployment's secret with one bearer token in it. Whatever its owner puts there later stays, as long as
// what is written here does not change: then CloudFormation would generate it anew.
func (s *stack) addSecret() {
	s.secret = awssecretsmanager.NewSecret(s.Stack, jsii.String("Secret"), &awssecretsmanager.SecretProps{
		Description: jsii.String("Bearer tokens of the callers of the agent " + s.Manifest.Slug + ", and the keys it works with"),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			SecretStringTemplate: jsii.String("{}"), GenerateStringKey: jsii.String("bearer:default"),
			PasswordLength: number(43), ExcludePunctuation: jsii.Bool(true),
		},
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}
