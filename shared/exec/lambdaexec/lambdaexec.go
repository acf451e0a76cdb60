// Package lambdaexec runs commands in a Lambda function that may do nothing: [Runner] is the caller's side of it, [Sandbox] the
// function's.
//
// The files of a command travel with it, and what it changed of them travels back: in the event and the answer if they are small,
// otherwise as objects in a bucket, for which the caller makes presigned URLs. The function may be in the hands of a script that broke
// out of its command, so nothing of its answer is believed without a check.
//
// Files of a directory are regular ones; links and empty directories stay where they are. If the context of a call ends, the command
// is killed at the deadline that the context had, or else at its own; nothing that it changes is seen.
package lambdaexec

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/internal/archive"
)

// patience is how long a call may take: a command may for as long as any, and its files travel before and after it.
const patience = exec.MaxTimeout + 3*time.Minute

// NewClient returns a client that never runs a command twice: a call is made again, up to five times in all, only if it was refused
// because too many run at once, or could not be sent. Options are applied last.
func NewClient(cfg aws.Config, options ...func(*lambda.Options)) *lambda.Client {
	careful := func(o *lambda.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff, r.RateLimiter = 5, 3*time.Second, ratelimit.None
			r.Retryables = []retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				return aws.BoolTernary(notBegun(err))
			})}
		})
	}
	return lambda.NewFromConfig(cfg, append([]func(*lambda.Options){careful}, options...)...)
}

// notBegun reports whether a call that failed with err has surely not reached the function, and may do so when it is made again.
func notBegun(err error) bool {
	if _, busy := errors.AsType[*types.TooManyRequestsException](err); busy {
		return true
	}
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

// Config says where commands run.
type Config struct {
	Function string // name or ARN
	Bucket   string // for what is too large for a call
	Prefix   string // of the keys there, such as "exec/"; what is left over below it may be removed after an hour
}

// Runner is an [exec.Runner] on a function, made by [New]. It is safe for concurrent use.
type Runner struct {
	client *lambda.Client
	store  *s3.Client
	sign   *s3.PresignClient
	cfg    Config
}

var _ exec.Runner = (*Runner)(nil)

// New returns a runner with a client of [NewClient].
func New(client *lambda.Client, store *s3.Client, cfg Config) *Runner {
	sign := s3.NewPresignClient(store, func(o *s3.PresignOptions) {
		o.Expires = patience
		o.ClientOptions = append(o.ClientOptions, func(o *s3.Options) {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired // nobody knows it yet
		})
	})
	return &Runner{client, store, sign, cfg}
}

// Run implements [exec.Runner]. At most [MaxOutput] bytes can be asked for. If too many commands run at once the error is
// bdkerr.Unavailable; if there are too many files, or too large ones, bdkerr.PayloadTooLarge.
func (r *Runner) Run(ctx context.Context, c exec.Command) (exec.Result, error) {
	if err := check(c); err != nil {
		return exec.Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the function does not answer"))
	defer cancel()
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return exec.Result{}, fmt.Errorf("opening the directory of a command: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written to it
	t := &transfer{Runner: r, prefix: r.cfg.Prefix + rand.Text() + "/"}
	defer t.clean(ctx)
	req, err := t.request(ctx, root, c)
	if err != nil {
		return exec.Result{}, err
	}
	a, err := r.invoke(ctx, req)
	if err != nil {
		return exec.Result{}, err
	}
	if a.Fault != nil {
		return exec.Result{}, a.Fault.err()
	}
	res, ok := a.result(c.Output)
	if !ok {
		return exec.Result{}, unknown(errors.New("its answer is not one to the call"))
	}
	if err := t.apply(ctx, root, a); err != nil {
		return exec.Result{}, fmt.Errorf("taking over what a command has changed: %w", err)
	}
	return res, nil
}

// check fails for a command that the function should not be troubled with; it checks the rest.
func check(c exec.Command) error {
	switch {
	case !filepath.IsAbs(c.Dir):
		return bdkerr.New(bdkerr.InvalidRequest, "the directory %.100q of the command is not absolute", c.Dir)
	case len(c.Args) == 0 || c.Args[0] == "":
		return bdkerr.New(bdkerr.InvalidRequest, "the command names no program")
	case len(c.Stdin) > exec.MaxStdin:
		return bdkerr.New(bdkerr.InvalidRequest, "the command's standard input has %d bytes: at most %d are allowed", len(c.Stdin), exec.MaxStdin)
	case c.Timeout < 0 || c.Timeout > exec.MaxTimeout:
		return bdkerr.New(bdkerr.InvalidRequest, "the command's timeout is %s: it must be from 0 to %s", c.Timeout, exec.MaxTimeout)
	case c.Output < 0 || c.Output > MaxOutput:
		return bdkerr.New(bdkerr.InvalidRequest, "the command asks for %d bytes of output: it must be from 0 to %d", c.Output, MaxOutput)
	}
	return nil
}

// invoke calls the function.
func (r *Runner) invoke(ctx context.Context, req Request) (a Answer, err error) {
	payload, err := json.Marshal(req)
	if err != nil {
		return a, err
	}
	out, err := r.client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &r.cfg.Function, InvocationType: types.InvocationTypeRequestResponse, Payload: payload})
	switch {
	case err != nil:
		return a, fault(ctx, err)
	case out.FunctionError != nil:
		var e struct {
			Message string `json:"errorMessage"`
		}
		_ = json.Unmarshal(out.Payload, &e) // it may be anything
		return a, unknown(fmt.Errorf("the function ended with %.*q", maxText, e.Message))
	}
	if err := json.Unmarshal(out.Payload, &a); err != nil {
		return a, unknown(errors.New("its answer cannot be read"))
	}
	return a, nil
}

// fault returns what the error of a call means.
func fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for a command: %w: %w", context.Cause(ctx), err)
	}
	if notBegun(err) {
		return &bdkerr.Error{Code: bdkerr.Unavailable, Message: "no more commands can be run at the moment: try again", Err: err}
	}
	if e, ok := errors.AsType[*awshttp.ResponseError](err); ok && e.HTTPStatusCode()/100 == 4 {
		return fmt.Errorf("running a command, which was refused: %w", err)
	}
	return unknown(err)
}

// unknown returns the error of a command that was or was not run.
func unknown(err error) error {
	return fmt.Errorf("running a command: nothing is known of it, it may have run: %w", err)
}

// err returns the error that a fault stands for. Codes are the caller's to mend, or none.
func (f *Fault) err() error {
	message := strings.ToValidUTF8(f.Message[:min(len(f.Message), maxText)], "")
	if f.Code == bdkerr.InvalidRequest || f.Code == bdkerr.PayloadTooLarge {
		return bdkerr.New(f.Code, "%s", message)
	}
	return fmt.Errorf("running a command: %q", message)
}

// apply does to the directory what the answer says, if all of it can be done.
func (t *transfer) apply(ctx context.Context, root *os.Root, a Answer) error {
	if a.Stored == 0 {
		if len(a.Changes) == 0 {
			return nil
		}
		return apply(root, bytes.NewReader(a.Changes))
	}
	f, err := temporary()
	if err != nil {
		return err
	}
	defer f.remove()
	if err := t.fetch(ctx, f, a.Stored); err != nil {
		return err
	}
	return apply(root, f)
}

func apply(root *os.Root, r io.ReadSeeker) error {
	if err := archive.Check(r); err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return archive.Apply(root, r)
}
