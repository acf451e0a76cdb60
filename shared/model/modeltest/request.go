package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/model"
)

// conversation has everything in it that providers are strict about.
func (h *Harness) conversation() *model.Request {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	mine := model.Reasoning{Text: "I must add.", Signature: "c2ln", Model: h.Model}
	foreign := model.Reasoning{Text: "foreign", Signature: "c2ln", Model: "somebody:else"}
	redacted := model.Reasoning{Signature: "redacted:c2VjcmV0", Model: h.Model}
	return &model.Request{
		Instructions: "Be brief.",
		MaxTokens:    500,
		SessionID:    "session-1",
		Step:         3,
		Tools: []model.Tool{
			{Name: "add", Description: "Adds.", InputSchema: raw(`{"type":"object","properties":{"a":{"type":"integer","maximum":9007199254740993}}}`)},
			{Name: "now"},
		},
		Messages: []model.Message{
			{Role: model.User, Text: "one"},
			{Role: model.User, Text: "two"},
			{Role: model.Assistant, Text: " ", Reasoning: []model.Reasoning{mine, foreign, {Text: "unsigned"}, redacted}, Calls: []model.Call{
				{ID: "call_1_0", Name: "add", Args: raw(`{"a":9007199254740993,"b":1.50,"c":{}}`)},
				{ID: "call_1_1", Name: "now"},
				{ID: "functions.odd:2", Name: "an odd.name", Args: raw(`{"a":`)},
				{ID: "call_1_3", Name: "add", Args: raw(`[1]`)},
			}},
			{Role: model.Results, Results: []model.Result{
				{CallID: "call_1_0", Name: "add", Output: "3"},
				{CallID: "call_1_1", Name: "now", Output: ""},
				{CallID: "functions.odd:2", Name: "an odd.name", Output: "no such tool", IsError: true},
				{CallID: "call_1_3", Name: "add", Output: "<not> an object & \"so\"", IsError: true},
			}},
			{Role: model.Assistant, Text: ""},
			{Role: model.User, Text: "three"},
			{Role: model.Assistant, Text: "again", Calls: []model.Call{{ID: "call_1_0", Name: "now", Args: raw(`{}`)}}},
			{Role: model.Results, Results: []model.Result{{CallID: "call_1_0", Name: "now", Output: "noon"}}},
		},
	}
}

// testRequest compares what is sent with the golden file, and the request after the call with what it was before.
func testRequest(t *testing.T, h *Harness) {
	p := h.answer(t, end(model.FinishStop))
	req := h.conversation()
	before := fmt.Sprintf("%+v", *req)
	if _, err := model.Collect(h.Model, h.model(t, p).Stream(t.Context(), req)); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprintf("%+v", *req); after != before {
		t.Errorf("the adapter changed the request:\n%s", cmp.Diff(before, after))
	}
	var got bytes.Buffer
	if err := json.Indent(&got, p.requests()[0], "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	if *update {
		if err := os.WriteFile(h.Golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(h.Golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("request (-want +got), rewrite with -update:\n%s", diff)
	}
}

// testReplay sends answers back as history, as the engine does.
func testReplay(t *testing.T, h *Harness) {
	for name, deltas := range h.conversations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := h.answer(t, deltas...)
			m := h.model(t, p)
			answer, err := h.collect(t, m)
			if err != nil {
				t.Fatal(err)
			}
			req := hello()
			req.Messages = append(req.Messages, answer.Message)
			next := model.Message{Role: model.Results}
			for _, c := range answer.Message.Calls {
				next.Results = append(next.Results, model.Result{CallID: c.ID, Name: c.Name, Output: "ok"})
			}
			if len(next.Results) == 0 {
				next = model.Message{Role: model.User, Text: "go on"}
			}
			req.Messages = append(req.Messages, next)
			if _, err := model.Collect(h.Model, m.Stream(t.Context(), req)); err != nil {
				t.Fatal(err)
			}
			body := string(p.requests()[1])
			if !json.Valid([]byte(body)) {
				t.Fatalf("not JSON: %s", body)
			}
			for _, r := range answer.Message.Reasoning {
				if r.Signature != "" && !strings.Contains(body, r.Signature) {
					t.Errorf("signature %q was not sent back: %s", r.Signature, body)
				}
			}
			for _, c := range answer.Message.Calls {
				if !strings.Contains(body, c.ID) {
					t.Errorf("call %s was not sent back: %s", c.ID, body)
				}
			}
		})
	}
}
