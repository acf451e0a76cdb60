package sfnturn_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
)

// A parking is a deployment whose first step parks calls.
type parking struct {
	*world

	park func(n int, in sfnturn.AwaitInput) error // what the await function does the nth time after it parked; nil: nothing

	mu     sync.Mutex
	parked []sfnturn.AwaitInput
}

func newParking(t *testing.T, opts sfntest.Options, outcomes ...string) *parking {
	t.Helper()
	p := &parking{}
	await := func(ctx context.Context, in sfnturn.AwaitInput) (struct{}, error) {
		if err := p.tokens.Park(ctx, in); err != nil {
			return struct{}{}, err
		}
		p.mu.Lock()
		p.parked = append(p.parked, in)
		n := len(p.parked)
		p.mu.Unlock()
		if p.park != nil {
			return struct{}{}, p.park(n, in)
		}
		return struct{}{}, nil
	}
	p.world = newWorld(t, steps(&p.world, outcomes...), await, opts)
	return p
}

// all returns what was parked, in order of the calls.
func (p *parking) all() []sfnturn.AwaitInput {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(slices.Values(p.parked), func(a, b sfnturn.AwaitInput) int { return cmp.Compare(a.CallID, b.CallID) })
}

func (p *parking) calls() []string {
	var ids []string
	for _, in := range p.all() {
		ids = append(ids, in.CallID)
	}
	return ids
}

func TestParkedTurnGoesOnWhenEveryCallIsResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t, sfntest.Options{}, "await c1,c2")
		ref := p.begin(t)
		time.Sleep(24 * time.Hour)
		if diff := gocmp.Diff([]string{"c1", "c2"}, p.calls()); diff != "" {
			t.Fatalf("parked (-want +got):\n%s", diff)
		}
		for _, in := range p.all() {
			if in.Ref != ref || in.Token == "" {
				t.Errorf("parked %+v; want turn %v and a token", in, ref)
			}
		}
		if err := p.tokens.Resume(t.Context(), "c2"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if got := p.server.Execution(ref.TurnID).Status; got != "RUNNING" {
			t.Fatalf("%s with a call that is not decided; want RUNNING", got)
		}
		if err := p.tokens.Resume(t.Context(), "c1"); err != nil {
			t.Fatal(err)
		}
		x, err := p.await(t.Context(), ref)
		if err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("%+v, %v; want SUCCEEDED", x, err)
		}
		want := []string{"Step", "Route", "Await", "Park", "Park", "Step", "Route", "Done"}
		if diff := gocmp.Diff(want, x.Transitions); diff != "" {
			t.Errorf("transitions (-want +got):\n%s", diff)
		}
		if got := p.requests.count("SendTaskSuccess"); got != 2 {
			t.Errorf("%d requests for 2 calls", got)
		}
	})
}

func TestParkedTurnGoesOnAfterAWeek(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t, sfntest.Options{}, "await c1,c2")
		ref, begin := p.begin(t), time.Now()
		time.Sleep(time.Hour)
		if err := p.tokens.Resume(t.Context(), "c1"); err != nil {
			t.Fatal(err)
		}
		x, err := p.await(t.Context(), ref)
		if took := time.Since(begin); err != nil || x.Status != "SUCCEEDED" || took < 7*24*time.Hour || took > 7*24*time.Hour+time.Minute {
			t.Errorf("%+v, %v after %s; want SUCCEEDED after a week", x, err, took)
		}
		if err := p.tokens.Resume(t.Context(), "c2"); !errors.Is(err, sfnturn.ErrClosed) {
			t.Errorf("resuming a call whose time is over: %v; want ErrClosed", err)
		}
	})
}

