// Package awsx reads the errors of AWS clients.
package awsx

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// Fault returns err, which a client gave up with, as the callers of a port see it: with the cause if ctx has ended, with
// bdkerr.Unavailable if the service was busy or could not be reached all the time, and as it is otherwise.
func Fault(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case transient(err):
		return Unavailable(err)
	}
	return err
}

// Unavailable returns the error for a client that is to try again later because of err.
func Unavailable(err error) error {
	return &bdkerr.Error{Code: bdkerr.Unavailable, Message: "the store is busy: try again", Err: err}
}

func transient(err error) bool {
	if _, ok := errors.AsType[ratelimit.QuotaExceededError](err); ok {
		return true
	}
	return retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}
