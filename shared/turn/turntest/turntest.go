// Package turntest is the conformance suite of turn runners. Every adapter of package turn passes it.
package turntest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

// Harness makes runners for the suite.
type Harness struct {
	// Run returns a runner that runs step for the turns of sessions made by NewTurn, until the test ends.
	Run func(t *testing.T, step turn.Step) turn.Runner
	// Sessions has the turns.
	Sessions *session.Store
	// NewTurn records a session with an accepted turn that was not started.
	NewTurn func(t *testing.T) turn.Ref
	// End records the end of a turn, as Step does before it returns turn.Done.
	End func(ctx context.Context, ref turn.Ref) error
	// Detached says that steps run where Stop cannot reach them: their contexts do not end, the log stops them.
	Detached bool
}

// Run runs the suite. newHarness is called for each case.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Run("a started turn is stepped until it is done", func(t *testing.T) { stepped(t, newHarness(t)) })
	t.Run("starting a turn again is harmless", func(t *testing.T) { again(t, newHarness(t)) })
	t.Run("a step that fails is tried again", func(t *testing.T) { retried(t, newHarness(t)) })
	t.Run("a turn that was accepted and not started is found", func(t *testing.T) { found(t, newHarness(t)) })
	t.Run("a stopped turn's context ends", func(t *testing.T) { stopped(t, newHarness(t)) })
	t.Run("a turn that waits goes on when it is resumed", func(t *testing.T) { resumed(t, newHarness(t)) })
	t.Run("turns do not wait for each other", func(t *testing.T) { apart(t, newHarness(t)) })
}

func stepped(t *testing.T, h Harness) {
	steps, done := 0, make(chan struct{})
	r := h.Run(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
		if steps++; steps < 3 {
			return turn.Continue, nil
		}
		defer close(done)
		return turn.Done, h.End(ctx, ref)
	})
	begin(t, r, h.NewTurn(t))
	<-done
	if steps != 3 {
		t.Errorf("%d steps; want 3", steps)
	}
}

func again(t *testing.T, h Harness) {
	var mu sync.Mutex
	runs, began, release, done := 0, make(chan struct{}, 8), make(chan struct{}), make(chan struct{}, 8)
	r := h.Run(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
		mu.Lock()
		runs++
		mu.Unlock()
		began <- struct{}{}
		<-release
		defer func() { done <- struct{}{} }()
		return turn.Done, h.End(ctx, ref)
	})
	ref := h.NewTurn(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { _ = r.Start(t.Context(), ref) })
	}
	wg.Wait()
	<-began
	close(release)
	<-done
	mu.Lock()
	defer mu.Unlock()
	if runs != 1 {
		t.Errorf("the turn ran %d times; want 1", runs)
	}
}

func retried(t *testing.T, h Harness) {
	n, done := 0, make(chan struct{})
	r := h.Run(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
		if n++; n < 3 {
			return "", fmt.Errorf("fault %d", n)
		}
		defer close(done)
		return turn.Done, h.End(ctx, ref)
	})
	begin(t, r, h.NewTurn(t))
	<-done
}

func found(t *testing.T, h Harness) {
	ref, done := h.NewTurn(t), make(chan turn.Ref, 1)
	h.Run(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
		err := h.End(ctx, ref)
		done <- ref
		return turn.Done, err
	})
	if got := <-done; got != ref {
		t.Errorf("found %v; want %v", got, ref)
	}
}

func stopped(t *testing.T, h Harness) {
	began, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := h.Run(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
		close(began)
		select {
		case <-ctx.Done():
		case <-release:
		}
		close(ended)
		return turn.Done, h.End(context.WithoutCancel(ctx), ref)
	})
	ref := h.NewTurn(t)
	begin(t, r, ref)
	<-began
	if err := r.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if h.Detached {
		close(release)
	}
	<-ended
	if err := r.Stop(t.Context(), ref); err != nil {
		t.Errorf("stopping a turn again: %v", err)
	}
}

func resumed(t *testing.T, h Harness) {
	steps, parked, done := 0, make(chan struct{}), make(chan struct{})
	r := h.Run(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
		if steps++; steps > 1 {
			defer close(done)
			return turn.Done, h.End(ctx, ref)
		}
		defer close(parked)
		return turn.Await, Park(ctx, h.Sessions, ref)
	})
	ref := h.NewTurn(t)
	begin(t, r, ref)
	<-parked
	for _, call := range []string{"second", "second"} { // one is enough for the turn to go on, and the same again does no harm
		d, err := h.Sessions.Decide(t.Context(), session.Decision{SessionID: ref.SessionID, CallID: call, Decision: event.Approve, By: "local"})
		if err == nil {
			err = r.Resume(t.Context(), ref, d.Woken, d.Waited...)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-done
	}
}

// Park records that a turn waits for two calls, first and second, for an hour, as Step does before it returns turn.Await.
func Park(ctx context.Context, s *session.Store, ref turn.Ref) error {
	w, err := s.Open(ctx, ref.SessionID, ref.TurnID)
	if err == nil {
		err = w.Skip(ctx)
	}
	if err == nil {
		until := time.Now().Add(time.Hour)
		_, err = w.Ask(ctx, nil, event.ApprovalRequested{CallID: "first", ExpiresAt: until}, event.ApprovalRequested{CallID: "second", ExpiresAt: until})
	}
	if err == nil {
		_, err = w.Park(ctx)
	}
	return err
}

func apart(t *testing.T, h Harness) {
	first, second := h.NewTurn(t), h.NewTurn(t)
	release, done := make(chan struct{}), make(chan turn.Ref, 2)
	r := h.Run(t, func(ctx context.Context, ref turn.Ref) (turn.Outcome, error) {
		if ref == first {
			<-release
		}
		err := h.End(ctx, ref)
		done <- ref
		return turn.Done, err
	})
	begin(t, r, first)
	begin(t, r, second)
	if got := <-done; got != second {
		t.Errorf("%v ended first; want the one that does not wait", got)
	}
	close(release)
	<-done
}

func begin(t *testing.T, r turn.Runner, ref turn.Ref) {
	t.Helper()
	if err := r.Start(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
}
