package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/modeltest"
	"github.com/bdk-lambda/bdk/shared/model/openai"
)

const key = "sk-test-0123456789"

func TestConformance(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Harness{
		New:         newModel,
		Secret:      key,
		ContentType: "text/event-stream",
		Encode:      encode,
		Refusals:    refusals,
		Breaks: func(message string) []modeltest.Break {
			return []modeltest.Break{
				{Name: "server", Frame: event(body(message, "server_error", nil)), Want: model.Unavailable},
				{Name: "status as code", Frame: event(body(message, "", 429)), Want: model.Throttled},
				{Name: "word as code", Frame: event(body(message, "x", "context_length_exceeded")), Want: model.ContextLength},
				{Name: "no JSON", Frame: []byte("data: {oops\n\n"), Want: model.Unavailable},
			}
		},
		Golden: "testdata/request.golden.json",
	})
}

func newModel(_ testing.TB, client *http.Client, url string) model.Model {
	return openai.New(client, " "+key+"\n", "gpt-test", &openai.Options{BaseURL: url + "/v1/", Clock: clock.Fixed(modeltest.Now())})
}

func refusals(message string) []modeltest.Refusal {
	refusal := func(status int, typ string, code any, want model.Kind) modeltest.Refusal {
		return modeltest.Refusal{
			Name: fmt.Sprintf("%d %v", status, code), Status: status, Body: string(body(message, typ, code)), Want: want,
		}
	}
	return []modeltest.Refusal{
		refusal(429, "tokens", "rate_limit_exceeded", model.Throttled),
		refusal(429, "insufficient_quota", "insufficient_quota", model.Denied),
		refusal(503, "server_error", nil, model.Overloaded),
		refusal(500, "server_error", nil, model.Unavailable),
		refusal(400, "invalid_request_error", nil, model.Invalid),
		refusal(400, "invalid_request_error", "context_length_exceeded", model.ContextLength),
		refusal(404, "invalid_request_error", "model_not_found", model.Invalid),
		refusal(401, "invalid_request_error", "invalid_api_key", model.Denied),
		refusal(403, "", "unsupported_country", model.Denied),
		{Name: "redirect", Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}, Want: model.Invalid},
		{Name: "proxy", Status: 502, Body: "<html>" + message, Want: model.Unavailable},
	}
}

