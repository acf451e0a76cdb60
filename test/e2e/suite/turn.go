package suite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
)

// stopped stops the newest turn and checks that it has ended, as cancelled, within a second.
func (s *Session) stopped(body string) {
	s.t.Helper()
	begin := time.Now()
	a := s.Do("POST", s.Path("/stop"), body)
	if a.Status != 200 || a.Field("stopped") != true || a.Text("turnId") != s.TurnID {
		s.t.Errorf("stop: got %d %s", a.Status, a.Raw)
	}
	if failed := s.Failed(); failed.Status != event.StatusCancelled {
		s.t.Errorf("the turn ended with %+v", failed)
	}
	if took := time.Since(begin); took > 3*time.Second {
		s.t.Errorf("the stop took %s", took)
	}
}

// stop: a turn is stopped once, and only the one that is meant.
func stop(t *testing.T, target Target) {
	s := target.Ann(t).Start("slow down")
	s.Until(event.TypeActionsRequested)
	s.Do("POST", s.Path("/stop"), `{"turnId":"turn_other"}`).Refused("another turn", 409, "turn_mismatch")
	s.stopped(encode(map[string]any{"turnId": s.TurnID}))
	if a := s.Do("POST", s.Path("/stop"), ""); a.Status != 200 || a.Field("stopped") != false {
		t.Errorf("again: got %d %s", a.Status, a.Raw)
	}
	s.Usable()
}

// stopDuringAnAnswer: nothing of an answer is told after its turn was stopped.
func stopDuringAnAnswer(t *testing.T, target Target) {
	s := target.Ann(t).Start("typing")
	s.Until(event.TypeMessageAppended)
	s.stopped("")
	s.Usable()
	over := false
	for _, e := range s.Completed() {
		over = over || e.Type == event.TypeTurnFailed
		if d, err := event.Decode[event.MessageAppended](e); err == nil && over && d.Text != "ok" {
			t.Errorf("after the stop: %q", d.Text)
		}
	}
}

// stopOfADeafTool: a tool that does not listen holds up neither the stop nor the session.
func stopOfADeafTool(t *testing.T, target Target) {
	s := target.Ann(t).Start("deaf")
	s.Until(event.TypeActionsRequested)
	s.stopped("")
	s.Usable()
	if r := Results(s.Events("")); len(r) != 0 {
		t.Errorf("a result after the end: %v", r)
	}
}

// interruptByAMessage: a message to a busy session ends its turn and is answered.
func interruptByAMessage(t *testing.T, target Target) {
	s := target.Ann(t).Start("deaf")
	s.Until(event.TypeActionsRequested)
	old := s.TurnID
	s.Say("hello")
	log := s.Completed()
	failed, err := event.Decode[event.TurnFailed](ending(log, old))
	if err != nil || failed.Status != event.StatusCancelled {
		t.Errorf("the first turn ended with %+v, error %v", failed, err)
	}
	first := slices.IndexFunc(log, func(e event.Event) bool { return e.TurnID == s.TurnID })
	for _, e := range log[first:] {
		if e.TurnID == old {
			t.Errorf("event %d is of the turn before", e.Index)
		}
	}
}

// malformedCalls: arguments that are no object of the right shape run no tool, and the model is told why.
func malformedCalls(t *testing.T, target Target) {
	ann := target.Ann(t)
	log := ann.Start("malformed").Completed()
	results, ran := Results(log), ann.Notes()
	for _, r := range results {
		if !r.IsError || ran[r.CallID] != 0 || len(r.Output) < 20 {
			t.Errorf("%s: error %t, ran %d times: %s", r.CallID, r.IsError, ran[r.CallID], r.Output)
		}
	}
	if len(results) != 10 {
		t.Errorf("%d results; want 10", len(results))
	}
}

// toolsThatFail: whatever comes of a call is a result that the model reads.
func toolsThatFail(t *testing.T, target Target) {
	s := target.Ann(t).Start("fail")
	got := map[string]string{}
	for _, r := range Results(s.Completed()) {
		var text string
		if json.Unmarshal(r.Output, &text) != nil {
			text = string(r.Output)
		}
		key := fmt.Sprintf("%s %t", r.ToolName, r.IsError)
		got[key] = text
	}
	for key, want := range map[string]string{
		"fail true": "out of paint", "burst true": "the pipe burst", "missing true": "the tools are add, big", "add true": "a", "add false": "5",
	} {
		if !strings.Contains(got[key], want) {
			t.Errorf("%s is %q; want %q in it", key, got[key], want)
		}
	}
	s.Usable()
}

// largeOutputs: readers get outputs whole, however little of them the model does.
func largeOutputs(t *testing.T, target Target) {
	s := target.Ann(t).Start("big")
	results := Results(s.Completed())
	for _, r := range results {
		var text string
		if err := json.Unmarshal(r.Output, &text); err != nil || len(text) != 1<<20 || !strings.HasSuffix(text, "exit 1") {
			t.Errorf("%d bytes, error %v", len(text), err)
		}
	}
	if len(results) != 5 {
		t.Errorf("%d results; want 5", len(results))
	}
	s.Usable()
}

// writesRunOnce: many sessions at a time, each with parallel calls: every write ran once.
func writesRunOnce(t *testing.T, target Target) {
	ann := target.Ann(t)
	sessions := make([]*Session, 4)
	for i := range sessions {
		sessions[i] = ann.Start("note it")
	}
	logs := make([][]event.Event, len(sessions))
	for i, s := range sessions {
		logs[i] = s.Completed()
	}
	ran := ann.Notes()
	for _, log := range logs {
		if unknown := Writes(t, log, ran); unknown > 0 {
			t.Errorf("%d outcomes are unknown, though nothing went wrong", unknown)
		}
	}
}

// runaway: an agent that never comes to an end is ended by its limit, which names itself.
func runaway(t *testing.T, target Target) {
	s := target.Ann(t).Start("loop for ever")
	if failed := s.Failed(); failed.Status != event.StatusError || !strings.Contains(failed.Message, "StepsPerTurn") {
		t.Errorf("got %+v", failed)
	}
	s.Usable()
}

// modelFaults: a fault that may pass is tried again, one that does not ends the turn.
func modelFaults(t *testing.T, target Target) {
	s := target.Ann(t).Start("throttled")
	log := s.Completed()
	if n := len(all[event.StepRestarted](log)); n != 1 {
		t.Errorf("%d restarts; want 1", n)
	}
	if _, whole := texts(log); whole != "ok" {
		t.Errorf("the reply is %q", whole)
	}
	s.Say("refused")
	if diff := cmp.Diff(event.StatusError, s.Failed().Status); diff != "" {
		t.Error(diff)
	}
	s.Usable()
}
