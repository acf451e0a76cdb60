// Package sfnturn runs turns on AWS Step Functions: every turn is an execution, named after it, of the state machine that
// [Definition] describes.
//
// The machine calls the step function until the turn is done. It knows ids only: what happened is in the session's log, so
// an execution that was started twice, repeated a step, or was redriven by hand, does no harm. Stopping an execution does not
// stop the function that is running for it; that one stops at the fence in the log.
//
// A turn whose execution could not be started, or ended without it, is found by the [Sweeper].
package sfnturn

import (
	"context"
	_ "embed" // of the definition
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/shared/internal/awsx"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// maxResumes is how many calls of one turn are resumed at the same time.
const maxResumes = 16

// Definition is the state machine in Amazon States Language. ${StepFunctionArn} and ${AwaitFunctionArn} stand for the functions
// it calls: the first takes a [StepInput] and answers with a [StepOutput], the second takes an [AwaitInput]. The machine must be
// of type STANDARD.
//
//go:embed machine.asl.json
var Definition string

// NewClient returns a client for requests that somebody waits for: a call is made up to three times, and none takes longer
// than three seconds. Options are applied last.
//
// The client has no quota of repetitions: that of the SDK is refilled by successes only, but an execution that exists
// already is an everyday answer.
func NewClient(cfg aws.Config, options ...func(*sfn.Options)) *sfn.Client {
	brisk := func(o *sfn.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff, r.RateLimiter = 3, 500*time.Millisecond, ratelimit.None
		})
		if c, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = c.WithTimeout(3 * time.Second)
		}
	}
	return sfn.NewFromConfig(cfg, append([]func(*sfn.Options){brisk}, options...)...)
}

// Runner is a [turn.Runner] on a state machine, made by [New]. It is safe for concurrent use.
type Runner struct {
	client  *sfn.Client
	machine string
	tokens  *Tokens
}

var _ turn.Runner = (*Runner)(nil)

// New returns a runner on the state machine with the given ARN, whose parked calls are in tokens. Without an ARN it takes that of
// [WithExecution].
func New(client *sfn.Client, machineARN string, tokens *Tokens) *Runner {
	return &Runner{client, machineARN, tokens}
}

type executionKey struct{}

// WithExecution returns a context in which turns are run by the machine of an execution, given by its ARN. The machine is made after the
// function that it calls, so that function cannot know it otherwise.
func WithExecution(ctx context.Context, arn string) context.Context {
	return context.WithValue(ctx, executionKey{}, arn)
}

// machineOf returns the ARN of the machine that runs turns.
func (r *Runner) machineOf(ctx context.Context) string {
	arn, _ := ctx.Value(executionKey{}).(string)
	parts := strings.Split(arn, ":")
	if r.machine != "" || len(parts) != 8 || parts[5] != "execution" {
		return r.machine
	}
	parts[5] = "stateMachine"
	return strings.Join(parts[:7], ":")
}

// Start implements [turn.Runner] with one request. A turn that has run already is not run again.
func (r *Runner) Start(ctx context.Context, ref turn.Ref) error {
	_, err := r.start(ctx, ref)
	return err
}

// start reports whether the turn had an execution that has ended. While it runs, starting it again has no effect and shows
// no difference.
func (r *Runner) start(ctx context.Context, ref turn.Ref) (existed bool, err error) {
	_, err = r.client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: aws.String(r.machineOf(ctx)), Name: &ref.TurnID, Input: aws.String(input(ref)),
	})
	if _, ok := errors.AsType[*types.ExecutionAlreadyExists](err); ok {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("starting turn %s: %w", ref.TurnID, awsx.Fault(ctx, err))
	}
	return false, nil
}

// Resume implements [turn.Runner]. The machine waits for every call of a step, so each is resumed. One that is not parked yet is
// resumed by who parks it.
func (r *Runner) Resume(ctx context.Context, _ turn.Ref, _ bool, callIDs ...string) error {
	var g errgroup.Group
	g.SetLimit(maxResumes)
	for _, id := range callIDs {
		g.Go(func() error {
			if err := r.tokens.Resume(ctx, id); !errors.Is(err, ErrClosed) {
				return err
			}
			return nil
		})
	}
	return g.Wait()
}

// Stop implements [turn.Runner] with one request. A step that is running goes on until it meets the end of the turn in the log.
func (r *Runner) Stop(ctx context.Context, ref turn.Ref) error {
	arn, err := execution(r.machineOf(ctx), ref)
	if err != nil {
		return err
	}
	_, err = r.client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: &arn})
	if _, ok := errors.AsType[*types.ExecutionDoesNotExist](err); ok || err == nil {
		return nil
	}
	return fmt.Errorf("stopping turn %s: %w", ref.TurnID, awsx.Fault(ctx, err))
}

// execution returns the ARN of a turn's execution, which does not depend on the machine's version or alias.
func execution(machine string, ref turn.Ref) (string, error) {
	parts := strings.Split(machine, ":")
	if len(parts) < 7 || parts[5] != "stateMachine" {
		return "", fmt.Errorf("%q is not the ARN of a state machine", machine)
	}
	parts[5] = "execution"
	return strings.Join(append(parts[:7], ref.TurnID), ":"), nil
}
