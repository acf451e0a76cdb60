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
func (l *lane) ask(ctx context.Context) error {
	if l.th.Begun {
		l.fault = "the process that made the call ended"
	}
	if l.th.Restarts >= maxRestarts {
		return l.fail(ctx, fmt.Sprintf("the model call did not succeed in %d tries", maxRestarts))
	}
	if l.crowded() {
		err := l.compact(ctx, l.space())
		if errors.Is(err, errNoRoom) {
			return l.fail(ctx, fmt.Sprintf("limit reached: %s of %d (ContextTokens)", err, l.project.Agent.ContextTokens))
		}
		if err != nil {
			return err
		}
	}
	var last error
	for _, m := range l.models {
		err := l.askModel(ctx, m)
		for range maxCompactions {
			if model.KindOf(err) == model.ContextLength {
				err = l.askShorter(ctx, m, err)
			}
		}
		if model.KindOf(err) == "" {
			return err
		}
		last = err
	}
	return l.fail(ctx, "the model did not answer: "+last.Error())
}

// askModel asks one model until it answers or a retry is useless.
func (l *lane) askModel(ctx context.Context, m NamedModel) error {
	return l.patiently(ctx, m, func() error {
		if err := l.restart(ctx); err != nil {
			return err
		}
		err := l.stream(ctx, m)
		if model.KindOf(err) != "" {
			l.fault = err.Error()
		}
		return err
	})
}

// askShorter asks a model again that found the conversation too long, with less of it. If no less is possible the fault stays.
func (l *lane) askShorter(ctx context.Context, m NamedModel, fault error) error {
	err := l.compact(ctx, min(l.space(), l.th.Bytes))
	if errors.Is(err, errNoRoom) {
		return fault
	}
	if err != nil {
		return err
	}
	return l.askModel(ctx, m)
}

// patiently makes a call of a model until it succeeds or a retry is useless; then it returns the *model.Error.
func (l *lane) patiently(ctx context.Context, m NamedModel, call func() error) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := call()
		var fault *model.Error
		if !errors.As(err, &fault) {
			return err
		}
		l.log.WarnContext(ctx, "model call failed", slog.String("model", m.ID), slog.Int("try", try), slog.Any("error", err))
		if !fault.Retryable() || try == triesPerModel || fault.RetryAfter > longestWait || l.th.Restarts >= maxRestarts {
			return fault
		}
		pause := max(fault.RetryAfter, wait/2+rand.N(wait/2)) //nolint:gosec // jitter is no secret
		if err := clock.Sleep(ctx, l.deps.Clock, pause); err != nil {
			return err
		}
		wait = min(2*wait, longestWait)
	}
}

// restart tells readers to drop what a call that went wrong has written, before the next one is made.
func (l *lane) restart(ctx context.Context) error {
	if l.fault == "" {
		return nil
	}
	reason := l.fault
	l.fault = ""
	return l.append(ctx, event.StepRestarted{Step: l.th.Steps + 1, Reason: reason, ParentCallID: l.parent})
}

func (l *lane) request() *model.Request {
	return &model.Request{
		Instructions: l.instructions,
		Messages:     l.th.Messages,
		Tools:        l.tools,
		MaxTokens:    l.project.Agent.MaxOutputTokens,
		SessionID:    l.ref.SessionID,
		Step:         l.th.Steps + 1,
	}
}
