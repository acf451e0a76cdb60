// Package tool runs the tools of an agent: it checks the input, answers writes of dry-run sessions, makes sure that no
// write runs twice, and turns whatever comes of a call into a result the model can read.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/model"
)

// Set is the tools of one agent. It is safe for concurrent use.
type Set struct {
	tools  map[string]bdk.NamedTool
	claims *kv.Store
	clock  clock.Clock
}

// Outcome is what came of a call.
type Outcome struct {
	Output  json.RawMessage // a JSON string for text, any JSON otherwise
	IsError bool
	Stubbed bool // a dry-run session answered a write without running it
}

const (
	// claimTTL is how long it is remembered that a write was begun: longer than any turn may be resumed.
	claimTTL = 30 * 24 * time.Hour
	// grace is how long a tool may take to notice that its time is over before it is left alone.
	grace = 2 * time.Second
	// maxReruns is how often a read that was cut off is begun again.
	maxReruns = 2
	// maxOutput bounds the bytes of one output in the log, and maxFault those of an error.
	maxOutput = 8 << 20
	maxFault  = 64 << 10
	// dryRunAnswer stands for the result of a write in a dry-run session.
	dryRunAnswer = "Operation acknowledged."
)

// NewSet returns the set of the given tools. Claims remembers the writes that were begun. It fails with the mistakes
// of all definitions.
func NewSet(tools []bdk.NamedTool, claims *kv.Store, c clock.Clock) (*Set, error) {
	s := &Set{tools: make(map[string]bdk.NamedTool, len(tools)), claims: claims, clock: c}
	var errs []error
	for _, t := range tools {
		if err := t.Tool.Err(); err != nil {
			errs = append(errs, fmt.Errorf("tool %s (%s): %w", t.Name, t.Source, err))
		}
		if twin, taken := s.tools[t.Name]; taken {
			errs = append(errs, fmt.Errorf("tool %s (%s): %s defines a tool of the same name", t.Name, t.Source, twin.Source))
		}
		s.tools[t.Name] = t
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Timeout returns how long a call of the tool with the given name may take, 0 if there is none.
func (s *Set) Timeout(name string) time.Duration {
	if named, ok := s.tools[name]; ok {
		return named.Tool.Spec().Timeout
	}
	return 0
}

func (s *Set) names() []string { return slices.Sorted(maps.Keys(s.tools)) }

// Offer returns the tools as a model is offered them, in name order.
func (s *Set) Offer() []model.Tool {
	offer := make([]model.Tool, 0, len(s.tools))
	for _, name := range s.names() {
		t := s.tools[name].Tool
		offer = append(offer, model.Tool{Name: name, Description: t.Spec().Description, InputSchema: t.InputSchema()})
	}
	return offer
}

// Run makes one call. Args is a JSON object. A write is claimed by call.ID before it runs and never runs again for the
// same id: the second time its outcome is reported as unknown. A read may run again, which the caller tells by again, but
// not for ever. If ctx ends the outcome means nothing.
func (s *Set) Run(ctx context.Context, call *bdk.Call, name string, args json.RawMessage, again bool) Outcome {
	named, ok := s.tools[name]
	switch {
	case ctx.Err() != nil:
		return Failed(fmt.Errorf("the tool was not run: %w", context.Cause(ctx)))
	case !ok && len(s.tools) == 0:
		return Failed(fmt.Errorf("there is no tool %q: this agent has no tools", name))
	case !ok:
		return Failed(fmt.Errorf("there is no tool %q: the tools are %s", name, strings.Join(s.names(), ", ")))
	}
	t := named.Tool
	if err := t.CheckInput(args); err != nil {
		return Failed(fmt.Errorf("the input of %s was refused, the tool was not run: %w", name, err))
	}
	if t.EffectOf(args) == bdk.Read {
		if err := s.mayRead(ctx, call, again); err != nil {
			return Failed(err)
		}
		return s.run(ctx, t, call, args)
	}
	if call.Session.DryRun {
		return Outcome{Output: text(dryRunAnswer), Stubbed: true}
	}
	switch err := s.claims.Create(ctx, "call/"+call.ID, []byte(`{}`), claimTTL); {
	case errors.Is(err, kv.ErrExists):
		return Failed(errors.New("outcome unknown: this call was begun before and interrupted; it was not run again. " +
			"Check what it did before you decide to repeat it"))
	case err != nil:
		return Failed(fmt.Errorf("the call could not be recorded, the tool was not run: %w", err))
	}
	return s.run(ctx, t, call, args)
}

// mayRead counts how often a read that was cut off is begun again. One that ends its process each time must not end all others too.
func (s *Set) mayRead(ctx context.Context, call *bdk.Call, again bool) error {
	if !again {
		return nil
	}
	key := "read/" + call.ID
	entry, err := s.claims.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		err = s.claims.Create(ctx, key, []byte("1"), claimTTL)
	case err == nil:
		var times int
		if times, err = strconv.Atoi(string(entry.Value)); err == nil && times >= maxReruns {
			return fmt.Errorf("outcome unknown: the process ended %d times while this call ran, it was not run again", times+1)
		}
		err = s.claims.Swap(ctx, key, entry.Version, []byte(strconv.Itoa(times+1)), claimTTL)
	}
	if err != nil {
		return fmt.Errorf("the call could not be recorded, the tool was not run: %w", err)
	}
	return nil
}

// run runs the tool's function within its time, whatever it does.
func (s *Set) run(ctx context.Context, t bdk.Tool, call *bdk.Call, args json.RawMessage) Outcome {
	timeout := t.Spec().Timeout
	bounded, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the tool used up its time of %s", timeout))
	defer cancel()
	done := make(chan Outcome, 1)
	go func() {
		out := Failed(errors.New("the tool ended its goroutine without a result"))
		defer func() { done <- out }()
		out = protect(bounded, t, call, args)
	}()
	select {
	case out := <-done:
		return out
	case <-bounded.Done():
	}
	late, stop := s.clock.After(grace)
	defer stop()
	select {
	case out := <-done:
		return out
	case <-late:
		return Failed(fmt.Errorf("the tool did not finish within %s: its outcome is unknown", timeout))
	}
}

// protect runs the tool's function and turns a panic into an error result.
func protect(ctx context.Context, t bdk.Tool, call *bdk.Call, args json.RawMessage) (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			call.Log().ErrorContext(ctx, "tool panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			out = Failed(fmt.Errorf("the tool panicked: %v", p))
		}
	}()
	result, err := t.Run(ctx, call, args)
	switch {
	case err != nil && ctx.Err() != nil:
		return Failed(fmt.Errorf("%w: %w", context.Cause(ctx), err))
	case err != nil:
		return Failed(err)
	}
	return encode(result)
}

// encode returns a result as it is recorded.
func encode(result any) Outcome {
	raw, err := json.Marshal(result)
	switch {
	case err != nil:
		return Failed(fmt.Errorf("the tool ran, but its result cannot be encoded as JSON: %w", err))
	case len(raw) > maxOutput:
		return Failed(fmt.Errorf("the tool ran, but its result has %d bytes, more than %d", len(raw), maxOutput))
	}
	return Outcome{Output: raw}
}

// Failed returns the outcome of a call that went wrong; the model reads the error's text, or the beginning of one that is long.
func Failed(err error) Outcome {
	s := err.Error()
	return Outcome{Output: text(s[:min(len(s), maxFault)]), IsError: true}
}

func text(s string) json.RawMessage {
	raw, _ := json.Marshal(s) //nolint:errchkjson // a string always encodes
	return raw
}
