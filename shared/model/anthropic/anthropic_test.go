package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/anthropic"
	"github.com/bdk-lambda/bdk/shared/model/modeltest"
)

const key = "sk-ant-test-0123456789"

func TestConformance(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Harness{
		New:         newModel,
		Secret:      key,
		Model:       model.ProviderAnthropic + ":claude-test",
		ContentType: "text/event-stream; charset=utf-8",
		Encode:      encode,
		Refusals:    refusals,
		Breaks: func(message string) []modeltest.Break {
			return []modeltest.Break{
				{Name: "overloaded", Frame: event("error", fault("overloaded_error", message)), Want: model.Overloaded},
				{Name: "throttled", Frame: event("error", fault("rate_limit_error", message)), Want: model.Throttled},
				{Name: "server", Frame: event("error", fault("api_error", message)), Want: model.Unavailable},
				{Name: "unknown", Frame: event("error", fault("new_error", message)), Want: model.Unavailable},
				{Name: "no JSON", Frame: []byte("event: x\ndata: {oops\n\n"), Want: model.Unavailable},
			}
		},
		Golden: "testdata/request.golden.json",
	})
}

func newModel(_ testing.TB, client *http.Client, url string) model.Model {
	return anthropic.New(client, key, "claude-test", &anthropic.Options{BaseURL: url + "/", Clock: clock.Fixed(modeltest.Now())})
}

func refusals(message string) []modeltest.Refusal {
	refusal := func(status int, typ, message string, want model.Kind) modeltest.Refusal {
		return modeltest.Refusal{
			Name: fmt.Sprint(status, " ", typ, " ", want), Status: status, Body: string(mustJSON(fault(typ, message))), Want: want,
		}
	}
	return []modeltest.Refusal{
		refusal(429, "rate_limit_error", message, model.Throttled),
		refusal(529, "overloaded_error", message, model.Overloaded),
		refusal(500, "api_error", message, model.Unavailable),
		refusal(504, "timeout_error", message, model.Unavailable),
		refusal(400, "invalid_request_error", message, model.Invalid),
		refusal(400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum", model.ContextLength),
		refusal(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2", model.ContextLength),
		refusal(413, "request_too_large", message, model.ContextLength),
		refusal(404, "not_found_error", message, model.Invalid),
		refusal(401, "authentication_error", message, model.Denied),
		refusal(403, "permission_error", message, model.Denied),
	}
}

func fault(typ, message string) map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": typ, "message": message}}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func event(name string, data map[string]any) []byte {
	data["type"] = name
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, mustJSON(data))
}

// An encoder keeps track of the content blocks.
type encoder struct {
	frames [][]byte
	usage  model.Usage
	blocks int         // begun so far
	kind   string      // of the block that is open beside those of calls; "" for none
	calls  map[int]int // blocks of the open calls
	finish model.FinishReason
}

// encode writes what Anthropic writes. Counts come at both ends of the answer, as there.
func encode(deltas []model.Delta) [][]byte {
	e := encoder{calls: map[int]int{}}
	for _, d := range deltas {
		if d.Usage != nil {
			e.usage = *d.Usage
		}
	}
	e.add("message_start", map[string]any{"message": map[string]any{"id": "m", "role": "assistant", "content": []any{}, "usage": map[string]any{
		"input_tokens": e.usage.InputTokens, "output_tokens": min(1, e.usage.OutputTokens),
		"cache_read_input_tokens": e.usage.CacheReadTokens, "cache_creation_input_tokens": nil,
	}}})
	e.add("ping", map[string]any{})
	for _, d := range deltas {
		e.delta(d)
	}
	if e.finish != "" {
		e.end()
	}
	return e.frames
}

func (e *encoder) add(name string, data map[string]any) {
	e.frames = append(e.frames, event(name, data))
}

func (e *encoder) delta(d model.Delta) {
	switch {
	case d.Text != "":
		e.piece("text", map[string]any{"type": "text_delta", "text": d.Text})
	case d.Reasoning != "":
		e.piece("thinking", map[string]any{"type": "thinking_delta", "thinking": d.Reasoning})
	case d.Signature != "":
		e.piece("thinking", map[string]any{"type": "signature_delta", "signature": d.Signature})
		e.close()
	case d.Call != nil:
		e.close()
		if d.Call.ID != "" {
			e.calls[d.Call.Index] = e.open(map[string]any{"type": "tool_use", "id": d.Call.ID, "name": d.Call.Name, "input": map[string]any{}})
		}
		if d.Call.Args != "" {
			e.add("content_block_delta", map[string]any{"index": e.calls[d.Call.Index], "delta": map[string]any{"type": "input_json_delta", "partial_json": d.Call.Args}})
		}
	case d.Finish != "":
		e.finish = d.Finish
	}
}

func (e *encoder) open(block map[string]any) int {
	e.add("content_block_start", map[string]any{"index": e.blocks, "content_block": block})
	e.blocks++
	return e.blocks - 1
}

func (e *encoder) piece(kind string, delta map[string]any) {
	if e.kind != kind {
		e.close()
		e.open(map[string]any{"type": kind, kind: ""})
		e.kind = kind
	}
	e.add("content_block_delta", map[string]any{"index": e.blocks - 1, "delta": delta})
}

