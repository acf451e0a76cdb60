package sfnturn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/bdk-lambda/bdk/shared/internal/awsx"
	"github.com/bdk-lambda/bdk/shared/kv"
)

// ErrClosed says that no turn waits for a call: it was not parked yet, it was resumed before, its time is over, or its turn
// was stopped.
var ErrClosed = errors.New("no turn waits for this call")

const (
	tokenTTL = 8 * 24 * time.Hour // the machine waits for 7
	maxTries = 16                 // of a write that meets another one of the same key
)

// Tokens keeps the tokens of parked calls. It is safe for concurrent use.
type Tokens struct {
	client *sfn.Client
	kv     *kv.Store
}

// NewTokens returns the tokens that are kept in store, under the keys await/<call id>.
func NewTokens(client *sfn.Client, store *kv.Store) *Tokens { return &Tokens{client, store} }

// Park keeps the token of a call until [Tokens.Resume]. The newest token of a call takes the place of the one before: when parking is
// repeated, the machine waits for the new one only.
//
// Who parks a call that may have been decided meanwhile must look at the decision afterwards, and resume.
func (t *Tokens) Park(ctx context.Context, in AwaitInput) error {
	key := key(in.CallID)
	for range maxTries {
		err := t.kv.Create(ctx, key, []byte(in.Token), tokenTTL)
		if !errors.Is(err, kv.ErrExists) {
			return err
		}
		old, err := t.kv.Get(ctx, key)
		if err == nil {
			err = t.kv.Swap(ctx, key, old.Version, []byte(in.Token), tokenTTL)
		}
		if !errors.Is(err, kv.ErrVersion) && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
	}
	return fmt.Errorf("parking call %s: it is parked by too many at once", in.CallID)
}

// Resume ends the wait for a call, or fails with [ErrClosed].
func (t *Tokens) Resume(ctx context.Context, callID string) error {
	token, err := t.kv.Get(ctx, key(callID))
	if errors.Is(err, kv.ErrNotFound) {
		return ErrClosed
	}
	if err != nil {
		return err
	}
	_, err = t.client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: aws.String(string(token.Value)), Output: aws.String("{}")})
	switch {
	case err == nil:
		return nil
	case closed(err):
		return ErrClosed
	}
	return fmt.Errorf("resuming call %s: %w", callID, awsx.Fault(ctx, err))
}

func closed(err error) bool {
	_, late := errors.AsType[*types.TaskTimedOut](err)
	_, gone := errors.AsType[*types.TaskDoesNotExist](err)
	_, invalid := errors.AsType[*types.InvalidToken](err)
	return late || gone || invalid
}

func key(callID string) string { return "await/" + callID }
