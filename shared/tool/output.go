package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Outcome is what came of a call.
type Outcome struct {
	Output  json.RawMessage // a JSON string for text, any JSON otherwise; [Readable] is what the model reads of it
	IsError bool
	Stubbed bool // a dry-run session answered a write without running it
}

// Bounds of one output in the log, and of that of an error, in bytes.
const (
	maxOutput = 8 << 20
	maxFault  = 64 << 10
)

// encode returns a result as it is recorded.
func encode(result any) (Outcome, error) {
	raw, err := json.Marshal(result)
	switch {
	case err != nil:
		return Outcome{}, fmt.Errorf("the tool ran, but its result cannot be encoded as JSON: %w", err)
	case len(raw) > maxOutput:
		return Outcome{}, fmt.Errorf("the tool ran, but its result has %d bytes, more than %d", len(raw), maxOutput)
	}
	e, _ := open(raw)
	return Outcome{Output: raw, IsError: e.IsError}, nil
}

// Failed returns the outcome of a call that went wrong; the model reads the error's text, or the beginning of one that is long.
func Failed(err error) Outcome {
	s := err.Error()
	if len(s) > maxFault {
		cut := maxFault
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	raw, _ := json.Marshal(s) //nolint:errchkjson // a string always encodes
	return Outcome{Output: raw, IsError: true}
}

// Readable returns what the model reads of an output: a text as it is, and any other JSON as JSON, but of an envelope, which is
// how a [bdk.Output] is encoded, its parts, each on a line of its own. Of data it reads the type and the size, such as
// [image/png, 1234 bytes]; of an envelope without parts, its structured content.
//
// An envelope is known by its shape, in every detail: a result of any other type that is encoded alike is one, too.
func Readable(output json.RawMessage) string {
	var text string
	if bytes.HasPrefix(output, []byte{'"'}) && json.Unmarshal(output, &text) == nil {
		return text
	}
	e, ok := open(output)
	switch {
	case !ok:
		return string(output)
	case len(e.Content) == 0:
		return string(e.Structured)
	}
	lines := make([]string, len(e.Content))
	for i, p := range e.Content {
		if lines[i] = p.Text; p.Type != "text" {
			lines[i] = fmt.Sprintf("[%s, %d bytes]", p.MIMEType, len(p.Data))
		}
	}
	return strings.Join(lines, "\n")
}

// Parts returns an output that is an envelope as it was returned; ok is false for any other. Structured is a json.RawMessage, or nil.
func Parts(output json.RawMessage) (parts bdk.Output, ok bool) {
	e, ok := open(output)
	if !ok {
		return bdk.Output{}, false
	}
	parts = bdk.Output{IsError: e.IsError, Content: make([]bdk.Content, len(e.Content))}
	for i, p := range e.Content {
		parts.Content[i] = bdk.Content{Text: p.Text, Data: p.Data, MIMEType: p.MIMEType}
	}
	if len(e.Structured) > 0 {
		parts.Structured = e.Structured
	}
	return parts, true
}

// envelope is an encoded bdk.Output.
type envelope struct {
	Content    []part          `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     []byte `json:"data"`
	MIMEType string `json:"mimeType"`
}

// open reads an envelope; ok is false if raw is none.
func open(raw json.RawMessage) (e envelope, ok bool) {
	if !bytes.HasPrefix(raw, []byte(`{"content":[`)) {
		return envelope{}, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if dec.Decode(&e) != nil {
		return envelope{}, false
	}
	for _, p := range e.Content {
		isText := p.Type == "text" && p.Data == nil && p.MIMEType == ""
		isData := (p.Type == "image" || p.Type == "audio" || p.Type == "resource") && p.Text == "" && p.Data != nil && p.MIMEType != ""
		if !isText && !isData {
			return envelope{}, false
		}
	}
	return e, true
}
