package e2e_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

// TestTwoProcessesDecide: a call is approved fifty times at once at two hosts that share their state: it runs once, whichever runs it.
func TestTwoProcessesDecide(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	one := serve(t, "--dir", workshop, "--state-root", state).target("workshop")
	two := serve(t, "--dir", workshop, "--state-root", state).target("workshop")
	for range 5 {
		s := one.Ann(t).Start("promote it")
		id := s.Waiting(1)[0]
		hosts := []*suite.Session{s, two.Resume(t, s)}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if a := hosts[i%2].Decide(id, "approve", ""); a.Status != 200 {
					t.Errorf("got %d %s", a.Status, a.Raw)
				}
			})
		}
		wg.Wait()
		log := s.Completed()
		resolved := 0
		for _, e := range log {
			if e.Type == event.TypeApprovalResolved {
				resolved++
			}
		}
		if ran := s.Notes()[id]; ran != 1 || resolved != 1 {
			t.Errorf("it ran %d times after %d decisions", ran, resolved)
		}
		s.Usable()
	}
}

// TestKilledAroundAnApproval: a host is killed while a call waits, right after it was approved, and while it runs. What was approved runs once
// at most, and is never lost.
func TestKilledAroundAnApproval(t *testing.T) {
	t.Parallel()
	for name, approve := range map[string]bool{"while it waits": false, "once it is approved": true} {
		state := t.TempDir()
		args := []string{"--dir", workshop, "--state-root", state}
		host := serve(t, args...)
		s := host.target("workshop").Ann(t).Start("promslow")
		id := s.Waiting(1)[0]
		if approve {
			s.Decide(id, "approve", "")
		}
		host.signal(syscall.SIGKILL)
		s = serve(t, args...).target("workshop").Resume(t, s)
		if !approve {
			if waiting := s.Waiting(1); waiting[0] != id {
				t.Errorf("%s: %v wait", name, waiting)
			}
			s.Decide(id, "approve", "")
		}
		results := suite.Results(s.Completed())
		ran := s.Notes()[id]
		lost := len(results) == 1 && strings.Contains(string(results[0].Output), "outcome unknown")
		if len(results) != 1 || ran > 1 || ran == 0 && !lost || !approve && (ran != 1 || lost) {
			t.Errorf("%s: it ran %d times: %+v", name, ran, results)
		}
		s.Usable()
	}
}
