package suite

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/event"
)

func isEnd(e event.Event) bool {
	return e.Type == event.TypeTurnCompleted || e.Type == event.TypeTurnFailed
}

// ending returns the event that ended a turn.
func ending(log []event.Event, turnID string) event.Event {
	for _, e := range log {
		if e.TurnID == turnID && isEnd(e) {
			return e
		}
	}
	return event.Event{}
}

// Check checks what holds for every log: indexes without gaps, one end of each turn, and one result of each call, except of
// those that a stop has cut off.
func Check(t *testing.T, log []event.Event) {
	t.Helper()
	ends, open := map[string]int{}, map[string]string{} // the turn of a call, by id
	for i, e := range log {
		if e.Index != int64(i) {
			t.Fatalf("event %d has index %d", i, e.Index)
		}
		if isEnd(e) {
			if ends[e.TurnID]++; ends[e.TurnID] > 1 {
				t.Errorf("turn %s ended twice", e.TurnID)
			}
		} else if e.TurnID != "" && ends[e.TurnID] > 0 {
			t.Errorf("event %d is of turn %s, which has ended", i, e.TurnID)
		}
		if d, err := event.Decode[event.ActionsRequested](e); err == nil {
			for _, c := range d.Calls {
				open[c.CallID] = e.TurnID
			}
		}
		if d, err := event.Decode[event.ActionResult](e); err == nil {
			if open[d.CallID] != e.TurnID {
				t.Errorf("call %s has a result too many", d.CallID)
			}
			delete(open, d.CallID)
		}
		if e.Type == event.TypeTurnCompleted && slices.Contains(slices.Collect(maps.Values(open)), e.TurnID) {
			t.Errorf("turn %s was completed without a result of each call: %v", e.TurnID, open)
		}
	}
}

// Results returns the results of a log's calls.
func Results(log []event.Event) []event.ActionResult { return all[event.ActionResult](log) }

// Writes checks the results of a turn with the calls of "note it": each write that is told as done ran once, one whose
// outcome is told as unknown at most once. It returns how many are unknown.
func Writes(t *testing.T, log []event.Event, ran map[string]int) (unknown int) {
	t.Helper()
	writes := 0
	for _, r := range Results(log) {
		lost := strings.Contains(string(r.Output), "outcome unknown")
		switch {
		case r.IsError && !lost:
			t.Errorf("%s failed: %s", r.ToolName, r.Output)
		case r.ToolName != "note":
			continue
		case lost:
			unknown++
		case ran[r.CallID] != 1:
			t.Errorf("write %s is told as done and ran %d times", r.CallID, ran[r.CallID])
		}
		if writes++; ran[r.CallID] > 1 {
			t.Errorf("write %s ran %d times", r.CallID, ran[r.CallID])
		}
	}
	if writes != 6 {
		t.Errorf("%d writes; want 6", writes)
	}
	return unknown
}

// all returns the data of the events of one type.
func all[T event.Data](log []event.Event) []T {
	var found []T
	for _, e := range log {
		if d, err := event.Decode[T](e); err == nil {
			found = append(found, d)
		}
	}
	return found
}

// texts returns the joined deltas and the joined whole texts of a log.
func texts(log []event.Event) (deltas, whole string) {
	var d, w strings.Builder
	for _, m := range all[event.MessageAppended](log) {
		d.WriteString(m.Text)
	}
	for _, m := range all[event.MessageCompleted](log) {
		w.WriteString(m.Text)
	}
	return d.String(), w.String()
}

func types(log []event.Event) []string {
	names := make([]string, len(log))
	for i, e := range log {
		names[i] = string(e.Type)
	}
	return names
}
