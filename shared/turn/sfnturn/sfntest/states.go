package sfntest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

const waitForToken = "arn:aws:states:::lambda:invoke.waitForTaskToken"

type taskState struct {
	about
	onward
	result
	recovery

	Resource       string
	Parameters     json.RawMessage
	TimeoutSeconds int

	parameters template
}

func parseTask(raw json.RawMessage, functions map[string]Function) (state, error) {
	var s taskState
	if err := strict(raw, &s); err != nil {
		return nil, err
	}
	var errs [2]error
	s.parameters, errs[0] = parseTemplate(s.Parameters)
	s.selector, errs[1] = parseTemplate(s.ResultSelector)
	if err := errors.Join(errs[0], errs[1], s.onward.check(), s.recovery.check()); err != nil {
		return nil, err
	}
	if s.Resource == waitForToken {
		return &s, checkWait(s.Parameters, functions)
	}
	if functions[s.Resource] == nil {
		return nil, fmt.Errorf("there is no function %q", s.Resource)
	}
	return &s, nil
}

// checkWait checks the parameters of a task that waits for its token.
func checkWait(raw json.RawMessage, functions map[string]Function) error {
	var p struct {
		FunctionName string
		Payload      json.RawMessage
	}
	if err := strict(raw, &p); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	if functions[p.FunctionName] == nil {
		return fmt.Errorf("there is no function %q", p.FunctionName)
	}
	return nil
}

func (s *taskState) targets() []string { return append(s.recovery.targets(), s.Next) }

func (s *taskState) run(r *run, in any) (any, string, *Fault) {
	out, next, fault := r.try(&s.recovery, in, func() (any, *Fault) {
		out, fault := s.attempt(r, in)
		if fault != nil {
			return nil, fault
		}
		return s.apply(r, in, out)
	})
	if next == "" {
		next = s.Next
	}
	return out, next, fault
}

// attempt does the task once, within its time.
func (s *taskState) attempt(r *run, in any) (any, *Fault) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	late := (<-chan time.Time)(nil)
	if s.TimeoutSeconds > 0 {
		c, stop := r.opts.Clock.After(time.Duration(s.TimeoutSeconds) * time.Second)
		defer stop()
		late = c
	}
	done := make(chan answer, 1)
	r.work.Go(func() {
		out, fault := s.do(ctx, r, in)
		done <- answer{out, fault}
	})
	select {
	case a := <-done:
		return a.out, a.fault
	case <-late:
		cancel()
		<-done
		return nil, &Fault{Name: "States.Timeout"}
	}
}

func (s *taskState) do(ctx context.Context, r *run, in any) (any, *Fault) {
	if s.Resource == waitForToken {
		return s.wait(ctx, r, in)
	}
	event, fault := s.event(in, r.context)
	if fault != nil {
		return nil, fault
	}
	return r.call(ctx, s.Resource, event)
}

func (s *taskState) event(in any, context map[string]any) (any, *Fault) {
	if s.parameters == nil {
		return in, nil
	}
	event, fault := s.parameters(in, context)
	if fault == nil {
		fault = tooLarge(event)
	}
	return event, fault
}

// wait calls the function and waits for the token that it was given. What the function answers does not matter.
func (s *taskState) wait(ctx context.Context, r *run, in any) (any, *Fault) {
	token, t := r.newToken()
	defer r.closeToken(t)
	event, fault := s.event(in, r.with("Task", map[string]any{"Token": token}).context)
	if fault != nil {
		return nil, fault
	}
	parameters, _ := event.(map[string]any)
	function, _ := parameters["FunctionName"].(string)
	if _, fault := r.call(ctx, function, parameters["Payload"]); fault != nil {
		return nil, fault
	}
	select {
	case a := <-t.answer:
		return a.out, a.fault
	case <-ctx.Done():
		return nil, stopped()
	}
}

type mapState struct {
	about
	onward
	result
	recovery

	ItemsPath      string
	ItemSelector   json.RawMessage
	MaxConcurrency int
	ItemProcessor  struct {
		ProcessorConfig struct{ Mode string }
		StartAt         string
		States          map[string]json.RawMessage
	}

	items  path
	item   template
	states map[string]state
}

func parseMap(raw json.RawMessage, functions map[string]Function) (state, error) {
	s := mapState{ItemsPath: "$"}
	if err := strict(raw, &s); err != nil {
		return nil, err
	}
	if mode := s.ItemProcessor.ProcessorConfig.Mode; mode != "" && mode != "INLINE" {
		return nil, fmt.Errorf("a Map of mode %q is not known here", mode)
	}
	var errs [4]error
	s.items, errs[0] = parsePath(s.ItemsPath)
	s.item, errs[1] = parseTemplate(s.ItemSelector)
	s.selector, errs[2] = parseTemplate(s.ResultSelector)
	s.states, errs[3] = parseStates(s.ItemProcessor.StartAt, s.ItemProcessor.States, functions)
	return &s, errors.Join(errs[0], errs[1], errs[2], errs[3], s.onward.check(), s.recovery.check())
}

func (s *mapState) targets() []string { return append(s.recovery.targets(), s.Next) }

