package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
)

var errGone = errors.New("gone")

func TestSystemTellsAndWaitsForTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		done, stop := clock.System{}.After(time.Minute)
		if got := <-done; !got.Equal(start.Add(time.Minute)) || !(clock.System{}).Now().Equal(got) {
			t.Errorf("the timer fired at %v and it is %v, want a minute after %v", got, clock.System{}.Now(), start)
		}
		if stop() {
			t.Error("a timer that fired was still stopped")
		}
	})
}

func TestStoppedTimerDoesNotFire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done, stop := clock.System{}.After(time.Minute)
		if !stop() {
			t.Error("a waiting timer was not stopped")
		}
		select {
		case <-done:
			t.Error("it fired")
		case <-time.After(time.Hour):
		}
	})
}

func TestFixedStandsStillAndDoesNotWait(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	fixed := clock.Fixed(at)
	done, stop := fixed.After(time.Hour)
	select {
	case got := <-done:
		if !got.Equal(at) {
			t.Errorf("it fired at %v, want %v", got, at)
		}
	default:
		t.Error("it waits")
	}
	if stop() || !fixed.Now().Equal(at) {
		t.Errorf("it is %v, want %v and nothing to stop", fixed.Now(), at)
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sleep, end time.Duration // end of the context; 0: before
		slept      time.Duration
		err        error
	}{
		"the time passes":                    {time.Minute, time.Hour, time.Minute, nil},
		"the context ends first":             {time.Hour, time.Minute, time.Minute, errGone},
		"the context has ended":              {time.Hour, 0, 0, errGone},
		"no time":                            {0, time.Hour, 0, nil},
		"less than no time":                  {-time.Second, time.Hour, 0, nil},
		"no time, but the context has ended": {0, 0, 0, errGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if test.end == 0 {
					cancel(errGone)
				} else {
					defer time.AfterFunc(test.end, func() { cancel(errGone) }).Stop()
				}
				start := time.Now()
				err := clock.Sleep(ctx, clock.System{}, test.sleep)
				if slept := time.Since(start); slept != test.slept || !errors.Is(err, test.err) {
					t.Errorf("slept %v, %v; want %v, %v", slept, err, test.slept, test.err)
				}
			})
		})
	}
}
