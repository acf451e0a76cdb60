// Package tool runs the tools of an agent: it checks the input, says which calls need a person's approval, answers writes of
// dry-run sessions, makes sure that no write runs twice, bounds time and concurrency, and turns whatever comes of a call into
// a result the model can read.
//
// [Set.Gate] says what stands before a call, [Set.Run] makes it. Run checks everything again but the approval, which its caller
// vouches for.
package tool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/model"
)

// Set is the tools of one agent. It is safe for concurrent use.
type Set struct {
	tools map[string]bdk.NamedTool
	slots map[string]chan struct{} // of the tools with a MaxParallel; full: all are taken
	opts  Options
}

// Options are what a Set works with.
type Options struct {
	Claims  *kv.Store   // remembers the writes that were begun; required
	Clock   clock.Clock // default: the system clock
	Scripts exec.Runner // runs agent tools; nil: they answer that this host runs no scripts

	// More returns tools that are not known beforehand, by name. They are not offered by [Set.Offer]. nil: there are none.
	More func(name string) (bdk.NamedTool, bool)
}

// NewSet returns the set of the given tools. It fails with the mistakes of all definitions.
func NewSet(tools []bdk.NamedTool, opts Options) (*Set, error) {
	if opts.Claims == nil {
		return nil, errors.New("a set of tools needs a store for its claims")
	}
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	s := &Set{tools: make(map[string]bdk.NamedTool, len(tools)), slots: make(map[string]chan struct{}), opts: opts}
	var errs []error
	for _, t := range tools {
		if err := t.Tool.Err(); err != nil {
			errs = append(errs, fmt.Errorf("tool %s (%s): %w", t.Name, t.Source, err))
		}
		if twin, taken := s.tools[t.Name]; taken {
			errs = append(errs, fmt.Errorf("tool %s (%s): %s defines a tool of the same name", t.Name, t.Source, twin.Source))
		}
		s.tools[t.Name] = t
		if n := t.Tool.Spec().MaxParallel; n > 0 {
			s.slots[t.Name] = make(chan struct{}, n)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Find returns the tool with the given name.
func (s *Set) Find(name string) (bdk.NamedTool, bool) {
	t, ok := s.tools[name]
	if !ok && s.opts.More != nil {
		return s.opts.More(name)
	}
	return t, ok
}

// Timeout returns how long a call of the tool with the given name may take, 0 if there is none.
func (s *Set) Timeout(name string) time.Duration {
	if t, ok := s.Find(name); ok {
		return t.Tool.Spec().Timeout
	}
	return 0
}

// Approvers returns who may decide about calls of the tool with the given name, nil if there is none. Do not change the slice.
func (s *Set) Approvers(name string) []string {
	if t, ok := s.Find(name); ok {
		return t.Tool.Spec().Approvers
	}
	return nil
}

// ApprovalTimeout returns how long a call of the tool with the given name waits for a decision, 0 if there is none.
func (s *Set) ApprovalTimeout(name string) time.Duration {
	if t, ok := s.Find(name); ok {
		return t.Tool.Spec().ApprovalTimeout
	}
	return 0
}

// Offer returns the tools as a model is offered them, in name order.
func (s *Set) Offer() []model.Tool {
	offer := make([]model.Tool, 0, len(s.tools))
	for _, name := range s.names() {
		t := s.tools[name].Tool
		offer = append(offer, model.Tool{Name: name, Description: t.Spec().Description, InputSchema: t.InputSchema()})
	}
	return offer
}

// Callable returns the tools that can be called without a model, in name order: all but the agent tools.
func (s *Set) Callable() []bdk.NamedTool {
	var list []bdk.NamedTool
	for _, name := range s.names() {
		if t := s.tools[name]; t.Tool.Script() == "" {
			list = append(list, t)
		}
	}
	return list
}

func (s *Set) names() []string { return slices.Sorted(maps.Keys(s.tools)) }
