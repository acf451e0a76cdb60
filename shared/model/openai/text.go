package openai

import (
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"
)

// exact is a JSON string decoded byte by byte: some servers cut their pieces inside a character, where encoding/json would
// put U+FFFD. Half of a surrogate pair becomes three bytes that a [joiner] puts together again. JSON null is "".
type exact string

// UnmarshalJSON decodes a JSON string; what is no string is taken as it is, as some servers send arguments as objects.
func (e *exact) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*e = ""
		return nil
	}
	if len(b) < 2 || b[0] != '"' {
		*e = exact(b)
		return nil
	}
	b = b[1 : len(b)-1]
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if b[0] != '\\' {
			out = append(out, b[0])
			b = b[1:]
			continue
		}
		var err error
		if out, b, err = unescape(out, b); err != nil {
			return err
		}
	}
	*e = exact(join(string(out)))
	return nil
}

// unescape appends to out what the escape at the start of b stands for, and returns what follows it.
func unescape(out, b []byte) (to, rest []byte, err error) {
	if len(b) < 2 {
		return nil, nil, errors.New("escape is cut")
	}
	const from, into = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(from, b[1]); i >= 0 {
		return append(out, into[i]), b[2:], nil
	}
	var unit [2]byte
	if len(b) < 6 || b[1] != 'u' {
		return nil, nil, errors.New("unknown escape")
	}
	if _, err := hex.Decode(unit[:], b[2:6]); err != nil {
		return nil, nil, errors.New("escape is not hexadecimal")
	}
	r := rune(unit[0])<<8 | rune(unit[1])
	if r >= 0xD800 && r <= 0xDFFF { // half a pair: three bytes, as UTF-8 would have it
		return append(out, 0xED, 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F)), b[6:], nil
	}
	return utf8.AppendRune(out, r), b[6:], nil
}

// A joiner puts pairs of surrogates together that were cut apart between two pieces.
type joiner struct {
	held string // the first half of a pair, which ended the last piece
}

// next returns s without a first half at its end, and with the one that was held before.
func (j *joiner) next(s string) string {
	s = j.held + s
	j.held = ""
	if n := len(s) - 3; n >= 0 && s[n] == 0xED && s[n+1] >= 0xA0 && s[n+1] < 0xB0 {
		s, j.held = s[:n], s[n:]
	}
	return join(s)
}

// join replaces each pair of three-byte surrogates by its character. A surrogate that has no other half stays as it is.
func join(s string) string {
	if strings.IndexByte(s, 0xED) < 0 {
		return s
	}
	var out strings.Builder
	for len(s) > 0 {
		if len(s) >= 6 && s[0] == 0xED && s[1] >= 0xA0 && s[1] < 0xB0 && s[3] == 0xED && s[4] >= 0xB0 {
			high, low := rune(s[1]&0x0F)<<6|rune(s[2]&0x3F), rune(s[4]&0x0F)<<6|rune(s[5]&0x3F)
			out.WriteRune(0x10000 + high<<10 + low&0x3FF)
			s = s[6:]
			continue
		}
		out.WriteByte(s[0])
		s = s[1:]
	}
	return out.String()
}
