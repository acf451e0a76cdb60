package turn

import "context"

type yieldKey struct{}

// WithYield returns a context whose steps ask yield, between two pieces of work, whether to hand the turn back with
// Continue: because the time of the invocation runs out, or because the process is about to end. yield must be safe for
// concurrent use.
func WithYield(ctx context.Context, yield func() bool) context.Context {
	return context.WithValue(ctx, yieldKey{}, yield)
}

// ShouldYield reports whether a step should hand the turn back now.
func ShouldYield(ctx context.Context) bool {
	yield, ok := ctx.Value(yieldKey{}).(func() bool)
	return ok && yield()
}
