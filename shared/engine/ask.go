package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/schema"
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

type piece struct {
	delta model.Delta
	err   error
}

// pieces ranges over a model's answer in a goroutine of its own, so that a provider that pauses, or does not notice that
// it was cancelled, cannot hold the turn. The goroutine ends with the answer or, at the next piece, with ctx.
func pieces(ctx context.Context, m model.Model, req *model.Request) <-chan piece {
	c := make(chan piece)
	go func() {
		defer close(c)
		defer func() {
			if p := recover(); p != nil {
				err := &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("the model adapter panicked: %v", p)}
				send(ctx, c, piece{err: err})
			}
		}()
		for d, err := range m.Stream(ctx, req) {
			if !send(ctx, c, piece{d, known(err)}) {
				return
			}
		}
	}()
	return c
}

// known returns an error of an adapter as a *model.Error of some kind, which is what it should be.
func known(err error) error {
	if err == nil || model.KindOf(err) != "" {
		return err
	}
	return &model.Error{Kind: model.Unavailable, Message: err.Error(), Err: err}
}

func send(ctx context.Context, c chan<- piece, p piece) bool {
	select {
	case c <- p:
		return true
	case <-ctx.Done():
		return false
	}
}

// stream makes one model call and records its answer while it comes.
func (r *run) stream(ctx context.Context, m NamedModel) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := newVoice(m.ID)
	c := pieces(ctx, m.Model, r.request())
	for {
		p, more, err := r.hear(ctx, c, v)
		switch {
		case err != nil:
			return err
		case !more:
			return r.record(ctx, m, v)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case p.err != nil:
			return p.err
		}
		v.take(p.delta)
	}
}

// hear returns the next piece, writing the deltas that fall due meanwhile.
func (r *run) hear(ctx context.Context, c <-chan piece, v *voice) (piece, bool, error) {
	var due <-chan time.Time
	if d, waiting := v.wait(r.deps.Clock.Now()); waiting && d > 0 {
		timer, stop := r.deps.Clock.After(d)
		defer stop()
		due = timer
	} else if waiting {
		if err := r.say(ctx, v); err != nil {
			return piece{}, false, err
		}
	}
	for {
		select {
		case p, more := <-c:
			return p, more, nil
		case <-due:
			if err := r.say(ctx, v); err != nil {
				return piece{}, false, err
			}
		case <-ctx.Done():
			return piece{}, false, context.Cause(ctx)
		}
	}
}

func (r *run) say(ctx context.Context, v *voice) error {
	if data := v.speak(r.deps.Clock.Now()); len(data) > 0 {
		return r.append(ctx, data...)
	}
	return nil
}

// record writes down a whole answer: the calls it asks for, or the end of the turn.
func (r *run) record(ctx context.Context, m NamedModel, v *voice) error {
	answer := v.answer.Answer()
	if answer.Finish == "" {
		return &model.Error{Kind: model.Unavailable, Message: "the answer ended before it was complete"}
	}
	data := v.rest()
	done := event.MessageCompleted{Text: v.text.whole.String(), FinishReason: string(answer.Finish), UsageOf: m.ID}
	usage := event.Usage(answer.Usage)
	done.Usage = &usage
	calls := answer.Message.Calls
	if answer.Finish == model.FinishContentFilter {
		calls = nil // what was filtered is not to be acted upon
	}
	if len(calls) == 0 {
		if answer.Finish == model.FinishToolCalls {
			done.FinishReason = string(model.FinishOther)
		}
		return r.complete(ctx, append(data, done)...)
	}
	done.FinishReason = string(model.FinishToolCalls)
	return r.append(ctx, append(data, done, event.ActionsRequested{Calls: r.number(calls, answer.Finish)})...)
}

// number gives the calls ids of our own, because those of providers need not be unique in a session, and keeps what is
// wrong with arguments that are no JSON object. If the answer was cut, no arguments may be lost ones.
func (r *run) number(calls []model.Call, finish model.FinishReason) []event.ActionCall {
	r.malformed = make(map[string]error)
	out := make([]event.ActionCall, len(calls))
	for i, c := range calls {
		id, args := "call_"+r.deps.NewID(), c.Args
		cut := finish == model.FinishLength && i == len(calls)-1
		if len(args) == 0 && !cut {
			args = json.RawMessage("{}")
		}
		if err := schema.Object(args); err != nil {
			if cut {
				err = fmt.Errorf("the answer was cut at %d tokens (MaxOutputTokens), inside the arguments", r.project.Agent.MaxOutputTokens)
			}
			r.malformed[id], args = err, nil
		}
		out[i] = event.ActionCall{CallID: id, ToolName: c.Name, Args: args}
	}
	return out
}