// A call that cannot be parked neither fails the turn nor ends the wait for the others.
func TestOneCallThatCannotBeParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t, sfntest.Options{}, "await bad,c1")
		p.park = func(_ int, in sfnturn.AwaitInput) error {
			if in.CallID == "bad" {
				return errors.New("no")
			}
			return nil
		}
		ref := p.begin(t)
		time.Sleep(time.Hour)
		if got := p.server.Execution(ref.TurnID); got.Status != "RUNNING" || !slices.Contains(got.Transitions, "Closed") {
			t.Fatalf("%+v; want to wait for the other call", got)
		}
		if err := p.tokens.Resume(t.Context(), "c1"); err != nil {
			t.Fatal(err)
		}
		if x, err := p.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("%+v, %v; want SUCCEEDED", x, err)
		}
		if diff := gocmp.Diff([]string{"completed"}, p.ends(t, ref.SessionID)); diff != "" {
			t.Errorf("ends of the turn (-want +got):\n%s", diff)
		}
	})
}

// The await function parked, then died: the machine calls it again with another token and forgets the first.
func TestNewestTokenWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t, sfntest.Options{}, "await c1")
		p.park = func(n int, _ sfnturn.AwaitInput) error {
			if n < 3 {
				return &sfntest.Fault{Name: "Runtime.ExitError"}
			}
			return nil
		}
		ref := p.begin(t)
		time.Sleep(time.Hour)
		tokens := map[string]bool{}
		for _, in := range p.all() {
			tokens[in.Token] = true
		}
		if len(tokens) != 3 {
			t.Fatalf("%d tokens; want 3", len(tokens))
		}
		if err := p.tokens.Resume(t.Context(), "c1"); err != nil {
			t.Fatal(err)
		}
		if x, err := p.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" {
			t.Errorf("%+v, %v; want SUCCEEDED", x, err)
		}
	})
}

// A decision that is faster than the await function is not lost.
func TestResumeWhileTheAwaitFunctionRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t, sfntest.Options{}, "await c1")
		p.park = func(_ int, in sfnturn.AwaitInput) error { return p.tokens.Resume(context.Background(), in.CallID) }
		ref, begin := p.begin(t), time.Now()
		if x, err := p.await(t.Context(), ref); err != nil || x.Status != "SUCCEEDED" || time.Since(begin) > time.Second {
			t.Errorf("%+v, %v after %s; want SUCCEEDED at once", x, err, time.Since(begin))
		}
	})
}

func TestManyParkAtOnce(t *testing.T) {
	t.Parallel()
	store := kv.New(memkv.New(), kv.Options{})
	tokens := sfnturn.NewTokens(nil, store)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := tokens.Park(t.Context(), sfnturn.AwaitInput{CallID: "c", Token: string(rune('a' + i))}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	e, err := store.Get(t.Context(), "await/c")
	if err != nil || len(e.Value) != 1 {
		t.Errorf("kept %q, %v; want one of the tokens", e.Value, err)
	}
	if life := time.Until(e.ExpiresAt); life < 7*24*time.Hour || life > 8*24*time.Hour+time.Minute {
		t.Errorf("the token lives for %s; want at least as long as the wait", life)
	}
}

func TestClosedCalls(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newParking(t, sfntest.Options{Closed: code}, "await c1", "await c2")
				if err := p.tokens.Resume(t.Context(), "c1"); !errors.Is(err, sfnturn.ErrClosed) {
					t.Errorf("before it was parked: %v; want ErrClosed", err)
				}
				ref := p.begin(t)
				time.Sleep(time.Hour)
				if err := p.tokens.Resume(t.Context(), "c1"); err != nil {
					t.Fatal(err)
				}
				if err := p.tokens.Resume(t.Context(), "c1"); !errors.Is(err, sfnturn.ErrClosed) {
					t.Errorf("again: %v; want ErrClosed", err)
				}
				time.Sleep(time.Hour)
				if err := p.runner.Stop(t.Context(), ref); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if err := p.tokens.Resume(t.Context(), "c2"); !errors.Is(err, sfnturn.ErrClosed) {
					t.Errorf("of a turn that was stopped: %v; want ErrClosed", err)
				}
				p.requests.setDown(true)
				if err := p.tokens.Resume(t.Context(), "c2"); bdkerr.CodeOf(err) != bdkerr.Unavailable || errors.Is(err, sfnturn.ErrClosed) {
					t.Errorf("of a service that cannot be reached: %v; want %s", err, bdkerr.Unavailable)
				}
			})
		})
	}
}
