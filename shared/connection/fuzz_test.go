package connection_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/connection"
)

// FuzzStrangers: whatever a server says, what the model reads of it is bounded, visible text, and a name that models take.
func FuzzStrangers(f *testing.F) {
	for _, s := range []string{"", "add", "a/b", "\u202e\u200b", strings.Repeat("é", 300), "\xff", `{"type":"object","properties":{"\u200bx":{"description":"y\u0000"}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := connection.Clean(s, 100)
		if len(text) > 100+len("…") || !utf8.ValidString(text) || text != connection.Clean(text, 1000) {
			t.Errorf("%q became %q", s, text)
		}
		for _, r := range text {
			if unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
				t.Errorf("%q has %U", text, r)
			}
		}
		name := connection.Exposed("c", s)
		if len(name) > 64 || !strings.HasPrefix(name, "c__") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%q became the name %q", s, name)
		}
		if raw, err := connection.CleanSchema(json.RawMessage(s)); err == nil && !json.Valid(raw) {
			t.Errorf("%q became the schema %s", s, raw)
		}
	})
}
