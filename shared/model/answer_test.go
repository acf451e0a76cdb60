package model_test

import (
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/model"
)

func stream(end error, deltas ...model.Delta) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if end != nil {
			yield(model.Delta{}, end)
		}
	}
}

func TestCollectAddsUpTheDeltas(t *testing.T) {
	t.Parallel()
	usage := model.Usage{InputTokens: 3, OutputTokens: 4}
	tests := map[string]struct {
		deltas []model.Delta
		want   model.Answer
	}{
		"text cut inside a character is whole again": {
			deltas: []model.Delta{{Text: "a\xe4"}, {Text: "\xbd"}, {Text: "\xa0"}, {Finish: model.FinishStop}, {Usage: &usage}},
			want: model.Answer{
				Message: model.Message{Role: model.Assistant, Text: "a你"}, Usage: usage, Finish: model.FinishStop,
			},
		},
		"interleaved calls keep the order of their first pieces and their broken arguments": {
			deltas: []model.Delta{
				{Call: &model.CallDelta{Index: 2, ID: "c2", Name: "add"}},
				{Call: &model.CallDelta{Index: 1, ID: "c1", Name: "sub", Args: `{"b"`}},
				{Call: &model.CallDelta{Index: 2, Args: `{"a":`}},
				{Call: &model.CallDelta{Index: 1, Args: `:1}`}},
				{Call: &model.CallDelta{Index: 3, ID: "c3", Name: "now"}},
				{Finish: model.FinishToolCalls},
			},
			want: model.Answer{
				Message: model.Message{Role: model.Assistant, Calls: []model.Call{
					{ID: "c2", Name: "add", Args: json.RawMessage(`{"a":`)},
					{ID: "c1", Name: "sub", Args: json.RawMessage(`{"b":1}`)},
					{ID: "c3", Name: "now"},
				}},
				Finish: model.FinishToolCalls,
			},
		},
		"a signature, text or a call ends a reasoning block": {
			deltas: []model.Delta{
				{Reasoning: "one "},
				{Reasoning: "two"},
				{Signature: "s1"},
				{Signature: "hidden"},
				{Reasoning: "three"},
				{Text: "x"},
				{Reasoning: "four"},
				{Finish: model.FinishStop},
			},
			want: model.Answer{
				Message: model.Message{Role: model.Assistant, Text: "x", Reasoning: []model.Reasoning{
					{Text: "one two", Signature: "s1", Model: "acme"},
					{Signature: "hidden", Model: "acme"},
					{Text: "three"},
					{Text: "four"},
				}},
				Finish: model.FinishStop,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := model.Collect("acme", stream(nil, tc.deltas...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCollectReturnsThePartBeforeAFault(t *testing.T) {
	t.Parallel()
	fault := errors.New("boom")
	got, err := model.Collect("acme", stream(fault, model.Delta{Text: "half"}))
	if !errors.Is(err, fault) || got.Message.Text != "half" {
		t.Errorf("Collect = %+v, %v", got, err)
	}
	got, err = model.Collect("acme", stream(nil, model.Delta{Text: "half"}))
	if model.KindOf(err) != model.Unavailable || got.Message.Text != "half" {
		t.Errorf("Collect without a finish = %+v, %v, want kind unavailable", got, err)
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	tests := []struct{ id, provider, name, fault string }{
		{id: "openai:gpt-x", provider: "openai", name: "gpt-x"},
		{id: "bedrock:us.acme.large-v1:0", provider: "bedrock", name: "us.acme.large-v1:0"},
		{id: "scripted:dir/a b.yaml", provider: "scripted", name: "dir/a b.yaml"},
		{id: "", fault: "the model id is empty: write it as PROVIDER:NAME, where PROVIDER is one of anthropic, bedrock, openai, scripted"},
		{id: "gpt-x", fault: `model id "gpt-x" names no provider: write it as PROVIDER:NAME, where PROVIDER is one of anthropic, bedrock, openai, scripted`},
		{id: "acme.large:0", fault: `model id "acme.large:0" names the unknown provider "acme.large": use one of anthropic, bedrock, openai, scripted`},
		{id: "openai:", fault: `model id "openai:" has no proper name after "openai:": write the provider's own name of the model there, without spaces around it`},
		{id: "openai: x", fault: `model id "openai: x" has no proper name after "openai:": write the provider's own name of the model there, without spaces around it`},
	}
	for _, tc := range tests {
		t.Run(tc.id, func(t *testing.T) {
			t.Parallel()
			provider, name, err := model.ParseID(tc.id)
			fault := ""
			if err != nil {
				fault = err.Error()
			}
			if provider != tc.provider || name != tc.name || fault != tc.fault {
				t.Errorf("ParseID(%q) = %q, %q, %q", tc.id, provider, name, fault)
			}
		})
	}
}
