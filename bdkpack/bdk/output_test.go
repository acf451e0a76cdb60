package bdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

func TestOutputAsJSON(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		output bdk.Output
		want   string
	}{
		"nothing":    {bdk.Output{}, `{"content":[]}`},
		"error":      {bdk.Output{IsError: true}, `{"content":[],"isError":true}`},
		"structured": {bdk.Output{Structured: map[string]int{"a": 1}}, `{"content":[],"structuredContent":{"a":1}}`},
		"text":       {bdk.Output{Content: []bdk.Content{{Text: "a\n你好"}, {}}}, `{"content":[{"type":"text","text":"a\n你好"},{"type":"text","text":""}]}`},
		"data by type": {
			bdk.Output{Content: []bdk.Content{
				{Data: []byte("p"), MIMEType: "image/png"},
				{Data: []byte("w"), MIMEType: "audio/wav"},
				{Data: []byte("d"), MIMEType: "application/pdf"},
				{Data: []byte("i"), MIMEType: "imagery/x"},
				{Data: []byte{}},
			}},
			`{"content":[{"type":"image","data":"cA==","mimeType":"image/png"},{"type":"audio","data":"dw==","mimeType":"audio/wav"},` +
				`{"type":"resource","data":"ZA==","mimeType":"application/pdf"},{"type":"resource","data":"aQ==","mimeType":"imagery/x"},` +
				`{"type":"resource","data":"","mimeType":"application/octet-stream"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range []any{test.output, &test.output} {
				got, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, string(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestContentIsTextOrData(t *testing.T) {
	t.Parallel()
	_, err := json.Marshal(bdk.Output{Content: []bdk.Content{{Text: "a", Data: []byte("b")}}})
	if err == nil || !strings.Contains(err.Error(), "both Text and Data") {
		t.Errorf("got %v, want an error that says what is wrong", err)
	}
}
