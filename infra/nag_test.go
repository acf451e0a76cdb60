package infra_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/cxapi"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// accepted is what cdk-nag's rules for AWS solutions find, and why it is as it should be.
func accepted() map[string]string {
	return map[string]string{
		"APIG2": "The functions read paths, queries and bodies strictly, and answer errors in the shape that clients know; a validator would answer in another.",
		"APIG3": "A firewall costs more than an idle agent does. It can be put before the stage by those who want it.",
		"APIG4": "Callers are authenticated by the functions, the same way on every host: only they know the owner of a session.",
		"APIG6": "The access log has the error of each request. Execution logs would repeat it in a group that no one can give a retention.",
		"COG4":  "Callers are programs with bearer tokens, not people in a user pool.",
		"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]": "API Gateway demands this policy, or its equal, of the role that it logs with.",
		"L1":   "Scripts have the Python that many have by now: the CDK knows the newest before every region has it.",
		"S1":   "Only functions use the bucket, by keys that are hashes. A log of every request would cost as much as the requests.",
		"SF1":  "Every execution of a standard machine has its history; what went wrong is logged.",
		"SF2":  "Traces of two states would show what the log and the history show.",
		"SMG4": "Tokens are rotated by who gave them to callers: a new key beside the old one, then without it.",

		"IAM5[Resource::arn:<AWS::Partition>:scheduler:<AWS::Region>:<AWS::AccountId>:schedule/<Wakes>/*]": "The alarms of reminders have hashes as names.",

		"IAM5[Resource::*]":                   "Delivery of the machine's log is set up, and the stream of removals found, by calls that IAM knows no resource of.",
		"IAM5[Resource::<Blobs.Arn>/blobs/*]": "Blobs have their hashes as names.",
		"IAM5[Resource::<Blobs.Arn>/exec/*]":  "What a command works with has a random name.",
		"IAM5[Resource::<exec.Arn>:*]":        "A turn that runs goes on with the version it began with.",
		"IAM5[Resource::<await.Arn>:*]":       "A turn that runs goes on with the version it began with.",
		"IAM5[Resource::<step.Arn>:*]":        "A turn that runs goes on with the version it began with.",
		"IAM5[Resource::arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:<Turns.Name>:*]": "Executions have the ids of their turns as names.",
		"IAM5[Resource::arn:<AWS::Partition>:bedrock:*::foundation-model/anthropic.claude-x]":                 "An inference profile calls the model in a region of its choice.",
		"IAM5[Resource::arn:<AWS::Partition>:bedrock:*::foundation-model/us.anthropic.claude-x]":              "A model that is named without a profile may be one of any region.",
	}
}

// nag has the rules applied to a stack while it is described, but for what is accepted.
func nag(s awscdk.Stack) {
	var but []*cdknag.NagPackSuppression
	for finding, reason := range accepted() {
		rule, what, wildcard := strings.Cut(strings.TrimSuffix(finding, "]"), "[")
		one := &cdknag.NagPackSuppression{Id: jsii.String("AwsSolutions-" + rule), Reason: &reason}
		if wildcard {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(what), `\.Arn`, `[0-9A-F]{8}\.Arn`)
			pattern = strings.ReplaceAll(pattern, `\.Name`, `[0-9A-F]{8}\.Name`) // ids end in a hash
			one.AppliesTo = &[]any{map[string]any{"regex": "/^" + pattern + "$/"}}
		}
		but = append(but, one)
	}
	cdknag.NagSuppressions_AddStackSuppressions(s, &but, nil)
	awscdk.Aspects_Of(s).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{
		LogIgnores: jsii.Bool(true), Verbose: jsii.Bool(false), Reports: jsii.Bool(false),
	}), nil)
}

// notes returns what is noted at the constructs of a stack.
func notes(messages *[]*cxapi.SynthesisMessage) []string { //nolint:staticcheck // there is no other type in Go yet
	var all []string
	for _, m := range *messages {
		all = append(all, fmt.Sprint(m.Entry.Data, " at ", *m.Id)) //nolint:staticcheck // there is no other type in Go yet
	}
	return all
}

// TestNag compares what the rules find with what is accepted, both ways.
func TestNag(t *testing.T) {
	describe(t)
	found, anything := assertions.Annotations_FromStack(world.nag), assertions.Match_AnyValue()
	seen := map[string]string{}
	line := regexp.MustCompile(`^CdkNagSuppression(\[.*\])?: AwsSolutions-(\w+) was triggered`)
	for _, note := range notes(found.FindInfo(jsii.String("*"), anything)) {
		if part := line.FindStringSubmatch(note); part != nil {
			finding := part[2] + withoutHash(part[1])
			seen[finding] = accepted()[finding]
		}
	}
	differ(t, "accepted findings", accepted(), seen)
	differ(t, "errors", []string(nil), notes(found.FindError(jsii.String("*"), anything)))
	differ(t, "warnings", []string(nil), notes(found.FindWarning(jsii.String("*"), anything)))
}
