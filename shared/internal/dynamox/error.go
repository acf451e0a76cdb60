package dynamox

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/internal/awsx"
)

// Refused reports whether the condition of a single write failed, and returns the item that stands there, nil if none
// does or the call did not ask for it.
func Refused(err error) (old Item, refused bool) {
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return nil, false
	}
	return failed.Item, true
}

// Watch is an option of a call. It sets lost when the client repeats the call without knowing whether it was carried out:
// a condition that fails then may do so because of the call's own change.
func Watch(lost *bool) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.Retryer = watcher{o.Retryer, lost} }
}

type watcher struct {
	aws.Retryer

	lost *bool
}

// IsErrorRetryable implements [aws.Retryer].
func (w watcher) IsErrorRetryable(err error) bool {
	again := w.Retryer.IsErrorRetryable(err)
	if again && retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) != aws.TrueTernary {
		*w.lost = true
	}
	return again
}

// A Reason says why one item of a transaction was not written.
type Reason struct {
	Refused bool // its condition failed
	Old     Item // the item that stands there, see [Refused]
}

// Reasons returns why a transaction was cancelled, for each of its items in order, or nil if err is something else.
func Reasons(err error) []Reason {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return nil
	}
	reasons := make([]Reason, len(cancelled.CancellationReasons))
	for i, r := range cancelled.CancellationReasons {
		reasons[i] = Reason{Refused: aws.ToString(r.Code) == "ConditionalCheckFailed", Old: r.Item}
	}
	return reasons
}

// ErrContended is what a write returns to be tried again by [Retry].
var ErrContended = errors.New("the items are being written")

const (
	maxTries   = 10 // of a write that meets another one
	firstPause = 20 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// Retry calls write until it does not meet another write of the same items any more, a bounded number of times and with
// growing pauses of random length. The client does not repeat such calls by itself. Each call of write must make a new request.
func Retry(ctx context.Context, write func() error) error {
	for try := 1; ; try++ {
		err := write()
		if !contended(err) || try == maxTries {
			return err
		}
		pause := min(firstPause<<try, maxPause)
		if err := clock.Sleep(ctx, clock.System{}, rand.N(pause)); err != nil { //nolint:gosec // nobody gains from guessing it
			return err
		}
	}
}

// contended reports whether nothing was written because of other writes, whatever the conditions.
func contended(err error) bool {
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok || errors.Is(err, ErrContended) {
		return true
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, r := range cancelled.CancellationReasons {
			switch aws.ToString(r.Code) {
			case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
				return true
			}
		}
	}
	return false
}

// Fault is [awsx.Fault], for which writes that met others all the time are a busy service too.
func Fault(ctx context.Context, err error) error {
	if contended(err) && ctx.Err() == nil {
		return awsx.Unavailable(err)
	}
	return awsx.Fault(ctx, err)
}
