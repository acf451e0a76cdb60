package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/kv"
)

const (
	// claimTTL is how long it is remembered that a write was begun: longer than any turn may be resumed.
	claimTTL = 30 * 24 * time.Hour
	// grace is how long a tool may take to notice that its time is over before it is left alone.
	grace = 2 * time.Second
	// maxReruns is how often a read, or an idempotent write, that was cut off is begun again.
	maxReruns = 2
)

// Run makes one call, which needs no approval or has it. Args is a JSON object. A write is claimed by call.ID before it runs and
// never runs again for the same id: the second time its outcome is reported as unknown. A read, and a write that is
// idempotent, may run again, which the caller tells by again, but not for ever. If ctx ends the outcome means nothing.
func (s *Set) Run(ctx context.Context, call *bdk.Call, name string, args json.RawMessage, again bool) Outcome {
	if ctx.Err() != nil {
		return notRun(ctx)
	}
	t, done := s.settled(call, name, args)
	if done != nil {
		return *done
	}
	leave, ok := s.enter(ctx, name)
	if !ok {
		return notRun(ctx)
	}
	claim := s.claimWrite
	if t.Spec().Idempotent || t.EffectOf(args) == bdk.Read {
		claim = s.countRerun
	}
	if err := claim(ctx, call.ID, again); err != nil {
		leave()
		return Failed(err)
	}
	timeout := t.Spec().Timeout
	if t.Script() != "" {
		timeout += scriptTrip
	}
	return s.run(ctx, timeout, func(ctx context.Context) Outcome {
		defer leave()
		return s.attempt(ctx, t, call, name, args)
	})
}

func notRun(ctx context.Context) Outcome {
	return Failed(fmt.Errorf("the tool was not run: %w", context.Cause(ctx)))
}

// enter waits until a call of the tool may run, and returns what makes room for the next; ok is false if ctx ended before.
func (s *Set) enter(ctx context.Context, name string) (leave func(), ok bool) {
	slots := s.slots[name]
	if slots == nil {
		return func() {}, true
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	leave = func() { <-slots }
	if ctx.Err() != nil { // both were possible
		leave()
		return nil, false
	}
	return leave, true
}

// claimWrite makes sure that the call with this id never was begun before.
func (s *Set) claimWrite(ctx context.Context, id string, _ bool) error {
	switch err := s.opts.Claims.Create(ctx, "call/"+id, []byte(`{}`), claimTTL); {
	case errors.Is(err, kv.ErrExists):
		return errors.New("outcome unknown: this call was begun before and interrupted; it was not run again. " +
			"Check what it did before you decide to repeat it")
	case err != nil:
		return fmt.Errorf("the call could not be recorded, the tool was not run: %w", err)
	}
	return nil
}

// countRerun counts how often a call that was cut off is begun again. One that ends its process each time must not end all others too.
func (s *Set) countRerun(ctx context.Context, id string, again bool) error {
	if !again {
		return nil
	}
	key := "read/" + id
	entry, err := s.opts.Claims.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		err = s.opts.Claims.Create(ctx, key, []byte("1"), claimTTL)
	case err == nil:
		var times int
		if times, err = strconv.Atoi(string(entry.Value)); err == nil && times >= maxReruns {
			return fmt.Errorf("outcome unknown: the process ended %d times while this call ran, it was not run again", times+1)
		}
		err = s.opts.Claims.Swap(ctx, key, entry.Version, []byte(strconv.Itoa(times+1)), claimTTL)
	}
	if err != nil {
		return fmt.Errorf("the call could not be recorded, the tool was not run: %w", err)
	}
	return nil
}

// run gives an attempt its time, whatever it does with it.
func (s *Set) run(ctx context.Context, timeout time.Duration, attempt func(context.Context) Outcome) Outcome {
	bounded, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the tool used up its time of %s", timeout))
	defer cancel()
	done := make(chan Outcome, 1)
	go func() {
		out := Failed(errors.New("the tool ended its goroutine without a result"))
		defer func() { done <- out }()
		out = attempt(bounded)
	}()
	select {
	case out := <-done:
		return out
	case <-bounded.Done():
	}
	late, stop := s.opts.Clock.After(grace)
	defer stop()
	select {
	case out := <-done:
		return out
	case <-late:
		return Failed(fmt.Errorf("the tool did not finish within %s: its outcome is unknown", timeout))
	}
}

// attempt runs the tool's function, or its script.
func (s *Set) attempt(ctx context.Context, t bdk.Tool, call *bdk.Call, name string, args json.RawMessage) Outcome {
	out, err := protect(call, func() (any, error) {
		if t.Script() != "" {
			return s.script(ctx, t, call, name, args)
		}
		return t.Run(ctx, call, args)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return Failed(fmt.Errorf("%w: %w", context.Cause(ctx), err))
	case err != nil:
		return Failed(err)
	}
	return out
}

// protect calls an author's function and encodes its result; a panic becomes an error.
func protect(call *bdk.Call, f func() (any, error)) (out Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			call.Log().Error("tool panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("the tool panicked: %v", p)
		}
	}()
	result, err := f()
	if err != nil {
		return Outcome{}, errors.New(err.Error()) // here, where a panic of Error is caught too
	}
	return encode(result)
}
