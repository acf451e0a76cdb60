package bedrock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/bedrock"
	"github.com/bdk-lambda/bdk/shared/model/modeltest"
)

const secret = "wJalrXUtnTEST0123456789"

func TestConformance(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Harness{
		New:         func(_ testing.TB, client *http.Client, url string) model.Model { return newModel(client, url, nil) },
		Secret:      secret,
		Model:       model.ProviderBedrock + ":eu.acme.large-v1:0",
		ContentType: "application/vnd.amazon.eventstream",
		Encode:      encode,
		Refusals:    refusals,
		Breaks:      breaks,
		Golden:      "testdata/request.golden.json",
	})
}

func credentials() aws.CredentialsProviderFunc {
	return func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "other", SessionToken: secret}, nil
	}
}

func newModel(client *http.Client, url string, opts *bedrock.Options) model.Model {
	o := bedrock.Options{Clock: clock.Fixed(modeltest.Now())}
	if opts != nil {
		o = *opts
	}
	return bedrock.New(bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(url), HTTPClient: client, Credentials: credentials(),
		RetryMaxAttempts: 3, // which the adapter must not heed
	}), "eu.acme.large-v1:0", &o)
}

func refusals(message string) []modeltest.Refusal {
	refusal := func(status int, code, message string, want model.Kind) modeltest.Refusal {
		return modeltest.Refusal{
			Name: fmt.Sprint(status, " ", code, " ", want), Status: status,
			Header: http.Header{"X-Amzn-ErrorType": {code + ":http://internal.amazon.com/coral/"}},
			Body:   string(mustJSON(map[string]any{"message": message})), Want: want,
		}
	}
	return []modeltest.Refusal{
		refusal(429, "ThrottlingException", message, model.Throttled),
		refusal(429, "ModelNotReadyException", message, model.Overloaded),
		refusal(400, "ServiceQuotaExceededException", message, model.Throttled),
		refusal(503, "ServiceUnavailableException", message, model.Overloaded),
		refusal(500, "InternalServerException", message, model.Unavailable),
		refusal(408, "ModelTimeoutException", message, model.Unavailable),
		refusal(424, "ModelErrorException", message, model.Unavailable),
		refusal(400, "ValidationException", message, model.Invalid),
		refusal(400, "ValidationException", "Input is too long for requested model.", model.ContextLength),
		refusal(404, "ResourceNotFoundException", message, model.Invalid),
		refusal(403, "AccessDeniedException", message, model.Denied),
		refusal(403, "UnrecognizedClientException", message, model.Denied),
		refusal(403, "BrandNewException", message, model.Denied),
		{Name: "proxy", Status: 502, Body: "<html>" + message, Want: model.Unavailable},
	}
}

