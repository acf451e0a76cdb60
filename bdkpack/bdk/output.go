package bdk

import (
	"encoding/json"
	"errors"
	"strings"
)

// Output is a result in parts, for tools that return more than text or one JSON value:
//
//	return bdk.Output{Content: []bdk.Content{{Text: "a chart"}, {Data: png, MIMEType: "image/png"}}}, nil
//
// The model reads the parts, each on a line of its own, and of data its type and size. The zero Output is an empty result.
type Output struct {
	Content    []Content // in order
	Structured any       // the value that OutputSchema describes, for programs; the model reads it, as JSON, if there is no Content
	IsError    bool      // the model reads the content as that of a call that went wrong
}

// MarshalJSON returns the form in which the events and the HTTP API show an Output:
//
//	{"content":[…],"structuredContent":…,"isError":true}
//
// without the last two if they are not set.
func (o Output) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Content    []Content `json:"content"`
		Structured any       `json:"structuredContent,omitempty"`
		IsError    bool      `json:"isError,omitempty"`
	}{append([]Content{}, o.Content...), o.Structured, o.IsError})
}

// Content is one part of an [Output]: Text, or Data of a MIMEType, not both. The zero Content is an empty text.
type Content struct {
	Text     string // plain text
	Data     []byte // of an image, a sound or another file
	MIMEType string // of Data, such as image/png; default: application/octet-stream
}

// MarshalJSON returns {"type":"text","text":…}, or {"type":…,"data":…,"mimeType":…} with the data as base64, whose type is
// image, audio or resource. It fails for a Content with both Text and Data.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Data == nil {
		return json.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", c.Text})
	}
	if c.Text != "" {
		return nil, errors.New("a bdk.Content has both Text and Data: make two of it")
	}
	mimeType := or(c.MIMEType, "application/octet-stream")
	kind, _, _ := strings.Cut(mimeType, "/")
	if kind != "image" && kind != "audio" {
		kind = "resource"
	}
	return json.Marshal(struct {
		Type     string `json:"type"`
		Data     []byte `json:"data"`
		MIMEType string `json:"mimeType"`
	}{kind, c.Data, mimeType})
}
