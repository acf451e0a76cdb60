package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/auth"
)

// request returns a request as a program on this machine sends it.
func request(method string, change func(*http.Request)) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:3000/v1/session", http.NoBody)
	r.RemoteAddr = "127.0.0.1:54321"
	if change != nil {
		change(r)
	}
	return r
}

func host(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }

func peer(a string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = a } }

func header(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Add(pairs[i], pairs[i+1])
		}
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		method string
		change func(*http.Request)
		want   bool
	}{
		{"a program on this machine", "POST", nil, true},
		{"over IPv6", "POST", peer("[::1]:9"), true},
		{"over IPv4 in IPv6", "POST", peer("[::ffff:127.0.0.1]:9"), true},
		{"another loopback address", "POST", peer("127.8.9.1:9"), true},
		{"localhost", "POST", host("localhost:3000"), true},
		{"localhost without a port", "POST", host("LocalHost"), true},
		{"a name below localhost", "POST", host("agent.localhost:3000"), true},
		{"the IPv6 address as Host", "POST", host("[::1]:3000"), true},
		{"the IPv6 address without a port", "POST", host("[::1]"), true},
		{"a browser on its own page", "POST", header("Sec-Fetch-Site", "same-origin"), true},
		{"a browser with its own origin", "POST", header("Origin", "http://127.0.0.1:3000"), true},
		{"a link on a foreign page", "GET", header("Sec-Fetch-Site", "cross-site"), true},

		{"another machine", "POST", peer("192.168.1.7:9"), false},
		{"another machine over IPv6", "POST", peer("[2001:db8::1]:9"), false},
		{"no peer", "POST", peer(""), false},
		{"a peer that is not an address", "POST", peer("@"), false},
		{"a foreign name that resolves to this machine", "POST", host("rebind.example.com:3000"), false},
		{"a name that only ends like localhost", "POST", host("evillocalhost"), false},
		{"a name that begins like localhost", "POST", host("localhost.example.com"), false},
		{"a name that begins like an address", "POST", host("127.0.0.1.example.com"), false},
		{"the unspecified address", "POST", host("0.0.0.0:3000"), false},
		{"a private address", "POST", host("10.0.0.1"), false},
		{"no Host", "POST", host(""), false},
		{"a port that is no number", "POST", host("localhost:x@evil.example"), false},
		{"a zone", "POST", host("[::1%25lo]:3000"), false},
		{"a foreign page", "POST", header("Sec-Fetch-Site", "cross-site"), false},
		{"a page of the same site", "POST", header("Sec-Fetch-Site", "same-site"), false},
		{"a foreign origin", "POST", header("Origin", "https://evil.example"), false},
		{"an opaque origin", "POST", header("Origin", "null"), false},
		{"another port's page", "POST", header("Origin", "http://127.0.0.1:4000"), false},
		{"a foreign page that reads", "GET", header("Origin", "https://evil.example"), false},
		{"a foreign page that asks for the headers", "HEAD", header("Origin", "null"), false},
		{"a browser that reads for its own page", "GET", header("Origin", "http://127.0.0.1:3000"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			who, ok := auth.Loopback()(request(tc.method, tc.change))
			if ok != tc.want || ok != (who == auth.Local) {
				t.Errorf("got %q, %v; want admitted: %v", who, ok, tc.want)
			}
		})
	}
}

