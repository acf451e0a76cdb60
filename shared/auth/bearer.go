package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

type bearerToken struct {
	sum [sha256.Size]byte
	who Principal
}

// Bearer returns the policy that admits who sends one of the given tokens in the Authorization header (RFC 6750).
//
// A token is a secret, for the principal bearer:default, or name:secret, for the principal bearer:name, where the name is
// a lower-case letter followed by lower-case letters, digits, _ or -. One name may have several secrets. It fails if a
// secret is empty, is not of printable ASCII without spaces, or belongs to two names. Errors do not show secrets.
func Bearer(tokens []string) (Policy, error) {
	known := make([]bearerToken, 0, len(tokens))
	for i, t := range tokens {
		name, secret := splitToken(t)
		if !validSecret(secret) {
			return nil, fmt.Errorf("bearer token %d: a secret has at least one character, all of them printable ASCII without spaces", i+1)
		}
		tok := bearerToken{sha256.Sum256([]byte(secret)), Principal("bearer:" + name)}
		for _, k := range known {
			if k.sum == tok.sum && k.who != tok.who {
				return nil, fmt.Errorf("bearer token %d: its secret already belongs to %s", i+1, k.who)
			}
		}
		known = append(known, tok)
	}
	return func(r *http.Request) (Principal, bool) {
		secret, ok := presented(r.Header)
		if !ok {
			return "", false
		}
		return match(known, sha256.Sum256([]byte(secret)))
	}, nil
}

// match compares with every token, so that the time it takes says nothing about which one is near.
func match(known []bearerToken, sum [sha256.Size]byte) (Principal, bool) {
	found := -1
	for i := range known {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(known[i].sum[:], sum[:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return known[found].who, true
}

func splitToken(t string) (name, secret string) {
	if name, secret, ok := strings.Cut(t, ":"); ok && regexp.MustCompile(`^[a-z][a-z0-9_-]*$`).MatchString(name) {
		return name, secret
	}
	return "default", t
}

func validSecret(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

// presented returns the secret of the Authorization header; there must be exactly one.
func presented(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, secret, ok := strings.Cut(values[0], " ")
	secret = strings.Trim(secret, " ")
	return secret, ok && strings.EqualFold(scheme, "Bearer") && validSecret(secret)
}