func breaks(message string) []modeltest.Break {
	exception := func(code string, want model.Kind) modeltest.Break {
		return modeltest.Break{
			Name:  code,
			Frame: frame("exception", ":exception-type", code, map[string]any{"message": message}),
			Want:  want,
		}
	}
	broken := frame("event", ":event-type", "messageStop", map[string]any{"stopReason": "end_turn"})
	broken[len(broken)-1]++ // the checksum
	return []modeltest.Break{
		exception("throttlingException", model.Throttled),
		exception("modelStreamErrorException", model.Unavailable),
		exception("internalServerException", model.Unavailable),
		exception("serviceUnavailableException", model.Overloaded),
		exception("validationException", model.Invalid),
		exception("brandNewException", model.Unavailable),
		{Name: "broken checksum", Frame: broken, Want: model.Unavailable},
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// frame encodes a message of the AWS event stream.
func frame(messageType, typeHeader, typ string, payload any) []byte {
	m := eventstream.Message{Payload: mustJSON(payload)}
	m.Headers.Set(":message-type", eventstream.StringValue(messageType))
	m.Headers.Set(typeHeader, eventstream.StringValue(typ))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// An encoder keeps track of the content blocks.
type encoder struct {
	frames [][]byte
	blocks int         // begun so far
	kind   string      // of the block that is open beside those of calls; "" for none
	calls  map[int]int // blocks of the open calls
}

// encode writes what Bedrock writes: text and reasoning have no start event, usage comes behind the end of the message.
func encode(deltas []model.Delta) [][]byte {
	e := encoder{calls: map[int]int{}}
	e.add("messageStart", map[string]any{"role": "assistant"})
	for _, d := range deltas {
		e.delta(d)
	}
	return e.frames
}

func (e *encoder) add(typ string, payload map[string]any) {
	e.frames = append(e.frames, frame("event", ":event-type", typ, payload))
}

func (e *encoder) delta(d model.Delta) {
	switch {
	case d.Text != "":
		e.piece("text", map[string]any{"text": d.Text})
	case d.Reasoning != "":
		e.piece("reasoning", map[string]any{"reasoningContent": map[string]any{"text": d.Reasoning}})
	case d.Signature != "":
		e.piece("reasoning", map[string]any{"reasoningContent": map[string]any{"signature": d.Signature}})
		e.close()
	case d.Call != nil:
		e.call(d.Call)
	case d.Usage != nil:
		e.add("metadata", map[string]any{"metrics": map[string]any{"latencyMs": 3}, "usage": map[string]any{
			"inputTokens": d.Usage.InputTokens, "outputTokens": d.Usage.OutputTokens, "totalTokens": d.Usage.Total(),
			"cacheReadInputTokens": d.Usage.CacheReadTokens,
		}})
	case d.Finish != "":
		e.end(d.Finish)
	}
}

func (e *encoder) call(c *model.CallDelta) {
	e.close()
	if c.ID != "" {
		e.calls[c.Index] = e.blocks
		e.add("contentBlockStart", map[string]any{"contentBlockIndex": e.blocks, "start": map[string]any{
			"toolUse": map[string]any{"toolUseId": c.ID, "name": c.Name},
		}})
		e.blocks++
	}
	if c.Args != "" {
		e.add("contentBlockDelta", map[string]any{
			"contentBlockIndex": e.calls[c.Index], "delta": map[string]any{"toolUse": map[string]any{"input": c.Args}},
		})
	}
}

func (e *encoder) piece(kind string, delta map[string]any) {
	if e.kind != kind {
		e.close()
		e.blocks++
		e.kind = kind
	}
	e.add("contentBlockDelta", map[string]any{"contentBlockIndex": e.blocks - 1, "delta": delta})
}

func (e *encoder) close() {
	if e.kind != "" {
		e.add("contentBlockStop", map[string]any{"contentBlockIndex": e.blocks - 1})
		e.kind = ""
	}
}

func (e *encoder) end(reason model.FinishReason) {
	e.close()
	for _, index := range e.calls {
		e.add("contentBlockStop", map[string]any{"contentBlockIndex": index})
	}
	word := map[model.FinishReason]string{
		model.FinishStop: "end_turn", model.FinishToolCalls: "tool_use", model.FinishLength: "max_tokens",
		model.FinishContentFilter: "content_filtered",
	}[reason]
	if word == "" {
		word = string(reason)
	}
	e.add("messageStop", map[string]any{"stopReason": word})
}

// serve answers with frames and hands the body of the request on.
func serve(t *testing.T, frames [][]byte) (url string, bodies <-chan map[string]any) {
	t.Helper()
	seen := make(chan map[string]any, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		seen <- body
		_, _ = w.Write(bytes.Join(frames, nil))
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

func hello(messages ...model.Message) *model.Request {
	return &model.Request{Messages: append([]model.Message{{Role: model.User, Text: "hello"}}, messages...)}
}

func TestRedactedReasoningGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	e := encoder{calls: map[int]int{}}
	e.piece("r", map[string]any{"reasoningContent": map[string]any{"redactedContent": []byte("sec")}})
	e.piece("r", map[string]any{"reasoningContent": map[string]any{"redactedContent": []byte("ret")}})
	e.delta(model.Delta{Text: "x"})
	e.end(model.FinishStop)
	url, bodies := serve(t, e.frames)
	m := newModel(http.DefaultClient, url, nil)
	got, err := model.Collect(model.ProviderBedrock+":eu.acme.large-v1:0", m.Stream(t.Context(), hello()))
	if err != nil {
		t.Fatal(err)
	}
	<-bodies
	want := []model.Reasoning{{Signature: "redacted:c2VjcmV0", Model: model.ProviderBedrock + ":eu.acme.large-v1:0"}}
	if diff := cmp.Diff(want, got.Message.Reasoning); diff != "" {
		t.Errorf("reasoning (-want +got):\n%s", diff)
	}
	next := hello(got.Message, model.Message{Role: model.User, Text: "go on"})
	if _, err := model.Collect(model.ProviderBedrock+":eu.acme.large-v1:0", m.Stream(t.Context(), next)); err != nil {
		t.Fatal(err)
	}
	sent := fmt.Sprint((<-bodies)["messages"])
	if want := "map[reasoningContent:map[redactedContent:c2VjcmV0]]"; !bytes.Contains([]byte(sent), []byte(want)) {
		t.Errorf("sent %s, want %s in it", sent, want)
	}
}

func TestDefaultsThinkingAndCache(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts *bedrock.Options
		want string
	}{
		"defaults": {&bedrock.Options{}, "map[maxTokens:4096] <nil> [map[text:sys]] [map[text:hello]]"},
		"both": {
			&bedrock.Options{ThinkingBudget: 5000, Cache: true},
			"map[maxTokens:6024] map[thinking:map[budget_tokens:5000 type:enabled]] [map[text:sys] map[cachePoint:map[type:default]]] [map[text:hello] map[cachePoint:map[type:default]]]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, bodies := serve(t, encode([]model.Delta{{Finish: model.FinishStop}}))
			req := hello()
			req.Instructions = "sys"
			if _, err := model.Collect("", newModel(http.DefaultClient, url, tc.opts).Stream(t.Context(), req)); err != nil {
				t.Fatal(err)
			}
			body := <-bodies
			messages, _ := body["messages"].([]any)
			first, _ := messages[0].(map[string]any)
			got := fmt.Sprint(body["inferenceConfig"], body["additionalModelRequestFields"], body["system"], first["content"])
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestMissingCredentialsAreDenied(t *testing.T) {
	t.Parallel()
	m := bedrock.New(bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-west-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no credentials found")
		}),
	}), "acme", nil)
	_, err := model.Collect("", m.Stream(t.Context(), hello()))
	if model.KindOf(err) != model.Denied {
		t.Errorf("got %v, want kind denied", err)
	}
}

func TestWhatCannotBeSentIsInvalid(t *testing.T) {
	t.Parallel()
	m := newModel(http.DefaultClient, "http://127.0.0.1:1", nil)
	req := hello()
	req.Tools = []model.Tool{{Name: "x", InputSchema: json.RawMessage(`[1]`)}}
	if _, err := model.Collect("", m.Stream(t.Context(), req)); model.KindOf(err) != model.Invalid {
		t.Errorf("schema that is no object: got %v", err)
	}
	broken := model.Message{Role: model.Assistant, Text: "x", Reasoning: []model.Reasoning{{Signature: "redacted:?", Model: model.ProviderBedrock + ":eu.acme.large-v1:0"}}}
	if _, err := model.Collect("", m.Stream(t.Context(), hello(broken, hello().Messages[0]))); model.KindOf(err) != model.Invalid {
		t.Errorf("broken signature: got %v", err)
	}
}
