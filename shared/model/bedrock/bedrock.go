// Package bedrock asks models over ConverseStream of Amazon Bedrock.
//
// Signed reasoning is yielded and sent back unchanged; a block that the provider sent encrypted has no text and a signature
// that begins with "redacted:". The session's id goes along as request metadata "session".
package bedrock

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/schemas"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go/transport/http/protocol/restjson1"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
)

// DefaultMaxTokens is the bound on output tokens of a request that sets none. The provider reserves it from the account's
// quota for the time of the call.
const DefaultMaxTokens = 4096

// minAnswer is how many output tokens a request leaves at least for what is not thinking.
const minAnswer = 1024

var _ model.Model = (*Model)(nil)

// Options are the optional settings of [New]. The zero value is fine.
type Options struct {
	ThinkingBudget int         // tokens for the extended thinking of those models of Anthropic that do not decide themselves, at least 1024; default 0: not sent
	Cache          bool        // set cache points after instructions and conversation: only for models that know them
	Clock          clock.Clock // default clock.System{}
}

// Model is one model. It makes no retries, whatever the client's settings. It is safe for concurrent use.
type Model struct {
	client   *bedrockruntime.Client
	id       string
	thinking int
	cache    bool
	clock    clock.Clock
}

// New returns the model, or the inference profile, with the given id or ARN. Opts may be nil.
func New(client *bedrockruntime.Client, id string, opts *Options) *Model {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	return &Model{client: client, id: id, thinking: o.ThinkingBudget, cache: o.Cache, clock: o.Clock}
}

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := answer{yield: yield, blocks: map[int32]*block{}}
		err := m.stream(ctx, req, &a)
		switch {
		case a.stopped || err == nil:
		case ctx.Err() != nil:
			yield(model.Delta{}, context.Cause(ctx))
		default:
			yield(model.Delta{}, m.mapError(ctx, err))
		}
	}
}

func (m *Model) stream(ctx context.Context, req *model.Request, a *answer) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	in, err := m.request(req)
	if err != nil {
		return &model.Error{Kind: model.Invalid, Message: err.Error(), Err: err}
	}
	out, err := m.client.ConverseStream(ctx, in, perCall)
	if err != nil {
		return err
	}
	stream := out.GetStream()
	defer stream.Close() //nolint:errcheck // the answer was read as far as it is wanted
	for e := range stream.Events() {
		if a.event(e); a.stopped {
			return nil
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	if a.finish == "" { // the SDK reports no error for a stream that just ends
		return &model.Error{Kind: model.Unavailable, Message: "the provider closed the stream before the answer ended"}
	}
	a.send(model.Delta{Finish: a.finish})
	if a.usage != nil {
		a.send(model.Delta{Usage: a.usage})
	}
	return nil
}

// perCall turns retries off, and works around two faults of the SDK: streams that are read at the same time share a decoder of
// the client, and see [steadyClient].
func perCall(o *bedrockruntime.Options) {
	o.Retryer = aws.NopRetryer{}
	o.Protocol = restjson1.New(schemas.AmazonBedrockFrontendService)
	o.HTTPClient = steadyClient{next: o.HTTPClient}
}

// A steadyClient sends bodies from memory. The body that the SDK makes fails when it is asked for more after the answer began:
// the transport then thinks that sending failed, and cuts the answer.
type steadyClient struct{ next bedrockruntime.HTTPClient }

// Do sends the request.
func (c steadyClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return c.next.Do(r)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return c.next.Do(r)
}

// An answer is the state of one stream.
type answer struct {
	yield   func(model.Delta, error) bool
	stopped bool // the consumer broke off

	blocks map[int32]*block // by the provider's index
	calls  int
	usage  *model.Usage
	finish model.FinishReason
}

type block struct {
	call      int // position among the calls; -1 for a block that is none
	signature string
	redacted  []byte
}

// send yields a delta unless the consumer broke off before.
func (a *answer) send(d model.Delta) {
	a.stopped = a.stopped || !a.yield(d, nil)
}

func (a *answer) event(e types.ConverseStreamOutput) {
	switch e := e.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		a.open(&e.Value)
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		a.piece(a.at(e.Value.ContentBlockIndex), e.Value.Delta)
	case *types.ConverseStreamOutputMemberContentBlockStop:
		a.close(aws.ToInt32(e.Value.ContentBlockIndex))
	case *types.ConverseStreamOutputMemberMessageStop:
		a.finish = finish(e.Value.StopReason)
	case *types.ConverseStreamOutputMemberMetadata:
		if e.Value.Usage != nil {
			a.usage = usage(e.Value.Usage)
		}
	}
}

// at returns the block of an index, which is opened here when no start event came: text and reasoning have none.
func (a *answer) at(index *int32) *block {
	b := a.blocks[aws.ToInt32(index)]
	if b == nil {
		b = &block{call: -1}
		a.blocks[aws.ToInt32(index)] = b
	}
	return b
}

func (a *answer) open(e *types.ContentBlockStartEvent) {
	b := a.at(e.ContentBlockIndex)
	if start, ok := e.Start.(*types.ContentBlockStartMemberToolUse); ok {
		b.call = a.calls
		a.calls++
		a.send(model.Delta{Call: &model.CallDelta{
			Index: b.call, ID: aws.ToString(start.Value.ToolUseId), Name: aws.ToString(start.Value.Name),
		}})
	}
}

func (a *answer) piece(b *block, d types.ContentBlockDelta) {
	switch d := d.(type) {
	case *types.ContentBlockDeltaMemberText:
		if d.Value != "" {
			a.send(model.Delta{Text: d.Value})
		}
	case *types.ContentBlockDeltaMemberToolUse:
		if args := aws.ToString(d.Value.Input); args != "" && b.call >= 0 {
			a.send(model.Delta{Call: &model.CallDelta{Index: b.call, Args: args}})
		}
	case *types.ContentBlockDeltaMemberReasoningContent:
		switch d := d.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			if d.Value != "" {
				a.send(model.Delta{Reasoning: d.Value})
			}
		case *types.ReasoningContentBlockDeltaMemberSignature:
			b.signature += d.Value
		case *types.ReasoningContentBlockDeltaMemberRedactedContent:
			b.redacted = append(b.redacted, d.Value...)
		}
	}
}

func (a *answer) close(index int32) {
	b := a.blocks[index]
	if b == nil {
		return
	}
	delete(a.blocks, index)
	if b.signature == "" && len(b.redacted) > 0 {
		b.signature = redacted + base64.StdEncoding.EncodeToString(b.redacted)
	}
	if b.signature != "" {
		a.send(model.Delta{Signature: b.signature})
	}
}

func usage(u *types.TokenUsage) *model.Usage {
	return &model.Usage{
		InputTokens:      int64(aws.ToInt32(u.InputTokens)),
		OutputTokens:     int64(aws.ToInt32(u.OutputTokens)),
		CacheReadTokens:  int64(aws.ToInt32(u.CacheReadInputTokens)),
		CacheWriteTokens: int64(aws.ToInt32(u.CacheWriteInputTokens)),
	}
}

func finish(reason types.StopReason) model.FinishReason {
	switch reason { //nolint:exhaustive // the rest, and what is yet to come, is FinishOther
	case types.StopReasonEndTurn, types.StopReasonStopSequence:
		return model.FinishStop
	case types.StopReasonToolUse:
		return model.FinishToolCalls
	case types.StopReasonMaxTokens, types.StopReasonModelContextWindowExceeded:
		return model.FinishLength
	case types.StopReasonContentFiltered, types.StopReasonGuardrailIntervened:
		return model.FinishContentFilter
	}
	return model.FinishOther
}