func body(message, typ string, code any) []byte {
	return mustJSON(map[string]any{"error": map[string]any{"message": message, "type": typ, "code": code}})
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func event(data []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", data) }

// encode writes what OpenAI writes.
func encode(deltas []model.Delta) [][]byte {
	frames := [][]byte{chunk(map[string]any{"role": "assistant", "content": ""}, nil)}
	finished := false
	for _, d := range deltas {
		frames = append(frames, frame(d))
		finished = finished || d.Finish != ""
	}
	if finished {
		frames = append(frames, event([]byte("[DONE]")))
	}
	return frames
}

func frame(d model.Delta) []byte {
	switch {
	case d.Finish != "":
		return chunk(map[string]any{}, d.Finish)
	case d.Usage != nil:
		return event(mustJSON(map[string]any{"choices": []any{}, "usage": map[string]any{
			"prompt_tokens":         d.Usage.InputTokens + d.Usage.CacheReadTokens,
			"completion_tokens":     d.Usage.OutputTokens,
			"prompt_tokens_details": map[string]any{"cached_tokens": d.Usage.CacheReadTokens},
		}}))
	case d.Call != nil:
		c := map[string]any{"index": d.Call.Index, "function": map[string]any{"arguments": d.Call.Args}}
		if d.Call.ID != "" {
			c = map[string]any{"index": d.Call.Index, "id": d.Call.ID, "type": "function", "function": map[string]any{"name": d.Call.Name, "arguments": d.Call.Args}}
		}
		return chunk(map[string]any{"tool_calls": []any{c}}, nil)
	case d.Reasoning != "":
		return chunk(map[string]any{"reasoning_content": d.Reasoning}, nil)
	}
	return chunk(map[string]any{"content": d.Text}, nil)
}

func chunk(delta map[string]any, finish any) []byte {
	return event(mustJSON(map[string]any{
		"id": "c", "object": "chat.completion.chunk", "usage": nil,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	}))
}

// TestOddServers plays the bytes of compatible servers that do things their own way.
func TestOddServers(t *testing.T) {
	t.Parallel()
	answer := func(text string, finish model.FinishReason, calls ...model.Call) model.Answer {
		return model.Answer{Message: model.Message{Role: model.Assistant, Text: text, Calls: calls}, Finish: finish}
	}
	call := func(id, name, args string) model.Call {
		c := model.Call{ID: id, Name: name}
		if args != "" {
			c.Args = json.RawMessage(args)
		}
		return c
	}
	withUsage := answer("hi", model.FinishStop)
	withUsage.Usage = model.Usage{InputTokens: 3, OutputTokens: 2, ReasoningTokens: 1}
	thought := answer("x", model.FinishStop)
	thought.Message.Reasoning = []model.Reasoning{{Text: "hm"}}
	tests := map[string]struct {
		wire string
		want model.Answer
	}{
		"no space, comments, CRLF, no usage, no [DONE]": {
			": keep-alive\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\r\n\r\n: keep-alive\r\n\r\ndata:{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n",
			answer("hi", model.FinishStop),
		},
		"[DONE] without an empty line behind it, no finish": {
			"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n", answer("hi", model.FinishOther),
		},
		"usage in every chunk, the last one counts": {
			`data: {"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n" +
				`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":1}}}` + "\n\ndata: [DONE]\n\n",
			withUsage,
		},
		"nulls everywhere": {
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null,"reasoning":null},"finish_reason":null}],"usage":null,"error":null}` + "\n\n" +
				`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n", answer("x", model.FinishStop),
		},
		"reasoning by its other name, then as both": {
			`data: {"choices":[{"delta":{"reasoning":"h"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"reasoning":"m","reasoning_content":"m"}}]}` + "\n\n" +
				`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n", thought,
		},
		"a refusal is text": {
			`data: {"choices":[{"delta":{"refusal":"no"},"finish_reason":"stop"}]}` + "\n\n", answer("no", model.FinishStop),
		},
		"a second choice is ignored": {
			`data: {"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n", answer("a", model.FinishStop),
		},
		"whole calls in one chunk, all of index 0, finish stop": {
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"y","arguments":"{\"k\":1}"}}]},"finish_reason":"stop"}]}` + "\n\n",
			answer("", model.FinishToolCalls, call("a", "x", "{}"), call("b", "y", `{"k":1}`)),
		},
		"calls without index or id, arguments as an object": {
			`data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"x","arguments":{"k":1}}},{"function":{"name":"y"}}]}}]}` + "\n\n" +
				`data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
			answer("", model.FinishToolCalls, call("call_1_0", "x", `{"k":1}`), call("call_1_1", "y", "{}")),
		},
		"id and name again in each piece": {
			`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"a","function":{"name":"x","arguments":"{"}}]}}]}` + "\n\n" +
				`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"a","function":{"name":"x","arguments":"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
			answer("", model.FinishToolCalls, call("a", "x", "{}")),
		},
		"pieces cut inside a character": {
			"data: {\"choices\":[{\"delta\":{\"content\":\"\xe4\xbd\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\xa0!\"},\"finish_reason\":\"stop\"}]}\n\n",
			answer("你!", model.FinishStop),
		},
		"pieces cut inside a pair of surrogates": {
			`data: {"choices":[{"delta":{"content":"a\ud83c"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"\udf0d\ud83c\udf0d\u4f60\n"},"finish_reason":"stop"}]}` + "\n\n",
			answer("a🌍🌍你\n", model.FinishStop),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := model.Collect(model.ProviderOpenAI+":gpt-test", play(t, tc.wire).Stream(t.Context(), hello()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func hello() *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}, MaxTokens: 5, Step: 1}
}

// play returns a model whose server sends wire.
func play(t testing.TB, wire string) model.Model {
	t.Helper()
	return newModel(t, &http.Client{Transport: server{wire: wire}}, "http://example.test")
}

func TestOpenAIItselfGetsItsOwnLimitAndGatewaysTheirHeaders(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	m := openai.New(&http.Client{Transport: server{seen: seen}}, key, "gpt-test", &openai.Options{
		Header: http.Header{"x-team": {"blue-team"}}, ReasoningEffort: "low",
	})
	_, err := model.Collect("", m.Stream(t.Context(), hello()))
	if model.KindOf(err) != model.Unavailable {
		t.Fatalf("got %v", err)
	}
	r := <-seen
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(r.URL, r.Header["X-Team"], r.Header["Authorization"], body["max_completion_tokens"], body["max_tokens"], body["reasoning_effort"])
	if want := "https://api.openai.com/v1/chat/completions [blue-team] [Bearer " + key + "] 5 <nil>low"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, frames := range [][][]byte{
		encode([]model.Delta{{Text: "a"}, {Call: &model.CallDelta{ID: "c", Name: "n"}}, {Finish: model.FinishStop}}),
		{[]byte("data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83c\\udf0d\\u00\"}}]}\n\n")},
		{event(body("m", "t", 3))},
	} {
		wire := ""
		for _, b := range frames {
			wire += string(b)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire string) {
		a, err := model.Collect(model.ProviderOpenAI+":gpt-test", play(t, wire).Stream(t.Context(), hello()))
		if err == nil && a.Finish == "" || err != nil && model.KindOf(err) == "" {
			t.Errorf("got finish %q, error %v", a.Finish, err)
		}
		for _, c := range a.Message.Calls {
			if c.ID == "" {
				t.Error("a call without id")
			}
		}
	})
}
