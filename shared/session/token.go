package session

import (
	"crypto/subtle"
	"strings"
)

// A continuation token is http:<session>.<random>, where <session> is the session's id without its prefix.
const (
	sessionPrefix = "ses_"
	tokenPrefix   = "http:"
)

func (s *Store) newToken(id string) string {
	return tokenPrefix + strings.TrimPrefix(id, sessionPrefix) + "." + s.opts.NewID()
}

// SessionOf returns the session that a continuation token would be of, "" if its form is not that of one.
func SessionOf(token string) string {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	id, random, dot := strings.Cut(rest, ".")
	if !ok || !dot || id == "" || random == "" {
		return ""
	}
	return sessionPrefix + id
}

// Current reports whether token is the continuation token of the last accepted message. It takes the same time for all tokens.
func (r Record) Current(token string) bool {
	return subtle.ConstantTimeCompare([]byte(hash(token)), []byte(r.TokenHash)) == 1
}

// IsID reports whether id has the form of a session's id, so that nothing else need reach a store.
func IsID(id string) bool {
	name, ok := strings.CutPrefix(id, sessionPrefix)
	return ok && name != "" && len(name) <= 100 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
