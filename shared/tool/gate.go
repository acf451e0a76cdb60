package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Gate says what stands before a call, without running it: a person who has to be asked, or the outcome that it has already,
// because there is no such tool, its input is refused, or a dry-run session answers it. Such a call is not asked about. If
// neither does, Run may make the call at once.
func (s *Set) Gate(call *bdk.Call, name string, args json.RawMessage) (ask bool, done *Outcome) {
	t, done := s.settled(call, name, args)
	if done != nil {
		return false, done
	}
	return t.NeedsApproval(args), nil
}

// settled returns the tool of a call, or the outcome that the call has without being run.
func (s *Set) settled(call *bdk.Call, name string, args json.RawMessage) (bdk.Tool, *Outcome) {
	refuse := func(format string, args ...any) (bdk.Tool, *Outcome) {
		out := Failed(fmt.Errorf(format, args...))
		return bdk.Tool{}, &out
	}
	named, ok := s.Find(name)
	switch {
	case !ok && len(s.tools) == 0:
		return refuse("there is no tool %q: this agent has no tools", name)
	case !ok:
		return refuse("there is no tool %q: the tools are %s", name, strings.Join(s.names(), ", "))
	}
	t := named.Tool
	err := t.CheckInput(args)
	if asOf := call.Session.AsOf; err == nil && !asOf.IsZero() {
		err = checkTimes(t.Spec().TimeArgs, args, asOf)
	}
	if err != nil {
		return refuse("the input of %s was refused, the tool was not run: %w", name, err)
	}
	if call.Session.DryRun && t.EffectOf(args) == bdk.Write {
		out, err := protect(call, func() (any, error) { return t.DryRunAnswer(args) })
		if err != nil {
			return refuse("making the answer of the dry run, the tool was not run: %w", err)
		}
		out.Stubbed = true
		return bdk.Tool{}, &out
	}
	if t.Script() != "" && s.opts.Scripts == nil {
		return refuse("%s is a script, and this host runs no scripts: it was not run", name)
	}
	if t.Script() != "" && call.Workspace == nil {
		return refuse("%s is a script, and this call has no workspace: it was not run", name)
	}
	return t, nil
}
