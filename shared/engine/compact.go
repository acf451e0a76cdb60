package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// bytesPerToken is the one measure of context there is: what triggers a compaction and what a compaction must reach.
// Four bytes a token is what English text and JSON come to with the tokenizers in use; it errs on the safe side for others.
const bytesPerToken = 4

const (
	summaryPrompt = "Summarize the conversation below for yourself, so that you can go on with it without reading it again. " +
		"Keep what was asked, decided and found out, names, numbers and identifiers, and what remains to be done. Answer with the summary only.\n\n"
	summaryHead = "Summary of the conversation so far:\n\n"
)

// room returns how many tokens a request may have: what the model reads, less what it may write and a tenth for safety.
func (r *run) room() int64 {
	return max(0, int64(r.project.Agent.ContextTokens)*9/10-int64(r.project.Agent.MaxOutputTokens))
}

// tokens returns the size of a request with the given bytes of messages: instructions and tool schemas count too.
func (r *run) tokens(messages int) int64 { return int64(r.fixed+messages) / bytesPerToken }

// crowded reports whether the next request would not fit.
func (r *run) crowded() bool { return r.tokens(r.t.Bytes) > r.room() }

// compact replaces the older part of the conversation by a summary. If even that does not make it fit, the turn fails.
func (r *run) compact(ctx context.Context) error {
	old, kept := r.split()
	before := r.tokens(r.t.Bytes)
	done := event.ContextCompacted{BeforeTokens: before, Kept: len(kept)}
	limit := r.quarter()
	text := flatten(old)
	summary, err := r.summarize(ctx, headAndTail(text, 3*limit), &done)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.log.WarnContext(ctx, "summary failed, older messages are cut instead", slog.Any("error", err))
		summary = text
	}
	done.Summary = summaryHead + headAndTail(summary, limit)
	after := sizeOf(model.Message{Text: done.Summary})
	for _, m := range kept {
		after += sizeOf(m)
	}
	done.AfterTokens = r.tokens(after)
	if len(old) == 0 || done.AfterTokens >= before || done.AfterTokens > r.room() {
		return r.fail(ctx, fmt.Sprintf("limit reached: the conversation of about %d tokens does not fit the model's context of %d (ContextTokens)",
			before, r.project.Agent.ContextTokens))
	}
	return r.append(ctx, done)
}

// quarter returns a quarter of the bytes that messages may have: the summary gets one, the messages that stay get one, and
// half is free again.
func (r *run) quarter() int {
	return max(0, int(r.room()*bytesPerToken)-r.fixed) / 4
}

// split parts the conversation into what is summarized and what stays: the newest messages that take up to a quarter
// of the room, never a result without its call.
func (r *run) split() (old, kept []model.Message) {
	budget := r.quarter()
	cut := len(r.t.Messages)
	for i := len(r.t.Messages) - 1; i > 0; i-- {
		if budget -= sizeOf(r.t.Messages[i]); budget < 0 {
			break
		}
		if r.t.Messages[i].Role != model.Results {
			cut = i
		}
	}
	return r.t.Messages[:cut], r.t.Messages[cut:]
}

// summarize asks the agent's model for a summary.
func (r *run) summarize(ctx context.Context, text string, done *event.ContextCompacted) (string, error) {
	m := r.deps.Models[0]
	req := &model.Request{
		Messages:  []model.Message{{Role: model.User, Text: summaryPrompt + text}},
		MaxTokens: r.project.Agent.MaxOutputTokens,
		SessionID: r.ref.SessionID,
		Step:      r.t.Turn.Steps + 1,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, err := model.Collect(m.ID, m.Model.Stream(ctx, req))
	if err != nil {
		return "", err
	}
	usage := event.Usage(answer.Usage)
	done.Usage, done.UsageOf = &usage, m.ID
	if strings.TrimSpace(answer.Message.Text) == "" {
		return "", fmt.Errorf("the summary of %s is empty", m.ID)
	}
	return answer.Message.Text, nil
}

// flatten writes messages down as text.
func flatten(messages []model.Message) string {
	var b strings.Builder
	for _, m := range messages {
		if m.Text != "" {
			fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text)
		}
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "call of %s: %s\n", c.Name, c.Args)
		}
		for _, res := range m.Results {
			fmt.Fprintf(&b, "result of %s: %s\n", res.Name, res.Output)
		}
	}
	return b.String()
}