func TestLoopbackRefusesWhatProxiesPassOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Forwarded", "x-forwarded-for", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Anything", "x-real-ip", "Via",
		"CF-Connecting-IP", "cdn-loop", "True-Client-IP", "X-Client-IP", "X-Original-Host", "Fly-Client-IP", "x-envoy-external-address",
	} {
		for _, value := range []string{"127.0.0.1", ""} {
			if who, ok := auth.Loopback()(request("GET", header(name, value))); ok {
				t.Errorf("%s: %q: admitted as %s", name, value, who)
			}
		}
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	p, err := auth.Bearer([]string{"plain-secret", "ci:s1", "ci:s2", "Ops:secret", "web-1:a:b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		header []string
		want   auth.Principal
	}{
		{"a secret without a name", []string{"Bearer plain-secret"}, "bearer:default"},
		{"a named secret", []string{"Bearer s1"}, "bearer:ci"},
		{"the second secret of a name", []string{"Bearer s2"}, "bearer:ci"},
		{"the scheme in any case", []string{"bEARER s1"}, "bearer:ci"},
		{"several spaces", []string{"Bearer   s1 "}, "bearer:ci"},
		{"a name in capitals is part of the secret", []string{"Bearer Ops:secret"}, "bearer:default"},
		{"a secret with a colon", []string{"Bearer a:b"}, "bearer:web-1"},

		{"no header", nil, ""},
		{"an empty header", []string{""}, ""},
		{"the scheme alone", []string{"Bearer"}, ""},
		{"an empty secret", []string{"Bearer "}, ""},
		{"no space", []string{"Bearers1"}, ""},
		{"a tab", []string{"Bearer\ts1"}, ""},
		{"another scheme", []string{"Basic s1"}, ""},
		{"a wrong secret", []string{"Bearer s3"}, ""},
		{"a part of a secret", []string{"Bearer plain-secre"}, ""},
		{"more than the secret", []string{"Bearer s1 s1"}, ""},
		{"the secret with its name", []string{"Bearer ci:s1"}, ""},
		{"a secret in other case", []string{"Bearer S1"}, ""},
		{"two headers", []string{"Bearer s1", "Bearer s2"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			who, ok := p(request("GET", func(r *http.Request) {
				for _, v := range tc.header {
					r.Header.Add("Authorization", v)
				}
			}))
			if who != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", who, ok, tc.want)
			}
		})
	}
}

func TestBearerWithoutTokensAdmitsNobody(t *testing.T) {
	t.Parallel()
	p, err := auth.Bearer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := p(request("GET", header("Authorization", "Bearer x"))); ok {
		t.Errorf("admitted as %s", who)
	}
}

func TestBearerRefusesUnusableTokens(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string][]string{
		"an empty token":                {""},
		"a name without a secret":       {"ci:"},
		"a space":                       {"ci:hidden value"},
		"a line end":                    {"hidden\n"},
		"a letter beyond ASCII":         {"hiddén"},
		"one secret for two principals": {"a:hidden", "b:hidden"},
	} {
		if _, err := auth.Bearer(tokens); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestChainTakesTheFirstThatAdmits(t *testing.T) {
	t.Parallel()
	bearer, err := auth.Bearer([]string{"ci:s1"})
	if err != nil {
		t.Fatal(err)
	}
	p := auth.Chain(bearer, auth.Loopback(), auth.Anonymous())
	for _, tc := range []struct {
		change func(*http.Request)
		want   auth.Principal
	}{
		{header("Authorization", "Bearer s1"), "bearer:ci"},
		{nil, auth.Local},
		{peer("10.0.0.1:1"), auth.Everyone},
	} {
		if who, ok := p(request("GET", tc.change)); !ok || who != tc.want {
			t.Errorf("got %q, %v; want %q", who, ok, tc.want)
		}
	}
	if who, ok := auth.Chain()(request("GET", nil)); ok {
		t.Errorf("the empty chain admitted %q", who)
	}
}

func TestContextCarriesTheCaller(t *testing.T) {
	t.Parallel()
	if who, ok := auth.FromContext(t.Context()); ok {
		t.Errorf("a context without a caller carries %q", who)
	}
	if who, ok := auth.FromContext(auth.NewContext(t.Context(), "bearer:ci")); !ok || who != "bearer:ci" {
		t.Errorf("got %q, %v; want bearer:ci", who, ok)
	}
}

func FuzzPolicies(f *testing.F) {
	for _, seed := range [][3]string{{"127.0.0.1:1", "localhost:3000", "Bearer x"}, {"[::1]:1", "[::1]", "bearer  "}, {"", "[", "\x00"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	bearer, err := auth.Bearer([]string{"a:secret"})
	if err != nil {
		f.Fatal(err)
	}
	p := auth.Chain(bearer, auth.Loopback())
	f.Fuzz(func(t *testing.T, addr, h, authorization string) {
		r := request("POST", header("Authorization", authorization))
		r.RemoteAddr, r.Host = addr, h
		who, ok := p(r)
		if ok && who == "bearer:a" && !strings.HasSuffix(strings.TrimRight(authorization, " "), "secret") {
			t.Errorf("%q was admitted as %s", authorization, who)
		}
		if ok == (who == "") {
			t.Errorf("got %q, %v", who, ok)
		}
	})
}
