package auth

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/bdk-lambda/bdk/shared/secret"
)

// Secret returns the policy that admits who sends one of the bearer tokens of a deployment's secret, see package secret. A
// token of any version that get returns is good, so callers keep their access while a token is replaced; if versions give
// one token to different principals, the first one counts.
//
// It reads the secret at once and fails with the error of get, so a host that opens never takes a caller for unknown only
// because it could not read. Afterwards each request with a token calls get, which should be [secret.Store.Get] or as quick; while
// that fails, the last versions stay in force.
func Secret(ctx context.Context, get func(context.Context) ([]secret.Values, error)) (Policy, error) {
	versions, err := get(ctx)
	if err != nil {
		return nil, err
	}
	t := &secretTokens{versions: versions, known: compile(versions)}
	return func(r *http.Request) (Principal, bool) {
		token, ok := presented(r.Header)
		if !ok {
			return "", false
		}
		if versions, err := get(r.Context()); err == nil {
			t.update(versions)
		}
		return match(t.get(), sha256.Sum256([]byte(token)))
	}, nil
}

// secretTokens are the tokens of the versions that were seen last.
type secretTokens struct {
	mu       sync.Mutex
	versions []secret.Values
	known    []bearerToken
}

func (t *secretTokens) update(versions []secret.Values) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.EqualFunc(versions, t.versions, maps.Equal[secret.Values, secret.Values]) {
		t.versions, t.known = versions, compile(versions)
	}
}

func (t *secretTokens) get() []bearerToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

// compile returns the tokens of versions, each once. Values that are no tokens are harmless: presented returns none such.
func compile(versions []secret.Values) []bearerToken {
	var known []bearerToken
	for _, values := range versions {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			name, ok := strings.CutPrefix(key, secret.BearerPrefix)
			sum := sha256.Sum256([]byte(values[key]))
			if !ok || slices.ContainsFunc(known, func(k bearerToken) bool { return k.sum == sum }) {
				continue
			}
			known = append(known, bearerToken{sum, Principal("bearer:" + name)})
		}
	}
	return known
}