func (s *mapState) run(r *run, in any) (any, string, *Fault) {
	out, next, fault := r.try(&s.recovery, in, func() (any, *Fault) {
		out, fault := s.iterate(r, in)
		if fault != nil {
			return nil, fault
		}
		return s.apply(r, in, out)
	})
	if next == "" {
		next = s.Next
	}
	return out, next, fault
}

// iterate runs the inner states for every item. The first iteration that fails stops the others.
func (s *mapState) iterate(r *run, in any) (any, *Fault) {
	got, _ := s.items.get(in, r.context)
	items, ok := got.([]any)
	if !ok {
		return nil, runtimeFault("the path " + s.ItemsPath + " leads to no list")
	}
	most := s.MaxConcurrency
	if most == 0 {
		most = 40
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	inner := *r
	inner.ctx = ctx
	outs, room := make([]any, len(items)), make(chan struct{}, most)
	var wg sync.WaitGroup
	var once sync.Once
	var first *Fault
	for i, item := range items {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			one := inner.with("Map", map[string]any{"Item": map[string]any{"Index": float64(i), "Value": item}})
			out, fault := s.one(one, in, item)
			if outs[i] = out; fault != nil {
				once.Do(func() {
					first = fault
					cancel()
				})
			}
		})
	}
	wg.Wait()
	return outs, first
}

func (s *mapState) one(r *run, in, item any) (any, *Fault) {
	if s.item != nil {
		var fault *Fault
		if item, fault = s.item(in, r.context); fault != nil {
			return nil, fault
		}
	}
	return r.states(s.states, s.ItemProcessor.StartAt, item, false)
}

type choiceState struct {
	about

	Choices []rule
	Default string
}

// A rule is a test of the input. One within another has no Next.
type rule struct {
	Variable     string
	StringEquals *string
	IsPresent    *bool
	And          []rule
	Not          *rule
	Next         string
	Comment      string

	variable path
}

func parseChoice(raw json.RawMessage) (state, error) {
	var s choiceState
	if err := strict(raw, &s); err != nil {
		return nil, err
	}
	for i := range s.Choices {
		if err := s.Choices[i].check(true); err != nil {
			return nil, fmt.Errorf("choice %d: %w", i+1, err)
		}
	}
	return &s, nil
}

func (c *rule) check(top bool) error {
	tests := 0
	for _, given := range []bool{c.StringEquals != nil, c.IsPresent != nil, c.And != nil, c.Not != nil} {
		if given {
			tests++
		}
	}
	compares := c.StringEquals != nil || c.IsPresent != nil
	if tests != 1 || compares != (c.Variable != "") || top != (c.Next != "") {
		return errors.New("a rule has one test, a variable if it compares, and Next at the top only")
	}
	if c.Not != nil {
		return c.Not.check(false)
	}
	for i := range c.And {
		if err := c.And[i].check(false); err != nil {
			return err
		}
	}
	var err error
	if compares {
		c.variable, err = parsePath(c.Variable)
	}
	return err
}

func (c *rule) holds(in any, context map[string]any) (bool, *Fault) {
	switch {
	case c.Not != nil:
		yes, fault := c.Not.holds(in, context)
		return !yes, fault
	case c.And != nil:
		for i := range c.And {
			if yes, fault := c.And[i].holds(in, context); !yes || fault != nil {
				return false, fault
			}
		}
		return true, nil
	}
	got, ok := c.variable.get(in, context)
	switch {
	case c.IsPresent != nil:
		return ok == *c.IsPresent, nil
	case !ok:
		return false, runtimeFault("the variable " + c.Variable + " leads nowhere")
	}
	text, isText := got.(string)
	return isText && text == *c.StringEquals, nil
}

func (s *choiceState) targets() []string {
	next := []string{s.Default}
	for _, c := range s.Choices {
		next = append(next, c.Next)
	}
	return next
}

func (s *choiceState) run(r *run, in any) (any, string, *Fault) {
	for i := range s.Choices {
		yes, fault := s.Choices[i].holds(in, r.context)
		if fault != nil {
			return nil, "", fault
		}
		if yes {
			return in, s.Choices[i].Next, nil
		}
	}
	if s.Default == "" {
		return nil, "", &Fault{Name: "States.NoChoiceMatched", Cause: "no choice holds"}
	}
	return in, s.Default, nil
}

type passState struct {
	about
	onward

	Result     any
	ResultPath where
}

func parsePass(raw json.RawMessage) (state, error) {
	var s passState
	if err := strict(raw, &s); err != nil {
		return nil, err
	}
	return &s, s.check()
}

func (s *passState) targets() []string { return []string{s.Next} }

func (s *passState) run(_ *run, in any) (any, string, *Fault) {
	out := in
	if s.Result != nil {
		out = s.Result
	}
	out, fault := s.ResultPath.apply(in, out)
	return out, s.Next, fault
}

type succeed struct{ about }

func (*succeed) targets() []string { return nil }

func (*succeed) run(_ *run, in any) (any, string, *Fault) { return in, "", nil }

type failState struct {
	about

	Error, Cause string
}

func (*failState) targets() []string { return nil }

func (s *failState) run(*run, any) (any, string, *Fault) {
	return nil, "", &Fault{Name: s.Error, Cause: s.Cause}
}
