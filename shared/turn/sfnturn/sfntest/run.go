package sfntest

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/bdk-lambda/bdk/shared/clock"
)

// maxData is how many bytes of JSON a state may take and give.
const maxData = 262_144

// run is the work on an execution, or on one iteration of a Map.
type run struct {
	*Server

	x       *execution
	ctx     context.Context //nolint:containedctx // ends when the execution is stopped
	context map[string]any  // the context object
	state   string          // the one that is run
}

// with returns a run whose context object has one more entry.
func (r *run) with(name string, value any) *run {
	next := *r
	next.context = maps.Clone(r.context)
	next.context[name] = value
	return &next
}

// states runs states from the one named at until one ends. At the top, the execution remembers where it is.
func (r *run) states(states map[string]state, at string, data any, top bool) (any, *Fault) {
	for at != "" {
		if fault := r.enter(at, data, top); fault != nil {
			return nil, fault
		}
		var fault *Fault
		if data, at, fault = states[at].run(r, data); fault == nil {
			fault = tooLarge(data)
		}
		if fault != nil {
			return nil, fault
		}
	}
	return data, nil
}

// enter records a transition.
func (r *run) enter(state string, data any, top bool) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return stopped()
	}
	r.state = state
	r.x.Transitions = append(r.x.Transitions, state)
	if top {
		r.x.at, r.x.data = state, data
	}
	return nil
}

// try does the work of a state until it succeeds, or a catcher takes its error, which says where to go on; or until nothing
// can be done about it.
func (r *run) try(c *recovery, in any, do func() (any, *Fault)) (out any, next string, fault *Fault) {
	tried := make([]int, len(c.Retry))
	for {
		out, fault := do()
		if fault == nil {
			return out, "", nil
		}
		if r.ctx.Err() != nil {
			return nil, "", stopped()
		}
		if r.again(c.Retry, tried, fault) {
			if fault := r.enter(r.state, nil, false); fault != nil {
				return nil, "", fault
			}
			continue
		}
		for _, t := range c.Catch {
			if matches(t.ErrorEquals, fault) {
				out, fault := t.ResultPath.apply(in, map[string]any{"Error": fault.Name, "Cause": fault.Cause})
				return out, t.Next, fault
			}
		}
		return nil, "", fault
	}
}

// again waits if the first retrier that knows the error has tries left, and reports whether it has.
func (r *run) again(retriers []retrier, tried []int, fault *Fault) bool {
	for i, t := range retriers {
		if !matches(t.ErrorEquals, fault) {
			continue
		}
		if tried[i] >= t.attempts() {
			return false
		}
		pause := t.delay(tried[i])
		tried[i]++
		return clock.Sleep(r.ctx, r.opts.Clock, pause) == nil
	}
	return false
}

// stopped is the fault of a state that is left because its execution, or a sibling's iteration, has ended.
func stopped() *Fault { return &Fault{Name: "States.Runtime", Cause: "stopped"} }

func runtimeFault(cause string) *Fault { return &Fault{Name: "States.Runtime", Cause: cause} }

func tooLarge(data any) *Fault {
	b, err := json.Marshal(data)
	if err != nil {
		return runtimeFault(err.Error())
	}
	if len(b) > maxData {
		return &Fault{Name: "States.DataLimitExceeded", Cause: "the state has more than 256 KiB of data"}
	}
	return nil
}
