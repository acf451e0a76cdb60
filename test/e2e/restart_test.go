package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

// soon is how long after a start an interrupted or waiting session may take to go on.
const soon = 5 * time.Second

// TestRestart: a session goes on after its host was ended in order, also on a copy of its state elsewhere.
func TestRestart(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	first := serve(t, "--dir", workshop, "--state-root", state)
	parked := first.target("workshop").Ann(t).Start("add it")
	parked.Completed()
	busy := first.target("workshop").Ann(t).Start("slow down")
	busy.Until(event.TypeActionsRequested)
	begin := time.Now()
	if first.signal(syscall.SIGTERM); first.code != 0 {
		t.Errorf("SIGTERM: exit code %d", first.code)
	}
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("SIGTERM took %s", took)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(elsewhere, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{state, elsewhere} {
		host := serve(t, "--dir", workshop, "--state-root", root).target("workshop")
		begin := time.Now()
		again := host.Resume(t, parked)
		again.Say("add more")
		again.Completed()
		if took := time.Since(begin); took > soon {
			t.Errorf("the next turn took %s", took)
		}
		turn := host.Resume(t, busy)
		turn.Completed()
		turn.Usable()
	}
}

// TestKill kills the host at a random moment while a turn with eight calls is accepted, run or over. The next one ends
// the turn exactly once, runs no write again and takes a follow-up.
func TestKill(t *testing.T) {
	build(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var cut, unknown int
	for i := range 20 {
		after := time.Duration(random.Int64N(int64(160 * time.Millisecond)))
		t.Run(fmt.Sprintf("%02d after %s", i, after.Round(time.Millisecond)), func(t *testing.T) {
			c, u := killAfter(t, after)
			cut, unknown = cut+c, unknown+u
		})
	}
	t.Logf("%d turns were cut, %d outcomes unknown", cut, unknown)
	if cut < 5 {
		t.Errorf("only %d turns were cut: the moments are not in the turn", cut)
	}
}

func killAfter(t *testing.T, after time.Duration) (cut, unknown int) {
	t.Helper()
	state := t.TempDir()
	args := []string{"--dir", workshop, "--state-root", state}
	host := serve(t, args...)
	ann := host.target("workshop").Ann(t)
	go func() {
		time.Sleep(after)
		host.signal(syscall.SIGKILL)
	}()
	_, _ = ann.Try("note it", t.Name())
	<-host.ended

	begin := time.Now()
	ann = serve(t, args...).target("workshop").Ann(t)
	answer, err := ann.Try("note it", t.Name()) // the client does not know whether it was accepted
	if err != nil {
		t.Fatal(err)
	}
	s := ann.Started(answer)
	log := s.Completed()
	if took := time.Since(begin); took > soon {
		t.Errorf("the turn ended %s after the start", took)
	}
	if n := ann.Sessions(); n != 1 {
		t.Errorf("there are %d sessions; want 1", n)
	}
	unknown = suite.Writes(t, log, ann.Notes())
	s.Usable()
	for _, e := range log {
		if e.Type == event.TypeTurnStarted && e.At.Before(begin) && log[len(log)-1].At.After(begin) {
			cut = 1
		}
	}
	return cut, unknown
}
