package suite

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
)

// Waiting returns the ids of the calls that wait for approval, once there are n.
func (s *Session) Waiting(n int) []string {
	s.t.Helper()
	var list struct {
		Approvals []struct {
			CallID string `json:"callId"`
		} `json:"approvals"`
	}
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
		a := s.Do("GET", s.Path("/approvals"), "")
		if err := json.Unmarshal([]byte(a.Raw), &list); err != nil || a.Status != 200 {
			s.t.Fatalf("the approvals: %d %.500s", a.Status, a.Raw)
		}
		if len(list.Approvals) == n {
			ids := make([]string, n)
			for i, w := range list.Approvals {
				ids[i] = w.CallID
			}
			return ids
		}
	}
	s.t.Fatalf("%d calls wait for approval; want %d: %+v", len(list.Approvals), n, types(s.Events("")))
	return nil
}

// Decide answers an approval.
func (s *Session) Decide(callID, decision, note string) Answer {
	s.t.Helper()
	return s.post(s.Path("/approvals/"+callID), map[string]any{"decision": decision, "note": note})
}

// decided decides, which has to be the first decision.
func (s *Session) decided(callID, decision, note string) {
	s.t.Helper()
	if a := s.Decide(callID, decision, note); a.Status != 200 || a.Text("decision") != decision || a.Field("repeated") != false {
		s.t.Errorf("%s: got %d %.500s", decision, a.Status, a.Raw)
	}
}

// approvals: a call runs when it was approved, and not before; the turn waits, and its session and others stay usable.
func approvals(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("promote it")
	id := s.Waiting(1)[0]
	if list := ann.Do("GET", "/v1/sessions?limit=1000", ""); strings.Count(list.Raw, `"status":"running"`) == 0 {
		t.Errorf("the session that waits does not run: %.500s", list.Raw)
	}
	if results := Results(s.Events("")); len(results) != 1 || results[0].ToolName != "add" {
		t.Errorf("before the approval: %+v", results)
	}
	if ran := ann.Notes(); ran[id] != 0 {
		t.Error("it ran before the approval")
	}
	s.Decide("call_nobody", "approve", "").Refused("an unknown call", 404, "not_found")
	s.Decide(id, "perhaps", "").Refused("an unknown decision", 400, "invalid_request")
	s.decided(id, "approve", "go on")
	log := s.Completed()
	for _, r := range Results(log) {
		if r.CallID == id && !strings.HasPrefix(string(r.Output), `"promoted 7f3 for `) {
			t.Errorf("the result: %s", r.Output)
		}
	}
	if ran := ann.Notes(); ran[id] != 1 {
		t.Errorf("it ran %d times", ran[id])
	}
	if a := s.Decide(id, "approve", "again"); a.Status != 200 || a.Field("repeated") != true || a.Text("note") != "go on" {
		t.Errorf("the same again: %d %.500s", a.Status, a.Raw)
	}
	s.Decide(id, "deny", "").Refused("another decision", 409, "already_decided")
	asked, resolved := all[event.ApprovalRequested](log), all[event.ApprovalResolved](log)
	if len(asked) != 1 || string(asked[0].Args) != `{"build":"7f3"}` || len(resolved) != 1 || resolved[0].Decision != "approve" || resolved[0].Note != "go on" || resolved[0].By == "" {
		t.Errorf("asked %+v, resolved %+v", asked, resolved)
	}
	s.Usable()
}

// denials: the model reads that a call was denied, and why.
func denials(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("promote it")
	id := s.Waiting(1)[0]
	s.decided(id, "deny", "not on a Friday")
	for _, r := range Results(s.Completed()) {
		if r.CallID == id && (!r.IsError || !r.Rejected || !strings.Contains(string(r.Output), "not on a Friday")) {
			t.Errorf("the result: %+v", r)
		}
	}
	if ran := ann.Notes(); ran[id] != 0 {
		t.Error("it ran")
	}
	s.Decide(id, "approve", "").Refused("another decision", 409, "already_decided")
}

// approvalsInAnyOrder: each call runs as soon as it was approved, whichever others wait.
func approvalsInAnyOrder(t *testing.T, target Target) {
	ann := target.Ann(t)
	for _, order := range [][]int{{2, 0, 1}, {1, 2, 0}} {
		s := ann.Start("trio")
		ids := s.Waiting(3)
		for i, which := range order {
			s.decided(ids[which], "approve", "")
			if i == 0 {
				s.until(func(e event.Event) bool {
					d, err := event.Decode[event.ActionResult](e)
					return err == nil && d.CallID == ids[which]
				})
				if left := s.Waiting(2); slices.Contains(left, ids[which]) {
					t.Errorf("%v wait", left)
				}
			}
		}
		var outputs []string
		for _, r := range Results(s.Completed()) {
			outputs = append(outputs, string(r.Output)[:len(`"promoted a`)])
		}
		slices.Sort(outputs)
		if d := cmp.Diff([]string{`"promoted a`, `"promoted b`, `"promoted c`}, outputs); d != "" {
			t.Errorf("%v: %s", order, d)
		}
	}
}

// until follows the stream until an event that is meant.
func (s *Session) until(meant func(event.Event) bool) {
	s.t.Helper()
	s.follow(0, func(e event.Event) bool { return !meant(e) })
}

