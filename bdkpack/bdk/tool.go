package bdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/schema"
)

// Tool is a typed action the model can call. [DefineTool] makes one; the zero Tool is a mistake that `bdk validate` reports.
// A Tool is immutable and safe for concurrent use.
type Tool struct {
	spec  ToolSpec
	input json.RawMessage
	check func(json.RawMessage) error
	run   func(context.Context, *Call, json.RawMessage) (any, error)
	err   error

	script string // of an agent tool; "" for a server tool
}

// ToolSpec says what a tool is. Only Description is required.
type ToolSpec struct {
	// Description tells the model what the tool does and when to use it.
	Description string

	// Title is what people read. Default: none.
	Title string

	// Effect says whether a call changes anything outside the session. Default: [Write].
	Effect Effect

	// InputSchema is a JSON Schema of type object. Default: inferred from the input type. Its defaults are not applied
	// and its formats are not checked. With an input of type json.RawMessage it is passed to the model as it is and the
	// input is not validated.
	InputSchema json.RawMessage

	// OutputSchema is a JSON Schema that describes the result to clients; results are not checked against it.
	OutputSchema json.RawMessage

	// NeedsApproval says which calls wait for a person's approval before they run. A call that is refused, or that a dry-run
	// session answers, does not wait. Default: none.
	NeedsApproval Approval

	// Approvers are the principals who may decide about a call, such as bearer:ops. [SessionOwner] stands for the owner of the
	// session, [Anybody] for every caller that the host admits. Whoever decides, the call runs for the owner of the session.
	// Default: SessionOwner alone.
	Approvers []string

	// ApprovalTimeout is how long a call waits for a decision; then it is denied as expired. Default, and at most on AWS: 7 days.
	// On one machine it may be longer.
	ApprovalTimeout time.Duration

	// DryRunResult makes the answer to a write in a dry-run session. Default: the text "Operation acknowledged."
	DryRunResult DryRun

	// TimeArgs are properties of the input that bound time. In a session that is frozen at an instant each must be there, as an
	// absolute RFC 3339 time with a zone, no later than the instant. Other sessions do not check them. A name that the input
	// schema does not have keeps frozen sessions from being started. Default: none.
	TimeArgs []string

	// MaxParallel bounds the calls of this tool that a process runs at once, in all sessions together; others wait, which does
	// not count as their time. A function that goes on after its time is over counts until it returns. Default: no bound.
	MaxParallel int

	// Idempotent says that the tool passes Call.ID on as an idempotency key to what it changes, which honours it for the life of a
	// turn. A write that was cut off is then made again with the same id, twice at most, instead of being reported as unknown.
	// Default: false.
	Idempotent bool

	// Timeout bounds one call. Default: 10 minutes. On AWS no call may take more than 14.
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

// EffectOf returns an Effect that depends on the input of the call. Input that does not fit In, a panic of the function and
// an answer other than Read count as a write. The function is called concurrently.
func EffectOf[In any](of func(In) EffectKind) Effect {
	return effectFunc(func(input json.RawMessage) (kind EffectKind) {
		defer func() {
			if recover() != nil || kind != Read {
				kind = Write
			}
		}()
		in, err := read[In](input)
		if err != nil {
			return Write
		}
		return of(in)
	})
}

// Approval says which calls need a person's approval. It is [Always], or the answer of [ApproveWhen].
type Approval interface {
	// needed reports whether a call with this input, which has been validated, needs one.
	needed(input json.RawMessage) bool
}

type approvalFunc func(json.RawMessage) bool

func (f approvalFunc) needed(input json.RawMessage) bool { return f(input) }

// ApprovalKind is a constant Approval.
type ApprovalKind string

// Always is the Approval that every call needs.
const Always ApprovalKind = "always"

func (ApprovalKind) needed(json.RawMessage) bool { return true }

// ApproveWhen returns an Approval that depends on the input of the call. Input that does not fit In, and a panic of the
// function, count as needed. The function is called concurrently.
func ApproveWhen[In any](needed func(In) bool) Approval {
	return approvalFunc(func(input json.RawMessage) (yes bool) {
		yes = true
		defer func() { _ = recover() }()
		if in, err := read[In](input); err == nil {
			yes = needed(in)
		}
		return yes
	})
}

// Who may decide about approvals, besides principals by name.
const (
	SessionOwner = "owner"
	Anybody      = "*"
)

// DryRun makes the answers to writes in dry-run sessions. It is the answer of [DryRunOf].
type DryRun interface {
	// answer returns the answer to a call with this input, which has been validated.
	answer(input json.RawMessage) (any, error)
}

type dryRunFunc func(json.RawMessage) (any, error)

func (f dryRunFunc) answer(input json.RawMessage) (any, error) { return f(input) }

// DryRunOf returns a DryRun that answers with what the function returns, as a tool's function does. The function must change
// nothing. If it panics the model reads an error; the tool is not run then either. It is called concurrently.
func DryRunOf[In, Out any](answer func(In) Out) DryRun {
	return dryRunFunc(func(input json.RawMessage) (any, error) {
		in, err := read[In](input)
		if err != nil {
			return nil, inputError(err)
		}
		return answer(in), nil
	})
}

// maxScriptTime is the most that hosts give a script.
const maxScriptTime = 10 * time.Minute

// DefineScript returns an agent tool: a script that runs beside the session's files, where the host runs scripts. It is given the
// input, which is validated as that of [DefineTool] is, as the JSON that the model sent, on its standard input. What it prints
// is the result, a text without the last line end; of more than 256 KiB the head and the tail are kept. With an exit code other
// than 0 the model reads an error with the code and the ends of what it printed.
//
// The script begins with #!/ and its interpreter, such as #!/usr/bin/env bash or #!/usr/bin/env python3. The environment is
// clean, but for the id of the call in BDK_CALL_ID, and the network may be out of reach. The working directory is the session's
// workspace, where the script is .agents/tools/ and its name. Its Timeout is at most 10 minutes.
func DefineScript[In any](spec ToolSpec, script string) Tool {
	input, read, err := readerOf[In](spec.InputSchema)
	errs := []error{err, spec.check()}
	if !strings.HasPrefix(script, "#!/") {
		errs = append(errs, errors.New("the script does not begin with #!/ and its interpreter, such as #!/usr/bin/env bash"))
	}
	if spec.Timeout > maxScriptTime {
		errs = append(errs, fmt.Errorf("the Timeout is %s: a script has %s at most", spec.Timeout, maxScriptTime))
	}
	return Tool{
		spec: spec, input: input, script: script, err: errors.Join(errs...),
		check: func(input json.RawMessage) error {
			_, err := read(input, true)
			return err
		},
		run: func(context.Context, *Call, json.RawMessage) (any, error) {
			return nil, errors.New("a script runs beside the session's files only")
		},
	}
}

// DefineTool returns a tool that runs the given function, which is called concurrently.
//
// The input schema is inferred from In, a struct, a pointer to one, or a map. A field is optional if it has omitempty or
// omitzero or is a pointer, the tag jsonschema describes it, and other properties than the fields are refused. Input is
// validated before run is called; the error names each field that is wrong. A field of type time.Time is sent as RFC 3339,
// []byte as base64, time.Duration as nanoseconds, json.RawMessage as any JSON.
//
// With In = json.RawMessage, or another type of bytes, the input arrives as the model sent it, a JSON object. The
// function may keep and change it.
//
// A result of type string is shown to the model verbatim, an [Output] by its parts, and anything else as JSON. An error, or a panic, becomes an error
// result that the model reads; it ends neither the turn nor the host. What a panic ends in a goroutine that the function
// starts is the process: recover there.
//
// The context ends when the turn is stopped, when the call's Timeout or the turn's time is over, and when the process shuts
// down. A function that goes on for more than two seconds after that is left alone: its result is not waited for, and the
// model reads that the outcome is unknown.
func DefineTool[In, Out any](spec ToolSpec, run func(context.Context, *Call, In) (Out, error)) Tool {
	input, read, err := readerOf[In](spec.InputSchema)
	t := Tool{spec: spec, input: input, err: errors.Join(err, spec.check())}
	if run == nil {
		t.err = errors.Join(t.err, errors.New("the function of the tool is nil"))
		return t
	}
	t.check = func(input json.RawMessage) error {
		_, err := read(input, true)
		return err
	}
	t.run = func(ctx context.Context, call *Call, input json.RawMessage) (any, error) {
		in, err := read(input, false)
		if err != nil {
			return nil, err
		}
		return run(ctx, call, in)
	}
	return t
}

// readerOf returns the input schema of a tool, inferred from In if none is given, and what reads input as an In,
// validating it if asked to.
func readerOf[In any](given json.RawMessage) (json.RawMessage, func(input json.RawMessage, validate bool) (In, error), error) {
	if isBytes(reflect.TypeFor[In]()) {
		if len(given) == 0 {
			given = json.RawMessage(`{"type":"object"}`)
		}
		return given, func(input json.RawMessage, _ bool) (in In, err error) {
			return read[In](input)
		}, inputError(schema.CheckObject(given))
	}
	s, err := schema.For[In](given)
	if err != nil {
		return nil, nil, inputError(err)
	}
	return s.JSON(), func(input json.RawMessage, validate bool) (in In, err error) {
		if validate {
			if err := s.Validate(input); err != nil {
				return in, err
			}
		}
		return schema.Decode[In](s, input)
	}, nil
}

// read returns input as an In: the bytes themselves if it is of bytes.
func read[In any](input json.RawMessage) (in In, err error) {
	if isBytes(reflect.TypeFor[In]()) {
		reflect.ValueOf(&in).Elem().SetBytes(bytes.Clone(input))
		return in, nil
	}
	err = json.Unmarshal(input, &in)
	return in, err
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func inputError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the input: %w", err)
}

// check returns what is wrong with the spec, but for its InputSchema.
func (s ToolSpec) check() error {
	var errs []error
	if strings.TrimSpace(s.Description) == "" {
		errs = append(errs, errors.New("the tool has no Description: tell the model what it does and when to use it"))
	}
	if kind, ok := s.Effect.(EffectKind); ok && kind != Read && kind != Write {
		errs = append(errs, fmt.Errorf("the Effect %q is neither bdk.Read nor bdk.Write", kind))
	}
	if s.Timeout < 0 {
		errs = append(errs, fmt.Errorf("the Timeout is %s: leave it out for 10 minutes", s.Timeout))
	}
	if s.MaxParallel < 0 {
		errs = append(errs, fmt.Errorf("MaxParallel is %d: leave it out for no bound", s.MaxParallel))
	}
	errs = append(errs, s.checkApproval(), s.checkTimeArgs())
	if len(s.OutputSchema) > 0 {
		if err := schema.CheckObject(s.OutputSchema); err != nil {
			errs = append(errs, fmt.Errorf("the OutputSchema: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkApproval returns what is wrong with who approves which calls.
func (s ToolSpec) checkApproval() error {
	var errs []error
	if kind, ok := s.NeedsApproval.(ApprovalKind); ok && kind != Always {
		errs = append(errs, fmt.Errorf("NeedsApproval is %q, which is not bdk.Always: leave it out if no call needs approval", kind))
	}
	if s.NeedsApproval == nil && (len(s.Approvers) > 0 || s.ApprovalTimeout > 0) {
		errs = append(errs, errors.New("there are Approvers or an ApprovalTimeout, but no call would wait: set NeedsApproval"))
	}
	if s.ApprovalTimeout < 0 {
		errs = append(errs, fmt.Errorf("the ApprovalTimeout is %s: leave it out for 7 days", s.ApprovalTimeout))
	}
	for _, who := range s.Approvers {
		if !isApprover(who) {
			errs = append(errs, fmt.Errorf("%q in Approvers is no principal: write bearer:ops or the like, bdk.SessionOwner or bdk.Anybody", who))
		}
	}
	return errors.Join(errs...)
}

// isApprover says whether who can be that of anybody: a principal is local, anonymous, or kind:name.
func isApprover(who string) bool {
	if who == SessionOwner || who == Anybody || who == "local" || who == "anonymous" {
		return true
	}
	kind, name, found := strings.Cut(who, ":")
	return found && kind != "" && name != "" && !strings.ContainsFunc(who, unicode.IsSpace)
}

// checkTimeArgs returns what is wrong with the TimeArgs themselves. Whether the input has them is for who starts sessions that
// are frozen: others do not need them.
func (s ToolSpec) checkTimeArgs() error {
	for i, name := range s.TimeArgs {
		if name == "" {
			return errors.New("a name in TimeArgs is empty")
		}
		if slices.Contains(s.TimeArgs[:i], name) {
			return fmt.Errorf("%q is in TimeArgs twice", name)
		}
	}
	return nil
}

// Spec returns what the tool was defined with, and the defaults of Effect, Approvers, ApprovalTimeout and Timeout if they were
// not given. Do not change the slices.
func (t Tool) Spec() ToolSpec {
	s := t.spec
	if s.Effect == nil {
		s.Effect = Write
	}
	s.Timeout = or(s.Timeout, 10*time.Minute)
	s.ApprovalTimeout = or(s.ApprovalTimeout, 7*24*time.Hour)
	if len(s.Approvers) == 0 {
		s.Approvers = []string{SessionOwner}
	}
	return s
}

// InputSchema returns the JSON Schema the model sees, nil if the definition is wrong. Do not change the bytes.
func (t Tool) InputSchema() json.RawMessage { return t.input }

// Err returns all that is wrong with the definition, one mistake a line; nil if nothing is.
func (t Tool) Err() error {
	if t.err == nil && t.run == nil {
		return errors.New("the tool is empty: define it with bdk.DefineTool")
	}
	return t.err
}

// CheckInput returns what is wrong with an input; nil if nothing is. It must be one JSON object, of at most 1 MiB, in which
// no key appears twice; with typed input it must also match the schema and fit the type. The error has one line for each
// fault that names the field and what to send.
func (t Tool) CheckInput(input json.RawMessage) error {
	if err := t.Err(); err != nil {
		return err
	}
	if err := schema.Object(input); err != nil {
		return err
	}
	return t.check(input)
}

// EffectOf returns the effect of a call with this input, which CheckInput has accepted. In doubt it is [Write].
func (t Tool) EffectOf(input json.RawMessage) EffectKind {
	if t.Spec().Effect.effect(input) == Read {
		return Read
	}
	return Write
}

// Script returns the script of an agent tool, "" for a server tool.
func (t Tool) Script() string { return t.script }

// NeedsApproval reports whether a call with this input, which CheckInput has accepted, waits for approval.
func (t Tool) NeedsApproval(input json.RawMessage) bool {
	return t.spec.NeedsApproval != nil && t.spec.NeedsApproval.needed(input)
}

// DryRunAnswer returns what a dry-run session answers to a write with this input, which CheckInput has accepted, in the form of a
// result of [Tool.Run]. A panic of the author's function is not caught.
func (t Tool) DryRunAnswer(input json.RawMessage) (any, error) {
	if t.spec.DryRunResult == nil {
		return "Operation acknowledged.", nil
	}
	return t.spec.DryRunResult.answer(input)
}

// Run runs the tool with an input that CheckInput has accepted. The result is what the function returned; a panic of the
// function is not caught. A nil call stands for the zero Call.
func (t Tool) Run(ctx context.Context, call *Call, input json.RawMessage) (any, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	if call == nil {
		call = &Call{}
	}
	return t.run(ctx, call, input)
}

// Call is what a tool knows about the call it serves. The zero Call is usable in tests of a tool's function.
type Call struct {
	Services // of the host, for this session

	ID        string      // the call id of the events actions.requested and action.result; stable across restarts, so it serves as an idempotency key
	Session   SessionInfo // who asks
	Workspace Workspace   // the files of the session; nil in the zero Call
	Sessions  Sessions    // the conversations of the agent; nil in the zero Call
}

// Workspace is the files of a session. What a call changes is kept with its result. Names are relative paths with slashes;
// those that lead out of the workspace, through whatever trick, are refused. It is safe for concurrent use.
type Workspace interface {
	// Dir returns a directory of this machine with the files. It is the session's own and goes away after the turn; what the call
	// changes in it is kept too. Reading single files does not need it and is faster without.
	Dir(ctx context.Context) (string, error)
	// Files returns all files, in the order of their paths.
	Files(ctx context.Context) ([]File, error)
	// ReadFile returns the content of a file. The error is an fs.ErrNotExist if there is none.
	ReadFile(ctx context.Context, name string) ([]byte, error)
	// WriteFile creates or replaces a file, and the folders it is in. Of the mode only the permission to execute is kept.
	WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error
	// Remove removes a file. The error is an fs.ErrNotExist if there is none.
	Remove(ctx context.Context, name string) error
}

// File is a file of a Workspace.
type File struct {
	Path string // relative, with slashes
	Size int64  // bytes
	Exec bool   // may be executed
}

// SessionInfo describes the session of a call.
type SessionInfo struct {
	ID      string    // the session id of the HTTP API
	TurnID  string    // the turn that made the call
	Agent   string    // the agent's slug
	Title   string    // "" if it has none
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
