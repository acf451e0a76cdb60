package sfntest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

type machine struct {
	StartAt        string
	Comment        string
	TimeoutSeconds int
	States         map[string]json.RawMessage

	states map[string]state
}

// A state does its work on its input and says where to go on; "" ends the machine, well or with a fault.
type state interface {
	run(r *run, in any) (out any, next string, fault *Fault)
	targets() []string // where it may go on, "" for an end
}

// parse checks a definition and returns its machine.
func parse(definition string, functions map[string]Function) (*machine, error) {
	if strings.Contains(definition, "${") {
		return nil, errors.New("the definition has placeholders")
	}
	var m machine
	if err := strict([]byte(definition), &m); err != nil {
		return nil, fmt.Errorf("reading the definition: %w", err)
	}
	var err error
	m.states, err = parseStates(m.StartAt, m.States, functions)
	return &m, err
}

func parseStates(start string, raw map[string]json.RawMessage, functions map[string]Function) (map[string]state, error) {
	states := make(map[string]state, len(raw))
	for name, r := range raw {
		st, err := parseState(r, functions)
		if err != nil {
			return nil, fmt.Errorf("state %s: %w", name, err)
		}
		states[name] = st
	}
	if states[start] == nil {
		return nil, fmt.Errorf("there is no state %q to start at", start)
	}
	for name, st := range states {
		for _, next := range st.targets() {
			if next != "" && states[next] == nil {
				return nil, fmt.Errorf("state %s goes on to %q, which does not exist", name, next)
			}
		}
	}
	return states, nil
}

func parseState(raw json.RawMessage, functions map[string]Function) (state, error) {
	var kind struct{ Type string }
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, err
	}
	switch kind.Type {
	case "Task":
		return parseTask(raw, functions)
	case "Map":
		return parseMap(raw, functions)
	case "Choice":
		return parseChoice(raw)
	case "Pass":
		return parsePass(raw)
	case "Succeed":
		s := &succeed{}
		return s, strict(raw, s)
	case "Fail":
		s := &failState{}
		return s, strict(raw, s)
	}
	return nil, fmt.Errorf("type %q is not known here", kind.Type)
}

// strict decodes a value and refuses fields that it has no place for.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the value")
	}
	return nil
}

// about is what every state may have.
type about struct{ Type, Comment string }

// onward is where a state goes on to.
type onward struct {
	Next string
	End  bool
}

func (o onward) check() error {
	if (o.Next == "") != o.End {
		return errors.New("either Next or End is needed")
	}
	return nil
}

// result is what becomes of a state's input with its result.
type result struct {
	ResultSelector json.RawMessage
	ResultPath     where

	selector template
}

// where is the value of ResultPath: absent to replace the input, null to drop the result, or a path.
type where struct {
	drop bool
	path path
}

// UnmarshalJSON reads a path or null.
func (w *where) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if w.drop = text == nil; w.drop {
		return nil
	}
	var err error
	if w.path, err = parsePath(*text); err == nil && w.path.context {
		err = errors.New("a result cannot go to the context object")
	}
	return err
}

// apply returns the output of a state with the given input and result.
func (w where) apply(in, out any) (any, *Fault) {
	if w.drop {
		return in, nil
	}
	return w.path.set(in, out)
}

func (s *result) apply(r *run, in, out any) (any, *Fault) {
	if s.selector != nil {
		var fault *Fault
		if out, fault = s.selector(out, r.context); fault != nil {
			return nil, fault
		}
	}
	return s.ResultPath.apply(in, out)
}

// A retrier says how often and when to try again after some errors.
type retrier struct {
	ErrorEquals     []string
	IntervalSeconds *int
	BackoffRate     *float64
	MaxDelaySeconds int
	MaxAttempts     *int
	JitterStrategy  string
	Comment         string
}

func (t retrier) delay(attempt int) time.Duration {
	interval, rate := 1, 2.0
	if t.IntervalSeconds != nil {
		interval = *t.IntervalSeconds
	}
	if t.BackoffRate != nil {
		rate = *t.BackoffRate
	}
	seconds := float64(interval) * math.Pow(rate, float64(attempt))
	if t.MaxDelaySeconds > 0 {
		seconds = min(seconds, float64(t.MaxDelaySeconds))
	}
	return time.Duration(seconds * float64(time.Second))
}

func (t retrier) attempts() int {
	if t.MaxAttempts != nil {
		return *t.MaxAttempts
	}
	return 3
}

// A catcher says where to go on after some errors.
type catcher struct {
	ErrorEquals []string
	ResultPath  where
	Next        string
	Comment     string
}

// recovery is what to do about errors.
type recovery struct {
	Retry []retrier
	Catch []catcher
}

func (c recovery) check() error {
	for i, t := range c.Retry {
		if err := checkErrors(t.ErrorEquals, i == len(c.Retry)-1); err != nil {
			return err
		}
		if t.JitterStrategy != "" && t.JitterStrategy != "FULL" && t.JitterStrategy != "NONE" {
			return fmt.Errorf("JitterStrategy %q is not known", t.JitterStrategy)
		}
		if t.IntervalSeconds != nil && *t.IntervalSeconds < 1 || t.BackoffRate != nil && *t.BackoffRate < 1 || t.MaxDelaySeconds < 0 || t.attempts() < 0 {
			return fmt.Errorf("the retrier of %v has numbers that are out of bounds", t.ErrorEquals)
		}
	}
	for i, t := range c.Catch {
		if err := checkErrors(t.ErrorEquals, i == len(c.Catch)-1); err != nil {
			return err
		}
	}
	return nil
}

func checkErrors(names []string, last bool) error {
	if len(names) == 0 {
		return errors.New("ErrorEquals is empty")
	}
	if slices.Contains(names, "States.ALL") && (len(names) > 1 || !last) {
		return errors.New("States.ALL must be alone and last")
	}
	return nil
}

func (c recovery) targets() []string {
	var next []string
	for _, t := range c.Catch {
		next = append(next, t.Next)
	}
	return next
}

// matches reports whether one of the names is that of an error.
func matches(names []string, fault *Fault) bool {
	terminal := fault.Name == "States.Runtime" || fault.Name == "States.DataLimitExceeded"
	return slices.ContainsFunc(names, func(name string) bool {
		switch name {
		case "States.ALL":
			return !terminal
		case "States.TaskFailed":
			return !terminal && fault.Name != "States.Timeout"
		}
		return name == fault.Name
	})
}
