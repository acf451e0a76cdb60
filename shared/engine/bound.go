package engine

import (
	"fmt"

	"github.com/bdk-lambda/bdk/shared/model"
)

// What an answer may be, whatever the provider sends: maxCalls calls, and bytesPerOutputToken bytes for each token it was
// allowed, though at least minAnswerBytes. No usage counts more than maxUsage tokens, or less than none.
const (
	maxCalls            = 1000
	bytesPerOutputToken = 32
	minAnswerBytes      = 1 << 20
	maxUsage            = 1 << 40
)

// bound watches over one answer.
type bound struct {
	limit int // bytes
	bytes int
}

func newBound(req *model.Request) *bound {
	return &bound{limit: max(minAnswerBytes, bytesPerOutputToken*req.MaxTokens)}
}

// check returns a delta as it may be used, or why the answer has to end.
func (b *bound) check(d model.Delta) (model.Delta, error) {
	b.bytes += len(d.Text) + len(d.Reasoning) + len(d.Signature)
	if c := d.Call; c != nil {
		b.bytes += len(c.ID) + len(c.Name) + len(c.Args)
		if c.Index >= maxCalls {
			return d, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("limit reached: the answer asks for more than %d calls", maxCalls)}
		}
	}
	if b.bytes > b.limit {
		return d, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("limit reached: the answer has more than %d bytes", b.limit)}
	}
	if u := d.Usage; u != nil {
		d.Usage = &model.Usage{
			InputTokens: tokens(u.InputTokens), OutputTokens: tokens(u.OutputTokens), CacheReadTokens: tokens(u.CacheReadTokens),
			CacheWriteTokens: tokens(u.CacheWriteTokens), ReasoningTokens: tokens(u.ReasoningTokens),
		}
	}
	return d, nil
}

func tokens(n int64) int64 { return min(max(n, 0), maxUsage) }
