package turn

import (
	"context"
	"time"
)

type yieldKey struct{}

// WithYield returns a context whose steps ask yield, before each piece of work, whether to hand the turn back with Continue
// instead: because the time of the invocation may not be enough for it, or because the process is about to end. Need is
// what the piece may take at most, 0 if that is not known. yield must be safe for concurrent use.
func WithYield(ctx context.Context, yield func(need time.Duration) bool) context.Context {
	return context.WithValue(ctx, yieldKey{}, yield)
}

// ShouldYield reports whether a step should hand the turn back now rather than begin a piece of work that may take as long
// as need.
func ShouldYield(ctx context.Context, need time.Duration) bool {
	yield, ok := ctx.Value(yieldKey{}).(func(time.Duration) bool)
	return ok && yield(need)
}
