package schema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/schema"
)

func TestObjectAccepts(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{}`, " {\t}\r\n", `{"a":1}`, `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`,
		`{"":1," ":2}`, `{"A":1,"a":2}`, `{"n":9007199254740993}`, `{"n":1.7976931348623157e308}`, `{"n":1e-400}`, `{"n":-0}`,
		`{"s":"\u0000\ud83d\ude00 你好🌍"}`, `{"s":"\ud800"}`, `{"s":["a","a"],"a":"a"}`,
		strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat(`}`, 64),
		`{"s":"` + strings.Repeat("x", schema.MaxBytes-8) + `"}`,
	} {
		if err := schema.Object([]byte(raw)); err != nil {
			t.Errorf("%.80s: %v", raw, err)
		}
	}
}

func TestObjectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ raw, want string }{
		"nothing":              {"", `the input is empty: send a JSON object, {} if there is nothing to say`},
		"white space":          {" \n", `the input is empty: send a JSON object, {} if there is nothing to say`},
		"odd character":        {`{"a":?}`, `the input is not valid JSON: byte 6: invalid character '?' looking for beginning of value`},
		"truncated":            {`{"a":"b`, `the input is not valid JSON: it breaks off after 7 bytes`},
		"truncated after key":  {`{"a"`, `the input is not valid JSON: it breaks off after 4 bytes`},
		"trailing comma":       {`{"a":1,}`, `the input is not valid JSON: byte 8: invalid character '}' looking for beginning of object key string`},
		"two commas":           {`{"a":[1,,2]}`, `the input is not valid JSON: byte 9: invalid character ',' looking for beginning of value`},
		"two documents":        {`{} {}`, `the input is not valid JSON: byte 4: invalid character '{' after top-level value`},
		"single quotes":        {`{'a':1}`, `the input is not valid JSON: byte 2: invalid character '\'' looking for beginning of object key string`},
		"raw line end":         {"{\"a\":\"b\nc\"}", `the input is not valid JSON: byte 8: invalid character '\n' in string literal`},
		"prose":                {`Here it is: {}`, `the input is not valid JSON: byte 1: invalid character 'H' looking for beginning of value`},
		"array":                {`[{"a":1}]`, `the input must be a JSON object, but is an array`},
		"string":               {` "{}"`, `the input must be a JSON object, but is a string`},
		"number":               {`-1`, `the input must be a JSON object, but is a number`},
		"boolean":              {`true`, `the input must be a JSON object, but is a boolean`},
		"null":                 {`null`, `the input must be a JSON object, but is null`},
		"key twice":            {`{"a":1,"b":2,"a":1}`, `the key "a" appears twice: send it once`},
		"key twice, escaped":   {`{"a":1,"\u0061":2}`, `the key "a" appears twice: send it once`},
		"key twice, below":     {`{"x":[{},{"y z":{"a":1,"a":2}}]}`, `x[1]["y z"]: the key "a" appears twice: send it once`},
		"huge number":          {`{"a":[0,1e400]}`, `a[1]: the number 1e400 is too large`},
		"huge negative number": {`{"a":-1e400}`, `a: the number -1e400 is too large`},
		"huge exponent":        {`{"a":{"b":1e99999999999}}`, `a.b: the number 1e99999999999 is too large`},
		"many digits":          {`{"a":` + strings.Repeat("9", 400) + `}`, `a: the number ` + strings.Repeat("9", 60) + `… is too large`},
		"deep objects":         {strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65), `a.a.a… the input is nested more than 64 levels deep`},
		"deep arrays":          {`{"a":` + strings.Repeat(`[`, 100_000), `a[0][0]… the input is nested more than 64 levels deep`},
		"invalid UTF-8":        {"{\"a\":\"\xff\"}", `the input is not UTF-8: byte 6 is 0xff`},
		"half a character":     {"{\"a\":\"é\xf0\x9f\"}", `the input is not UTF-8: byte 8 is 0xf0`},
		"too large":            {`{"s":"` + strings.Repeat("x", schema.MaxBytes-7) + `"}`, `the input has 1048577 bytes: send at most 1048576`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := schema.Object([]byte(test.raw))
			if err == nil {
				t.Fatal("got nil, want an error")
			}
			if err.Error() != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

// What Object accepts, encoding/json reads without loss of keys.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[1,{"b":null}],"c":"\ud83d\ude00"}`, `{"a":1,"a":2}`, `{"a":?}`, `{"a":`, `[`, `"`, `1e400`, "\xff", `{"\ud800":1,"\ud801":2}`,
		`{"a":[1,,2]}`, `{"a" 1}`, `{} {}`, `{"a":{"a":{"a":[[[1]]]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := schema.Object(raw); err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 2000 {
				t.Errorf("%q: a poor error: %q", raw, err)
			}
			return
		}
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%q was accepted, but %v", raw, err)
		}
		// No key was lost: as many as colons outside of strings.
		if got, want := keys(v), colons(raw); got != want {
			t.Errorf("%q was accepted with %d keys, of which %d are left", raw, want, got)
		}
	})
}

func keys(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			n += 1 + keys(value)
		}
	case []any:
		for _, value := range v {
			n += keys(value)
		}
	}
	return n
}

func colons(raw []byte) int {
	n, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch {
		case inString && raw[i] == '\\':
			i++
		case raw[i] == '"':
			inString = !inString
		case !inString && raw[i] == ':':
			n++
		}
	}
	return n
}

func BenchmarkObject(b *testing.B) {
	raw := []byte(`{"prUrl":"https://example.com/acme/checkout/pull/42","reason":"Small and tested.","labels":["a","b"],"n":{"x":1}}`)
	for b.Loop() {
		if err := schema.Object(raw); err != nil {
			b.Fatal(err)
		}
	}
}
