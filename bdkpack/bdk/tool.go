package bdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/schema"
)

// Tool is a typed action the model can call. [DefineTool] makes one; the zero Tool is a mistake that `bdk validate` reports.
// A Tool is immutable and safe for concurrent use.
type Tool struct {
	spec   ToolSpec
	input  json.RawMessage
	decode func(json.RawMessage) error // validates typed input; nil for raw input
	run    func(context.Context, *Call, json.RawMessage) (any, error)
	err    error
}

// ToolSpec says what a tool is. Only Description is required.
type ToolSpec struct {
	// Description tells the model what the tool does and when to use it.
	Description string

	// Title is what people read. Default: none.
	Title string

	// Effect says whether a call changes anything outside the session. Default: [Write].
	Effect Effect

	// InputSchema is a JSON Schema of type object. Default: inferred from the input type. With an input of type
	// json.RawMessage it is passed to the model as it is and the input is not validated.
	InputSchema json.RawMessage

	// OutputSchema is a JSON Schema that describes the result to clients; results are not checked against it.
	OutputSchema json.RawMessage

	// Timeout bounds one call. Default: 10 minutes.
	Timeout time.Duration
}

// Effect says what a call does to the world. It is [Read], [Write], or the answer of [EffectOf].
type Effect interface {
	// effect returns the kind of a call with this input, which has been validated.
	effect(input json.RawMessage) EffectKind
}

// EffectKind is a constant Effect.
type EffectKind string

// The kinds of effect.
const (
	// Read marks a call that changes nothing: it may run again after a crash, and runs in dry-run sessions.
	Read EffectKind = "read"
	// Write marks a call that must not run twice: after a crash in the middle of it the model is told that its outcome
	// is unknown. A dry-run session answers it without running it.
	Write EffectKind = "write"
)

func (k EffectKind) effect(json.RawMessage) EffectKind { return k }

type effectFunc func(json.RawMessage) EffectKind

func (f effectFunc) effect(input json.RawMessage) EffectKind { return f(input) }

// EffectOf returns an Effect that depends on the input of the call. Input that does not fit In counts as a write.
func EffectOf[In any](of func(In) EffectKind) Effect {
	return effectFunc(func(input json.RawMessage) EffectKind {
		var in In
		if json.Unmarshal(input, &in) != nil {
			return Write
		}
		return of(in)
	})
}

// DefineTool returns a tool that runs the given function.
//
// The input schema is inferred from In, a struct: every field without omitempty is required, the tag jsonschema is its
// description, and other properties are refused. Input is validated before run is called; the error names the field.
// With In = json.RawMessage the input arrives as the model sent it, a JSON object.
//
// A result of type string is shown to the model verbatim; anything else as JSON. An error, or a panic, becomes an error
// result that the model reads; it ends neither the turn nor the host.
func DefineTool[In, Out any](spec ToolSpec, run func(context.Context, *Call, In) (Out, error)) Tool {
	t := Tool{spec: spec, input: spec.InputSchema}
	_, raw := any(*new(In)).(json.RawMessage)
	switch {
	case run == nil:
		t.err = errors.New("the function of the tool is nil")
	case raw && len(spec.InputSchema) == 0:
		t.input = json.RawMessage(`{"type":"object"}`)
	case raw:
		t.err = schema.CheckObject(spec.InputSchema)
	default:
		t.input, t.decode, t.err = typedInput[In](spec.InputSchema)
	}
	t.run = func(ctx context.Context, call *Call, input json.RawMessage) (any, error) {
		in, err := decodeInput[In](input, raw)
		if err != nil {
			return nil, err
		}
		return run(ctx, call, in)
	}
	return t
}

// typedInput returns the input schema of In, or the given one, and its validation.
func typedInput[In any](given json.RawMessage) (json.RawMessage, func(json.RawMessage) error, error) {
	s, err := schema.For[In](given)
	if err != nil {
		return nil, nil, err
	}
	return s.JSON(), s.Validate, nil
}

func decodeInput[In any](input json.RawMessage, raw bool) (in In, err error) {
	if raw {
		*any(&in).(*json.RawMessage) = input //nolint:forcetypeassert // DefineTool found that In is json.RawMessage
		return in, nil
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	return in, nil
}

// Spec returns what the tool was defined with, with Effect and Timeout set to their defaults if they were not given.
func (t Tool) Spec() ToolSpec {
	s := t.spec
	if s.Effect == nil {
		s.Effect = Write
	}
	s.Timeout = or(s.Timeout, 10*time.Minute)
	return s
}

// InputSchema returns the JSON Schema the model sees.
func (t Tool) InputSchema() json.RawMessage { return t.input }

// Err returns what is wrong with the definition, nil if nothing is.
func (t Tool) Err() error {
	switch {
	case t.err != nil:
		return t.err
	case t.run == nil:
		return errors.New("the tool is empty: define it with bdk.DefineTool")
	case t.spec.Description == "":
		return errors.New("the tool has no Description: tell the model what it does and when to use it")
	}
	return nil
}

// CheckInput returns what is wrong with an input, naming the field, nil if nothing is.
func (t Tool) CheckInput(input json.RawMessage) error {
	if t.decode == nil {
		return nil
	}
	return t.decode(input)
}

// EffectOf returns the effect of a call with this input, which CheckInput has accepted.
func (t Tool) EffectOf(input json.RawMessage) EffectKind { return t.Spec().Effect.effect(input) }

// Run runs the tool with an input that CheckInput has accepted. The result is what the function returned.
func (t Tool) Run(ctx context.Context, call *Call, input json.RawMessage) (any, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	return t.run(ctx, call, input)
}

// Call is what a tool knows about the call it serves. The zero Call is usable in tests of a tool's function.
type Call struct {
	ID        string       // the call id of the events actions.requested and action.result; stable across restarts, so it serves as an idempotency key
	Session   SessionInfo  // who asks
	StateRoot string       // a directory that is shared by all sessions of the agent and survives restarts; "" where the host has none
	Log       *slog.Logger // logs with the ids of the call; nil in the zero Call
}

// SessionInfo describes the session of a call.
type SessionInfo struct {
	ID      string    // the session id of the HTTP API
	TurnID  string    // the turn that made the call
	Agent   string    // the agent's slug
	Channel string    // "http" for the built-in channel
	Mode    string    // chat or task
	Purpose string    // chat or eval
	Owner   string    // the principal the session belongs to
	DryRun  bool      // writes are answered without being run
	AsOf    time.Time // the frozen instant of the session; zero if it has none
}

// Now returns the instant the session is frozen at, or the current time if it is not.
func (c *Call) Now() time.Time {
	if !c.Session.AsOf.IsZero() {
		return c.Session.AsOf
	}
	return clock.System{}.Now()
}
