package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// How a model call is retried: each model is asked triesPerModel times, with waits that double from firstWait up to
// longestWait. A provider that asks for more patience than that is passed over. One that finds the conversation too long gets
// it compacted up to maxCompactions times. After maxRestarts model calls for one step, counted over all processes, the
// turn fails.
const (
	triesPerModel  = 4
	firstWait      = 250 * time.Millisecond
	longestWait    = 20 * time.Second
	maxCompactions = 3
	maxRestarts    = 24
)

// ask makes the next model step and records it. A step that an earlier process began is begun again.
func (r *run) ask(ctx context.Context) error {
	if r.t.Turn.Begun {
		r.fault = "the process that made the call ended"
	}
	if r.t.Turn.Restarts >= maxRestarts {
		return r.fail(ctx, fmt.Sprintf("the model call did not succeed in %d tries", maxRestarts))
	}
	if r.crowded() {
		err := r.compact(ctx, r.space())
		if errors.Is(err, errNoRoom) {
			return r.fail(ctx, fmt.Sprintf("limit reached: %s of %d (ContextTokens)", err, r.project.Agent.ContextTokens))
		}
		if err != nil {
			return err
		}
	}
	var last error
	for _, m := range r.deps.Models {
		err := r.askModel(ctx, m)
		for range maxCompactions {
			if model.KindOf(err) == model.ContextLength {
				err = r.askShorter(ctx, m, err)
			}
		}
		if model.KindOf(err) == "" {
			return err
		}
		last = err
	}
	return r.fail(ctx, "the model did not answer: "+last.Error())
}

// askModel asks one model until it answers or a retry is useless.
func (r *run) askModel(ctx context.Context, m NamedModel) error {
	return r.patiently(ctx, m, func() error {
		if err := r.restart(ctx); err != nil {
			return err
		}
		err := r.stream(ctx, m)
		if model.KindOf(err) != "" {
			r.fault = err.Error()
		}
		return err
	})
}

// askShorter asks a model again that found the conversation too long, with less of it. If no less is possible the fault stays.
func (r *run) askShorter(ctx context.Context, m NamedModel, fault error) error {
	err := r.compact(ctx, min(r.space(), r.t.Bytes))
	if errors.Is(err, errNoRoom) {
		return fault
	}
	if err != nil {
		return err
	}
	return r.askModel(ctx, m)
}

// patiently makes a call of a model until it succeeds or a retry is useless; then it returns the *model.Error.
func (r *run) patiently(ctx context.Context, m NamedModel, call func() error) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := call()
		var fault *model.Error
		if !errors.As(err, &fault) {
			return err
		}
		r.log.WarnContext(ctx, "model call failed", slog.String("model", m.ID), slog.Int("try", try), slog.Any("error", err))
		if !fault.Retryable() || try == triesPerModel || fault.RetryAfter > longestWait || r.t.Turn.Restarts >= maxRestarts {
			return fault
		}
		pause := max(fault.RetryAfter, wait/2+rand.N(wait/2)) //nolint:gosec // jitter is no secret
		if err := clock.Sleep(ctx, r.deps.Clock, pause); err != nil {
			return err
		}
		wait = min(2*wait, longestWait)
	}
}

// restart tells readers to drop what a call that went wrong has written, before the next one is made.
func (r *run) restart(ctx context.Context) error {
	if r.fault == "" {
		return nil
	}
	reason := r.fault
	r.fault = ""
	return r.append(ctx, event.StepRestarted{Step: r.t.Turn.Steps + 1, Reason: reason})
}

func (r *run) request() *model.Request {
	return &model.Request{
		Instructions: string(r.project.Instructions),
		Messages:     r.t.Messages,
		Tools:        r.tools,
		MaxTokens:    r.project.Agent.MaxOutputTokens,
		SessionID:    r.ref.SessionID,
		Step:         r.t.Turn.Steps + 1,
	}
}
