package history_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/history"
)

func calls(ids ...string) model.Message {
	m := model.Message{Role: model.Assistant}
	for _, id := range ids {
		m.Calls = append(m.Calls, model.Call{ID: id, Name: "t"})
	}
	return m
}

func results(ids ...string) model.Message {
	m := model.Message{Role: model.Results}
	for _, id := range ids {
		m.Results = append(m.Results, model.Result{CallID: id, Name: "t", Output: "o"})
	}
	return m
}

func TestTurnsAlternateAndHoldNothingBlank(t *testing.T) {
	t.Parallel()
	got := history.Turns([]model.Message{
		{Role: model.User, Text: "one"},
		{Role: model.User, Text: " \n"},
		{Role: model.Assistant, Text: " ", Reasoning: []model.Reasoning{{Text: "x", Signature: "s", Model: "acme"}}},
		{Role: model.User, Text: "two"},
		{Role: model.Assistant, Text: "a", Reasoning: []model.Reasoning{
			{Text: "mine", Signature: "s", Model: "acme"}, {Text: "foreign", Signature: "s", Model: "other"}, {Text: "unsigned"},
		}},
		{Role: model.Assistant, Calls: []model.Call{{ID: "c.1", Name: "do it"}}},
		{Role: model.Results, Results: []model.Result{{CallID: "c.1", Name: "do it", Output: "\t", IsError: true}}},
		{Role: model.User, Text: "three"},
	}, "acme")
	want := []history.Turn{
		{Text: "one\n\n(empty message)\n\ntwo"},
		{
			Assistant: true, Text: "a",
			Reasoning: []model.Reasoning{{Text: "mine", Signature: "s", Model: "acme"}},
			Calls:     []model.Call{{ID: "c_1", Name: "do_it", Args: json.RawMessage("{}")}},
		},
		{Text: "three", Results: []model.Result{{CallID: "c_1", Name: "do_it", Output: "(no output)", IsError: true}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestCallIDsAreUniqueAndResultsFollowThem(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	turns := history.Turns([]model.Message{
		calls("a", "b"), results("a", "b"),
		calls("b", "a"), results("b", "a"),
		calls("a_2", "a", "a", "", "ü"), results("a_2", "", "ü"),
		calls(long), results(long), calls(long), results(long),
	}, "")
	seen := map[string]bool{}
	var got []string
	for _, turn := range turns {
		for _, c := range turn.Calls {
			if seen[c.ID] || len(c.ID) > 64 {
				t.Errorf("id %q comes twice or is too long", c.ID)
			}
			seen[c.ID] = true
		}
		for _, r := range turn.Results {
			got = append(got, r.CallID)
		}
	}
	want := []string{
		"a", "b", "b_2", "a_2", "a_2_2", "unnamed", "_", strings.Repeat("x", 64), strings.Repeat("x", 62) + "_2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids of results (-want +got):\n%s", diff)
	}
}

func TestThousandsOfEqualIDsAreFast(t *testing.T) {
	t.Parallel()
	var messages []model.Message
	for range 20_000 {
		messages = append(messages, calls("call_1_0"), results("call_1_0"))
	}
	turns := history.Turns(messages, "")
	if got := turns[len(turns)-1].Results[0].CallID; got != "call_1_0_20000" {
		t.Errorf("last id %q", got)
	}
}

func TestArgumentsAreAlwaysAnObject(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "{}", "null": "{}", "[1]": "{}", `"x"`: "{}", `{"a":`: "{}", `{"a":1} x`: "{}", " {\"a\": 1}\n": `{"a": 1}`,
		`{"a":1e400,"a":2}`: `{"a":1e400,"a":2}`, "{\"a\":\"\xff\"}": "{\"a\":\"\ufffd\"}",
	} {
		m := model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "a", Name: "t", Args: json.RawMessage(args)}}}
		turns := history.Turns([]model.Message{m}, "")
		if got := string(turns[0].Calls[0].Args); got != want {
			t.Errorf("args %q: got %s, want %s", args, got, want)
		}
	}
}

func TestTurnsLeaveTheRequestAlone(t *testing.T) {
	t.Parallel()
	messages := []model.Message{calls("a.b"), results("a.b")}
	before := fmt.Sprintf("%+v", messages)
	history.Turns(messages, "")
	if after := fmt.Sprintf("%+v", messages); after != before {
		t.Errorf("changed from %s to %s", before, after)
	}
}

func TestToolsOrStub(t *testing.T) {
	t.Parallel()
	turns := history.Turns([]model.Message{calls("a")}, "")
	tools := []model.Tool{{Name: "x"}}
	want := []model.Tool{{Name: "x", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}}
	if diff := cmp.Diff(want, history.ToolsOrStub(&model.Request{Tools: tools}, turns)); diff != "" {
		t.Errorf("own tools (-want +got):\n%s", diff)
	}
	if got := history.ToolsOrStub(&model.Request{}, turns); len(got) != 1 || got[0].Name != "t" {
		t.Errorf("stub: got %+v", got)
	}
	if got := history.ToolsOrStub(&model.Request{}, nil); len(got) != 0 {
		t.Errorf("no calls: got %+v", got)
	}
	if tools[0].InputSchema != nil {
		t.Error("the request was changed")
	}
}
