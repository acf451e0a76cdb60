// Package auth says who sends a request.
//
// A [Policy] looks at a request and names its [Principal], or leaves it to the next policy of a [Chain]. Sessions belong to
// principals: two callers that must not see each other's sessions need two principals.
package auth

import (
	"context"
	"net/http"
)

// Principal names a caller: local, anonymous, or kind:name. The empty Principal is nobody.
type Principal string

// The principals without a name of their own.
const (
	Local    Principal = "local"     // whoever works on this machine, see [Loopback]
	Everyone Principal = "anonymous" // whoever comes, see [Anonymous]
)

// Policy names the caller of a request, or returns false if it does not know the caller. Policies are safe for concurrent use.
type Policy func(r *http.Request) (Principal, bool)

// Chain returns the policy that asks each of the given ones in turn. An empty chain admits nobody.
func Chain(policies ...Policy) Policy {
	return func(r *http.Request) (Principal, bool) {
		for _, p := range policies {
			if who, ok := p(r); ok {
				return who, true
			}
		}
		return "", false
	}
}

// Anonymous returns the policy that admits every request, as [Everyone].
func Anonymous() Policy {
	return func(*http.Request) (Principal, bool) { return Everyone, true }
}

type contextKey struct{}

// NewContext returns a context that carries the caller of a request.
func NewContext(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, who)
}

// FromContext returns the caller that ctx carries, false if it carries none.
func FromContext(ctx context.Context) (Principal, bool) {
	who, ok := ctx.Value(contextKey{}).(Principal)
	return who, ok
}
