// Package infra makes the AWS resources of an agent: one stack for each, named bdk-<slug>.
//
// [Main] is the whole program that the CDK command line runs. [NewStack] is for those who have a CDK program of their own.
// What is in a stack is told by the files of this package: data, secret, functions (with access, what each may do), turns, api,
// wakes and watch. The manifest of the packed agent (package deploy) says which functions, routes and schedules there are.
//
// Nothing here is safe for concurrent use: constructs live in one other process that is asked one thing at a time.
package infra

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/mail"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
)

// Config says what to make. The zero value of every field but the first two is what a deployment should have.
type Config struct {
	Manifest  deploy.Manifest
	Archive   string            // path of the zip file with the functions
	Variables map[string]string // further environment variables of all functions
	Origins   []string          // whose pages may read answers in a browser, or * alone, see [deploy.Origins]; none by default

	Destroy    bool   // removing the stack removes the sessions too, rather than leaving tables and bucket behind
	NoLogRole  bool   // the account has a role with which API Gateway writes logs; otherwise the stack makes one, to stay
	MaxStreams int    // how many functions may stream at once; 0 leaves it to the account's limit
	Email      string // who is told of alarms; "" for nobody

	ExecProvided bool // scripts run where there is no Python: for an emulator that does not start a runtime's wrapper
}

// stack is an agent's stack while it is made.
type stack struct {
	awscdk.Stack
	Config

	tables    map[resource]awsdynamodb.Table
	bucket    awss3.Bucket
	secret    awssecretsmanager.Secret
	logs      awslogs.LogGroup
	functions map[string]awslambda.Function
	machine   awsstepfunctions.StateMachine
	api       awsapigateway.RestApi
	dead      awssqs.Queue
	group     awsscheduler.CfnScheduleGroup // of the agent's schedules and alarms
	rings     awssqs.Queue                  // of alarms
	ringer    awsiam.Role                   // that alarms ring with
	queues    []awssqs.Queue                // of subscribers
	deadHooks awssqs.Queue                  // nil if there are none
}

// NewStack adds the stack of an agent to scope, a CDK app or a stage of one. It fails for a configuration that cannot become a working deployment.
func NewStack(scope constructs.Construct, c Config) (awscdk.Stack, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	var err error
	if c.Origins, err = deploy.Origins(strings.Join(c.Origins, ",")); err != nil {
		return nil, err
	}
	if err := checkArchive(c); err != nil {
		return nil, err
	}
	s := &stack{Config: c}
	s.Stack = awscdk.NewStack(scope, jsii.String(deploy.StackName(c.Manifest.Slug)), &awscdk.StackProps{
		Description: jsii.String("The agent " + c.Manifest.Slug),
	})
	s.addData()
	s.addSecret()
	s.addFunctions()
	s.addTurns()
	s.addAlarms()
	s.addHooks()
	s.grant()
	s.addAPI()
	s.addWakes()
	s.watch()
	s.output(deploy.OutputURL, strings.TrimSuffix(*s.api.Url(), "/"), "where the agent is served")
	s.output(deploy.OutputSecret, *s.secret.SecretArn(), "the bearer tokens of callers and the keys of models")
	s.output(deploy.OutputMachine, *s.machine.StateMachineArn(), "runs the turns")
	s.output(deploy.OutputLogs, *s.logs.LogGroupName(), "where all functions log")
	return s.Stack, nil
}

// check finds what the service would refuse in the middle of a deployment.
func check(c Config) error {
	const longest = 128 // name of a stack, and of a stage
	if len(deploy.StackName(c.Manifest.Slug)) > longest {
		return fmt.Errorf("the agent's name %q is too long: CloudFormation has room for %d characters, bdk- included", c.Manifest.Slug, longest)
	}
	if err := c.Manifest.Check(); err != nil {
		return err
	}
	named := regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]+$`)
	for _, name := range slices.Sorted(maps.Keys(c.Variables)) {
		if !named.MatchString(name) {
			return fmt.Errorf("%q cannot name a variable: Lambda wants a letter, then letters, digits and underscores, two characters at least", name)
		}
		if name != deploy.EnvModel && (strings.HasPrefix(name, "BDK_") || strings.HasPrefix(name, "AWS_LAMBDA_")) {
			return fmt.Errorf("the variable %s is set by the deployment itself", name)
		}
	}
	if a, err := mail.ParseAddress(c.Email); c.Email != "" && (err != nil || a.Address != c.Email) {
		return fmt.Errorf("%q, whom alarms are told, is no mail address", c.Email)
	}
	return checkSize(c)
}

// checkArchive finds an archive that is not the one that the manifest was written with.
func checkArchive(c Config) error {
	f, err := os.Open(c.Archive)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, c.Manifest.SHA256) {
		return fmt.Errorf("the archive %s is not the manifest's: it has the SHA-256 %s instead of %s. Pack the agent again", c.Archive, got, c.Manifest.SHA256)
	}
	return nil
}

// checkSize finds more variables than a function has room for.
func checkSize(c Config) error {
	const most, own = 4 << 10, 3 << 9 // names of tables and the like are made in the deployment; the longest are below this
	all := map[string]string{deploy.EnvModel: c.Manifest.Model, deploy.EnvOrigins: strings.Join(c.Origins, ",")}
	maps.Copy(all, c.Variables)
	data, err := json.Marshal(all) // so Lambda measures them
	if err == nil && len(data) > most-own {
		err = fmt.Errorf("the variables, origins and model take %d bytes: Lambda has room for %d with the names that the deployment adds, which is %d without", len(data), most, most-own)
	}
	return err
}

func (s *stack) output(name, value, what string) {
	awscdk.NewCfnOutput(s.Stack, jsii.String(name), &awscdk.CfnOutputProps{Value: &value, Description: &what})
}

// kept says what becomes of data when its stack is removed.
func (s *stack) kept() awscdk.RemovalPolicy {
	if s.Destroy {
		return awscdk.RemovalPolicy_DESTROY
	}
	return awscdk.RemovalPolicy_RETAIN
}

// addLogs adds a log group. Its name is fixed, so it has to go with the stack: otherwise the stack could not be made again.
func (s *stack) addLogs(id, name string) awslogs.LogGroup {
	return awslogs.NewLogGroup(s.Stack, &id, &awslogs.LogGroupProps{
		LogGroupName: &name, Retention: awslogs.RetentionDays_ONE_MONTH, RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}

func seconds(n int) awscdk.Duration { return awscdk.Duration_Seconds(number(n)) }

func number(n int) *float64 { return jsii.Number(float64(n)) }

func list(items ...string) *[]*string { return jsii.Strings(items...) }