// interruptedApprovals: a turn that is interrupted or stopped while it waits is over at once, and its calls are cancelled.
func interruptedApprovals(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("trio")
	ids := s.Waiting(3)
	s.Usable()
	log := s.Events("")
	Check(t, log)
	for _, r := range all[event.ApprovalResolved](log) {
		if r.Decision != "cancelled" {
			t.Errorf("%+v", r)
		}
	}
	s.Decide(ids[0], "approve", "").Refused("after the interruption", 409, "already_decided")
	s.Waiting(0)
	s.Say("promote it")
	id := s.Waiting(1)[0]
	s.stopped("")
	s.Decide(id, "approve", "").Refused("after the stop", 409, "already_decided")
	s.Usable()
	for id, n := range ann.Notes() {
		if slices.Contains(ids, id) && n > 0 {
			t.Errorf("call %s ran", id)
		}
	}
}

// otherApprovers: who may decide is for the tool to say; the call runs for who asked.
func otherApprovers(t *testing.T, target Target) {
	target.twoPrincipals(t)
	ann, bob := target.Ann(t), target.client(t, "bob")
	s := ann.Start("promote it")
	id := s.Waiting(1)[0]
	theirs := &Session{Client: bob, ID: s.ID}
	theirs.Decide(id, "approve", "").Refused("a foreigner", 403, "forbidden")
	bob.Do("GET", s.Path("/approvals"), "").Refused("a foreigner who looks", 403, "forbidden")
	s.decided(id, "deny", "")
	s.Completed()

	s = ann.Start("release it")
	id = s.Waiting(1)[0]
	theirs = &Session{Client: bob, ID: s.ID}
	if ids := theirs.Waiting(1); ids[0] != id {
		t.Errorf("who decides sees %v", ids)
	}
	s.Decide(id, "approve", "").Refused("the owner", 403, "forbidden")
	theirs.decided(id, "approve", "")
	log := s.Completed()
	for _, r := range Results(log) {
		if r.IsError || !strings.HasSuffix(string(r.Output), `for bearer:ann"`) {
			t.Errorf("%+v", r)
		}
	}
	if resolved := all[event.ApprovalResolved](log); len(resolved) != 1 || resolved[0].By != "bearer:bob" {
		t.Errorf("resolved: %+v", resolved)
	}
}

// expiredApprovals: a call that nobody decides about in its time does not run, and the model reads that.
func expiredApprovals(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("hasty")
	s.Until(event.TypeApprovalRequested)
	begin := time.Now()
	s.patient(target.Expiry)
	log := s.Completed()
	t.Logf("the turn went on after %s", time.Since(begin).Round(100*time.Millisecond))
	resolved := all[event.ApprovalResolved](log)
	if len(resolved) != 1 || resolved[0].Decision != "expired" {
		t.Fatalf("resolved: %+v", resolved)
	}
	for _, r := range Results(log) {
		if r.CallID == resolved[0].CallID && (!r.IsError || !r.Rejected) {
			t.Errorf("%+v", r)
		}
	}
}

// patient waits until the newest turn has ended, longer than other cases do.
func (s *Session) patient(most time.Duration) {
	s.t.Helper()
	for begin := time.Now(); time.Since(begin) < most; time.Sleep(200 * time.Millisecond) {
		if isEnd(ending(s.Events(""), s.TurnID)) {
			return
		}
	}
}

// gatedScript: a script waits for its approval as any other tool does.
func gatedScript(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("stamp it")
	id := s.Waiting(1)[0]
	stamped := func() object {
		t.Helper()
		return ann.call("inspect", object{"path": "stamp.txt"}, "sessionId", s.ID).called("inspect").(object)
	}
	if got := stamped(); got["missing"] != true {
		t.Errorf("before the approval: %v", got)
	}
	s.decided(id, "approve", "")
	s.Completed()
	if got := stamped(); got["text"] != "stamped" {
		t.Errorf("after it: %v", got)
	}
}

// fiftyDecisions: the same call is approved fifty times at once, beside fifty who deny it: one side wins, and it runs at most once.
func fiftyDecisions(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("promote it")
	id := s.Waiting(1)[0]
	yes := s.storm(id, func(int) string { return "approve" })
	if yes[200] != 50 {
		t.Errorf("the same decision: %v", yes)
	}
	s.Completed()
	if ran := ann.Notes(); ran[id] != 1 {
		t.Errorf("it ran %d times", ran[id])
	}
	s = ann.Start("promote it")
	id = s.Waiting(1)[0]
	both := s.storm(id, func(i int) string { return []string{"approve", "deny"}[i%2] })
	if both[200] != 25 || both[409] != 25 {
		t.Errorf("two decisions: %v", both)
	}
	log := s.Completed()
	resolved := all[event.ApprovalResolved](log)
	want := map[string]int{"approve": 1, "deny": 0}
	if len(resolved) != 1 || ann.Notes()[id] != want[resolved[0].Decision] {
		t.Errorf("resolved %+v, ran %d times", resolved, ann.Notes()[id])
	}
}

// storm decides fifty times at once and returns how often each status was the answer.
func (s *Session) storm(id string, decision func(int) string) map[int]int {
	s.t.Helper()
	var mu sync.Mutex
	got := make(map[int]int)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			a, err := s.try("POST", s.Path("/approvals/"+id), encode(map[string]any{"decision": decision(i)}))
			if err != nil {
				s.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[a.Status]++
		})
	}
	wg.Wait()
	return got
}
