package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/schema"
)

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
		b := newBound(req)
		for d, err := range m.Stream(ctx, req) {
			if err == nil {
				d, err = b.check(d)
			}
			if !send(ctx, c, piece{d, known(err)}) || err != nil {
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

// collect makes one model call and returns the whole answer.
func collect(ctx context.Context, m NamedModel, req *model.Request) (model.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := pieces(ctx, m.Model, req)
	return model.Collect(m.ID, func(yield func(model.Delta, error) bool) {
		for {
			select {
			case p, more := <-c:
				if !more || !yield(p.delta, p.err) {
					return
				}
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
		}
	})
}

// stream makes one model call and records its answer while it comes.
func (l *lane) stream(ctx context.Context, m NamedModel) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := newVoice(m.ID, l.parent)
	c := pieces(ctx, m.Model, l.request())
	for {
		p, more, err := l.hear(ctx, c, v)
		switch {
		case err != nil:
			return err
		case !more:
			return l.record(ctx, m, v)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case p.err != nil:
			return p.err
		}
		v.take(p.delta)
	}
}

// hear returns the next piece, writing the deltas that fall due meanwhile.
func (l *lane) hear(ctx context.Context, c <-chan piece, v *voice) (piece, bool, error) {
	var due <-chan time.Time
	if d, waiting := v.wait(l.deps.Clock.Now()); waiting && d > 0 {
		timer, stop := l.deps.Clock.After(d)
		defer stop()
		due = timer
	} else if waiting {
		if err := l.say(ctx, v); err != nil {
			return piece{}, false, err
		}
	}
	for {
		select {
		case p, more := <-c:
			return p, more, nil
		case <-due:
			if err := l.say(ctx, v); err != nil {
				return piece{}, false, err
			}
		case <-ctx.Done():
			return piece{}, false, context.Cause(ctx)
		}
	}
}

func (l *lane) say(ctx context.Context, v *voice) error {
	if data := v.speak(l.deps.Clock.Now()); len(data) > 0 {
		return l.append(ctx, data...)
	}
	return nil
}

// record writes down a whole answer: the calls it asks for, or the end of the turn.
func (l *lane) record(ctx context.Context, m NamedModel, v *voice) error {
	answer := v.answer.Answer()
	calls, usage := answer.Message.Calls, event.Usage(answer.Usage)
	switch {
	case answer.Finish == "":
		return &model.Error{Kind: model.Unavailable, Message: "the answer ended before it was complete"}
	case answer.Finish == model.FinishContentFilter:
		calls = nil // what was filtered is not to be acted upon
	case answer.Finish == model.FinishToolCalls && len(calls) == 0:
		answer.Finish = model.FinishOther
	}
	rest := v.rest()
	done := event.MessageCompleted{Text: v.text.whole.String(), FinishReason: string(answer.Finish), Usage: &usage, UsageOf: m.ID, ParentCallID: l.parent}
	if len(calls) == 0 {
		return l.complete(ctx, done, rest...)
	}
	done.FinishReason = string(model.FinishToolCalls)
	return l.append(ctx, append(rest, done, event.ActionsRequested{Calls: l.number(calls, answer.Finish), ParentCallID: l.parent})...)
}

// number gives the calls ids of our own, because those of providers need not be unique in a session, and keeps what is
// wrong with arguments that are no JSON object. If the answer was cut, no arguments may be lost ones.
func (l *lane) number(calls []model.Call, finish model.FinishReason) []event.ActionCall {
	l.malformed = make(map[string]error)
	out := make([]event.ActionCall, len(calls))
	for i, c := range calls {
		id, args := "call_"+l.deps.NewID(), c.Args
		cut := finish == model.FinishLength && i == len(calls)-1
		if len(args) == 0 && !cut {
			args = json.RawMessage("{}")
		}
		if err := schema.Object(args); err != nil {
			if cut {
				err = fmt.Errorf("the answer was cut at %d tokens (MaxOutputTokens), inside the arguments", l.project.Agent.MaxOutputTokens)
			}
			l.malformed[id], args = err, nil
		}
		out[i] = event.ActionCall{CallID: id, ToolName: c.Name, Args: args, ParentCallID: l.parent}
	}
	return out
}
