package auth_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/secret"
	"github.com/bdk-lambda/bdk/shared/secret/memsecret"
)

// source is a secret whose reads may fail.
type source struct {
	mu       sync.Mutex
	versions []secret.Values
	err      error
}

func (s *source) set(err error, versions ...secret.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions, s.err = versions, err
}

func (s *source) get(context.Context) ([]secret.Values, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions, s.err
}

// admits compares whom p admits, by token; "" is nobody.
func admits(t *testing.T, p auth.Policy, want map[string]auth.Principal) {
	t.Helper()
	for token, who := range want {
		got, ok := p(request("GET", header("Authorization", "Bearer "+token)))
		if got != who || ok != (who != "") {
			t.Errorf("token %q: got %q, %v; want %q", token, got, ok, who)
		}
	}
}

func TestSecretAdmitsTheTokensOfEveryVersion(t *testing.T) {
	t.Parallel()
	s := &source{versions: []secret.Values{
		{"bearer:ci": "new", "bearer:ops": "moved", "KEY": "variable"},
		{"bearer:ci": "old", "bearer:web-1": "moved", "bearer:gone": "still", "bearer:bad": "", "bearer:worse": "a b"},
	}}
	p, err := auth.Secret(t.Context(), s.get)
	if err != nil {
		t.Fatal(err)
	}
	admits(t, p, map[string]auth.Principal{
		"new": "bearer:ci", "old": "bearer:ci", "still": "bearer:gone", "moved": "bearer:ops",
		"variable": "", "KEY": "", "bearer:ci": "", "ne": "", "newer": "", "": "", "a b": "", "NEW": "",
	})
	if who, ok := p(request("GET", nil)); ok {
		t.Errorf("a request without a token was admitted as %s", who)
	}
	if who, ok := p(request("GET", header("Authorization", "Bearer new", "Authorization", "Bearer new"))); ok {
		t.Errorf("a request with two tokens was admitted as %s", who)
	}
}

func TestSecretFollowsChanges(t *testing.T) {
	t.Parallel()
	var d memsecret.Driver
	store := secret.New(&d, secret.Options{TTL: 1}) // every read is a new one
	d.Put(`{"bearer:ci":"t1"}`)
	p, err := auth.Secret(t.Context(), store.Get)
	if err != nil {
		t.Fatal(err)
	}
	admits(t, p, map[string]auth.Principal{"t1": "bearer:ci", "t2": ""})
	d.Put(`{"bearer:ci":"t2"}`)
	admits(t, p, map[string]auth.Principal{"t1": "bearer:ci", "t2": "bearer:ci"})
	d.Put(`{"bearer:ci":"t3"}`)
	admits(t, p, map[string]auth.Principal{"t1": "", "t2": "bearer:ci", "t3": "bearer:ci"})
}

func TestSecretFailsIfItCannotBeReadAtFirst(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	if p, err := auth.Secret(t.Context(), (&source{err: away}).get); !errors.Is(err, away) || p != nil {
		t.Errorf("got error %v, a policy: %v", err, p != nil)
	}
	var d memsecret.Driver
	d.Put(`{"bearer:CI":"hunter2"}`)
	if _, err := auth.Secret(t.Context(), secret.New(&d, secret.Options{}).Get); err == nil {
		t.Error("a secret of another form: no error")
	}
}

func TestSecretKeepsItsTokensWhileReadingFails(t *testing.T) {
	t.Parallel()
	s := &source{versions: []secret.Values{{"bearer:ci": "t1"}}}
	p, err := auth.Secret(t.Context(), s.get)
	if err != nil {
		t.Fatal(err)
	}
	s.set(errors.New("away"))
	admits(t, p, map[string]auth.Principal{"t1": "bearer:ci", "t2": ""})
	s.set(nil, secret.Values{"bearer:ci": "t2"})
	admits(t, p, map[string]auth.Principal{"t1": "", "t2": "bearer:ci"})
}

func TestSecretTakesManyRequestsWhileItChanges(t *testing.T) {
	t.Parallel()
	s := &source{versions: []secret.Values{{"bearer:ci": "t", "bearer:a": "x"}}}
	p, err := auth.Secret(t.Context(), s.get)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				admits(t, p, map[string]auth.Principal{"t": "bearer:ci", "u": ""})
			}
		})
	}
	for i := range 200 {
		s.set(nil, secret.Values{"bearer:ci": "t", "bearer:a": string(rune('A' + i%26))})
	}
	wg.Wait()
}

func TestIAM(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:sts::123456789012:assumed-role/Ops/alice"
	signed := func(arn string) func(*http.Request) {
		return func(r *http.Request) { *r = *r.WithContext(auth.WithIAM(r.Context(), arn)) }
	}
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
		want   auth.Principal
	}{
		{"a verified identity", signed(arn), "iam:" + arn},
		{"an identity of another partition", signed("arn:aws-cn:iam::1:user/a"), "iam:arn:aws-cn:iam::1:user/a"},
		{"no identity", nil, ""},
		{"an empty identity", signed(""), ""},
		{"what is no ARN", signed("null"), ""},
		{"headers say so only", header("Authorization", "AWS4-HMAC-SHA256 Credential=x", "X-Amzn-Iam-Arn", arn, "X-Forwarded-User", arn), ""},
		{"another value of the context", func(r *http.Request) { *r = *r.WithContext(auth.NewContext(r.Context(), "iam:arn:x")) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if who, ok := auth.IAM()(request("GET", tc.change)); who != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", who, ok, tc.want)
			}
		})
	}
}

func BenchmarkSecret(b *testing.B) {
	s := &source{versions: []secret.Values{{"bearer:ci": "t1", "bearer:ops": "t2", "KEY": "v"}, {"bearer:ci": "t0", "KEY": "v"}}}
	p, err := auth.Secret(b.Context(), s.get)
	if err != nil {
		b.Fatal(err)
	}
	r := request("GET", header("Authorization", "Bearer t1"))
	b.ReportAllocs()
	for b.Loop() {
		p(r)
	}
}
