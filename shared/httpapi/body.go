package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/schema"
)

func invalid(format string, args ...any) error {
	return bdkerr.New(bdkerr.InvalidRequest, format, args...)
}

func tooLarge(format string, args ...any) error {
	return bdkerr.New(bdkerr.PayloadTooLarge, format, args...)
}

// body reads the body of a request, which must be JSON. Without one it returns nil.
func (x *exchange) body() ([]byte, error) {
	tooBig := tooLarge("the body is over %d bytes", maxBody)
	if x.r.ContentLength > maxBody {
		return nil, tooBig
	}
	x.read = true
	x.limitRead()
	raw, err := io.ReadAll(io.LimitReader(x.r.Body, maxBody+1))
	switch {
	case err != nil:
		x.cut = true
		return nil, invalid("the body ends early: send it whole, within %s", bodyTime)
	case len(raw) > maxBody:
		return nil, tooBig
	case len(raw) == 0:
		return nil, nil
	}
	return raw, jsonBody(x.r.Header)
}

func jsonBody(h http.Header) error {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := params["charset"]
	switch {
	case err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8"):
		return invalid("the content type is %.100q: send JSON in UTF-8 with the header content-type: application/json", h.Get("Content-Type"))
	case h.Get("Content-Encoding") != "" && h.Get("Content-Encoding") != "identity":
		return invalid("the content encoding is %.100q: send the body as it is", h.Get("Content-Encoding"))
	}
	return nil
}

// requestKey returns the idempotency key of a request, "" for none.
func (x *exchange) requestKey() (string, error) {
	values := x.r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(values) > 1 || key == "" || len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", invalid("the header Idempotency-Key must be given once and have 1 to 255 characters of printable ASCII")
	}
	return key, nil
}

// object is a JSON object whose fields are known.
type object map[string]json.RawMessage

// decode reads a JSON object with no other fields than the known ones. Unlike the standard decoder, it refuses
// everything that would be changed in silence: duplicate keys, names in other case, bytes that are no text.
func decode(raw []byte, known ...string) (object, error) {
	if err := schema.ObjectWithin(raw, maxBody); err != nil {
		return nil, invalid("the body cannot be read: %s", err)
	}
	if err := checkEscapes(raw); err != nil {
		return nil, err
	}
	var fields object
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, invalid("the body cannot be read: %s", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return nil, unknownField(name, known)
		}
	}
	return fields, nil
}

func unknownField(name string, known []string) error {
	switch name {
	case "sessionId", "id", "owner", "principal", "mode", "channel", "channelId", "agent", "turn", "createdAt", "updatedAt", "files":
		return invalid("field %q is set by the server: leave it out", name)
	}
	return invalid("unknown field %.80q%s; the fields are %s", name, suggest(name, known), strings.Join(known, ", "))
}

// checkEscapes reports escapes that are half a character: they would be replaced in silence.
func checkEscapes(raw []byte) error {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch c := escape(raw, i-1); {
		case c >= 0xdc00 && c < 0xe000:
			return invalid("the body has an escape \\u%04x that is half a character", c)
		case c >= 0xd800 && c < 0xdc00:
			if low := escape(raw, i+5); low < 0xdc00 || low >= 0xe000 {
				return invalid("the body has an escape \\u%04x that is half a character", c)
			}
			i += 6
		}
	}
	return nil
}

// escape returns the number of the \uXXXX at raw[at:], -1 if there is none.
func escape(raw []byte, at int) int64 {
	if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
		return -1
	}
	c, err := strconv.ParseUint(string(raw[at+2:at+6]), 16, 32)
	if err != nil {
		return -1
	}
	return int64(c)
}

// text returns a field that is a string. It refuses NUL, which no store and no model keeps.
func (o object) text(name string) (string, error) {
	raw, ok := o[name]
	if !ok {
		return "", nil
	}
	var s string
	if kind := kindOf(raw); kind != "a string" || json.Unmarshal(raw, &s) != nil {
		return "", invalid("field %q must be a string, not %s", name, kind)
	}
	if strings.ContainsRune(s, 0) {
		return "", invalid("field %q contains the character NUL (\\u0000): remove it", name)
	}
	return s, nil
}

// required returns a field that is a string of more than white space.
func (o object) required(name string) (string, error) {
	s, err := o.text(name)
	switch {
	case err != nil:
		return "", err
	case o[name] == nil:
		return "", invalid("field %q is missing: it must be a string", name)
	case strings.TrimSpace(s) == "":
		return "", invalid("field %q is blank", name)
	}
	return s, nil
}

// flag returns a field that is a boolean, false if it is missing.
func (o object) flag(name string) (bool, error) {
	raw, ok := o[name]
	if !ok {
		return false, nil
	}
	var b bool
	if kind := kindOf(raw); kind != "a boolean" || json.Unmarshal(raw, &b) != nil {
		return false, invalid("field %q must be a boolean, not %s", name, kind)
	}
	return b, nil
}

// kindOf names the type of a JSON value.
func kindOf(raw []byte) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case raw[0] == '"':
		return "a string"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	case raw[0] == 'n':
		return "null"
	}
	return "a number"
}
