package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/tool"
)

func TestWhatTheModelReads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result  any
		want    string
		isError bool
	}{
		"text":       {"a\n\"b\" 你好🌍 e\u0301", "a\n\"b\" 你好🌍 e\u0301", false},
		"no text":    {"", "", false},
		"JSON":       {map[string]int{"a": 1}, `{"a":1}`, false},
		"nothing":    {nil, `null`, false},
		"empty":      {bdk.Output{}, ``, false},
		"structured": {bdk.Output{Structured: []int{1}}, `[1]`, false},
		"parts": {
			bdk.Output{Structured: 1, Content: []bdk.Content{{Text: "a"}, {Data: make([]byte, 1234), MIMEType: "image/png"}, {Text: "b"}, {Data: []byte{}}}},
			"a\n[image/png, 1234 bytes]\nb\n[application/octet-stream, 0 bytes]", false,
		},
		"a fault":             {bdk.Output{IsError: true, Content: []bdk.Content{{Text: "no such branch"}}}, "no such branch", true},
		"a pointer":           {&bdk.Output{IsError: true, Content: []bdk.Content{{Text: "no"}}}, "no", true},
		"an envelope as JSON": {json.RawMessage(`{ "content": [{"type":"text","text":"no"}], "isError": true}`), "no", true},

		"a part of another type":  {json.RawMessage(`{"content":[{"type":"video","text":"a"}]}`), `{"content":[{"type":"video","text":"a"}]}`, false},
		"a part that has more":    {json.RawMessage(`{"content":[{"type":"text","text":"a","id":1}],"isError":true}`), `{"content":[{"type":"text","text":"a","id":1}],"isError":true}`, false},
		"more beside the parts":   {json.RawMessage(`{"content":[],"isError":true,"page":2}`), `{"content":[],"isError":true,"page":2}`, false},
		"text with data":          {json.RawMessage(`{"content":[{"type":"text","data":"YQ=="}]}`), `{"content":[{"type":"text","data":"YQ=="}]}`, false},
		"data without its type":   {json.RawMessage(`{"content":[{"type":"image","data":"YQ=="}]}`), `{"content":[{"type":"image","data":"YQ=="}]}`, false},
		"data that is no base64":  {json.RawMessage(`{"content":[{"type":"image","data":"?","mimeType":"image/png"}]}`), `{"content":[{"type":"image","data":"?","mimeType":"image/png"}]}`, false},
		"content that is no list": {json.RawMessage(`{"content":"a","isError":true}`), `{"content":"a","isError":true}`, false},
		"a list of texts":         {json.RawMessage(`{"content":["a"]}`), `{"content":["a"]}`, false},
	} {
		s := newSet(t, memkv.New(), reads("get", 0, func(context.Context) (any, error) { return test.result, nil }))
		out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "get", json.RawMessage(`{}`), false)
		if d := cmp.Diff(test.want, tool.Readable(out.Output)); d != "" || out.IsError != test.isError {
			t.Errorf("%s: error %t (-want +got):\n%s", name, out.IsError, d)
		}
	}
}

// A long error is cut between characters.
func TestLongErrorsAreWholeCharacters(t *testing.T) {
	t.Parallel()
	for lead := range 4 {
		got := tool.Readable(tool.Failed(errors.New(strings.Repeat("a", lead) + strings.Repeat("🌍", 20_000))).Output)
		if strings.ContainsRune(got, utf8.RuneError) || len(got) < 64<<10-3 || len(got) > 64<<10 {
			t.Errorf("%d characters before: %d bytes that end in %q", lead, len(got), got[len(got)-5:])
		}
	}
}

// Whatever an output is, it can be read; what bdk.Output makes is read by its parts.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{`"a"`, `{"content":[]}`, `{"content":[{"type":"image","data":"YQ==","mimeType":"image/png"}],"structuredContent":1}`, `{"content":[null]}`, ``, `"`, `[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tool.Readable(json.RawMessage(text))
		raw, err := json.Marshal(bdk.Output{Content: []bdk.Content{{Text: text}, {Data: []byte(text), MIMEType: "image/png"}}})
		if err != nil {
			t.Fatal(err)
		}
		valid := strings.ToValidUTF8(text, "\uFFFD")
		if got := tool.Readable(raw); utf8.ValidString(text) && !strings.HasPrefix(got, valid+"\n[image/png, ") {
			t.Errorf("Readable(%s) = %q", raw, got)
		}
	})
}