func (e *encoder) close() {
	if e.kind != "" {
		e.add("content_block_stop", map[string]any{"index": e.blocks - 1})
		e.kind = ""
	}
}

func (e *encoder) end() {
	e.close()
	for _, index := range e.calls {
		e.add("content_block_stop", map[string]any{"index": index})
	}
	reason := map[model.FinishReason]string{
		model.FinishStop: "end_turn", model.FinishToolCalls: "tool_use", model.FinishLength: "max_tokens", model.FinishContentFilter: "refusal",
	}[e.finish]
	if reason == "" {
		reason = string(e.finish)
	}
	e.add("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason}, "usage": map[string]any{"output_tokens": e.usage.OutputTokens}})
	e.add("message_stop", map[string]any{})
}

// server is a transport that answers every request with wire.
type server struct {
	wire string
	seen chan *http.Request // may be nil
}

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.seen != nil {
		s.seen <- r
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(s.wire)), Request: r}, nil
}

func hello() *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}}
}

func play(t testing.TB, wire string) model.Model {
	t.Helper()
	return newModel(t, &http.Client{Transport: server{wire: wire}}, "http://example.test")
}

func TestBlocksOutOfTheOrdinary(t *testing.T) {
	t.Parallel()
	start := func(index int, block string) string {
		return fmt.Sprintf("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":%s}\n\n", index, block)
	}
	stop := func(index int) string {
		return fmt.Sprintf("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", index)
	}
	const end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"
	wire := start(0, `{"type":"redacted_thinking","data":"c2VjcmV0"}`) + stop(0) +
		start(1, `{"type":"thinking","thinking":"","signature":""}`) +
		"data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s1\"}}\n\n" + stop(1) +
		start(2, `{"type":"text","text":"hi"}`) + stop(2) +
		start(3, `{"type":"tool_use","id":"a","name":"x","input":{"k":1}}`) + stop(3) +
		start(4, `{"type":"server_tool_use","id":"s","name":"search","input":{}}`) +
		"data: {\"type\":\"content_block_delta\",\"index\":4,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n" + stop(4) +
		"data: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"type\":\"text_delta\",\"text\":\"stray\"}}\n\n" + stop(9) +
		"data: {\"type\":\"brand_new_event\"}\n\n" + end
	got, err := model.Collect(model.ProviderAnthropic+":claude-test", play(t, wire).Stream(t.Context(), hello()))
	if err != nil {
		t.Fatal(err)
	}
	want := model.Answer{Finish: model.FinishStop, Message: model.Message{
		Role: model.Assistant, Text: "hi",
		Reasoning: []model.Reasoning{
			{Signature: "redacted:c2VjcmV0", Model: model.ProviderAnthropic + ":claude-test"}, {Signature: "s1", Model: model.ProviderAnthropic + ":claude-test"},
		},
		Calls: []model.Call{{ID: "a", Name: "x", Args: json.RawMessage(`{"k":1}`)}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestDefaultsAndThinking(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts *anthropic.Options
		want string
	}{
		"defaults": {nil, "https://api.anthropic.com/v1/messages [" + key + "] [2023-06-01] 8192 <nil> map[type:ephemeral]"},
		"thinking": {
			&anthropic.Options{ThinkingBudget: 10_000, NoCache: true},
			"https://api.anthropic.com/v1/messages [" + key + "] [2023-06-01] 11024 map[budget_tokens:10000 type:enabled] <nil>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan *http.Request, 1)
			m := anthropic.New(&http.Client{Transport: server{seen: seen}}, key, "claude-test", tc.opts)
			if _, err := model.Collect("", m.Stream(t.Context(), hello())); model.KindOf(err) != model.Unavailable {
				t.Fatalf("got %v", err)
			}
			r := <-seen
			var body struct {
				MaxTokens int `json:"max_tokens"`
				Thinking  any `json:"thinking"`
				Messages  []struct {
					Content []struct {
						Cache any `json:"cache_control"`
					} `json:"content"`
				} `json:"messages"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(r.URL, r.Header["X-Api-Key"], r.Header["Anthropic-Version"], body.MaxTokens, body.Thinking, body.Messages[0].Content[0].Cache)
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	var wire strings.Builder
	for _, frame := range encode([]model.Delta{
		{Reasoning: "a"}, {Signature: "s"}, {Text: "a"}, {Call: &model.CallDelta{ID: "c", Name: "n", Args: "{}"}}, {Finish: model.FinishStop},
	}) {
		wire.Write(frame)
	}
	f.Add(wire.String())
	f.Add(string(event("error", fault("overloaded_error", "m"))))
	f.Fuzz(func(t *testing.T, wire string) {
		a, err := model.Collect(model.ProviderAnthropic+":claude-test", play(t, wire).Stream(t.Context(), hello()))
		if err == nil && a.Finish == "" || err != nil && model.KindOf(err) == "" {
			t.Errorf("got finish %q, error %v", a.Finish, err)
		}
	})
}
