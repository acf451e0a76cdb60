// Package clock lets code that reads or waits for time be tested without waiting.
// Production code takes a [Clock]; tests run it under testing/synctest with [System] or freeze it with [Fixed].
package clock

import (
	"context"
	"time"
)

// A Clock tells the time and waits. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// After returns a channel that receives once d has passed, and a function that gives the timer up.
	After(d time.Duration) (c <-chan time.Time, stop func() bool)
}

// System is the machine's own clock.
type System struct{}

// Now returns time.Now.
func (System) Now() time.Time { return time.Now() }

// After starts a timer.
func (System) After(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

// Fixed is a clock that stands still at a given time; its After fires at once.
type Fixed time.Time

// Now returns the fixed time.
func (f Fixed) Now() time.Time { return time.Time(f) }

// After returns a channel that is ready at once.
func (f Fixed) After(time.Duration) (<-chan time.Time, func() bool) {
	c := make(chan time.Time, 1)
	c <- time.Time(f)
	return c, func() bool { return false }
}

// Sleep waits for d or for the end of ctx, and returns the cause of that end.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	done, stop := c.After(d)
	defer stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
