package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// bytesPerToken is the one measure of context there is: what triggers a compaction and what a compaction must reach.
// Four bytes a token is what English text comes to with the tokenizers in use. Where that is too few, the provider says so.
const bytesPerToken = 4

const (
	summaryPrompt = "Summarize the conversation below for yourself, so that you can go on with it without reading it again. " +
		"Keep what was asked, decided and found out, names, numbers and identifiers, and what remains to be done. Answer with the summary only.\n\n"
	summaryHead = "Summary of the conversation so far:\n\n"
)

var errNoRoom = errors.New("the conversation does not fit the model's context")

// room returns how many tokens a request may have: what the model reads, less what it may write and a tenth for safety.
func room(a bdk.Agent) int { return max(0, a.ContextTokens-a.ContextTokens/10-a.MaxOutputTokens) }

// space returns how many bytes of a request messages may have: instructions and tool schemas count too.
func (l *lane) space() int { return room(l.project.Agent)*bytesPerToken - l.fixed }

// tokens returns the size of a request with the given bytes of messages.
func (l *lane) tokens(messages int) int64 { return int64(l.fixed+messages) / bytesPerToken }

// crowded reports whether the next request would not fit.
func (l *lane) crowded() bool { return l.th.Bytes > l.space() }

// compact replaces the older part of a conversation that takes up space bytes or more by a summary, so that it takes up less. The summary gets up to a
// quarter of the space, the messages that stay get one, and half is free again. It returns errNoRoom if that cannot be done.
func (l *lane) compact(ctx context.Context, space int) error {
	share := space / 4
	if share <= 0 {
		return errNoRoom
	}
	old, kept := l.split(share)
	done := event.ContextCompacted{BeforeTokens: l.tokens(l.th.Bytes), Kept: len(kept), ParentCallID: l.parent}
	text := flatten(old)
	summary, err := l.summarize(ctx, headAndTail(text, 3*share), &done)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		l.log.WarnContext(ctx, "summary failed, older messages are cut instead", slog.Any("error", err))
		summary = text
	}
	done.Summary = summaryHead + headAndTail(summary, share)
	after := sizeOf(model.Message{Text: done.Summary})
	for _, m := range kept {
		after += sizeOf(m)
	}
	if after >= space {
		return errNoRoom
	}
	done.AfterTokens = l.tokens(after)
	return l.append(ctx, done)
}

// split parts the conversation into what is summarized and what stays: the newest messages that take up to budget bytes,
// never a result without its call.
func (l *lane) split(budget int) (old, kept []model.Message) {
	cut := len(l.th.Messages)
	for i := len(l.th.Messages) - 1; i > 0; i-- {
		if budget -= sizeOf(l.th.Messages[i]); budget < 0 {
			break
		}
		if l.th.Messages[i].Role != model.Results {
			cut = i
		}
	}
	return l.th.Messages[:cut], l.th.Messages[cut:]
}

// summarize asks the agent's models, in their order, for a summary.
func (l *lane) summarize(ctx context.Context, text string, done *event.ContextCompacted) (summary string, err error) {
	req := &model.Request{
		Messages:  []model.Message{{Role: model.User, Text: summaryPrompt + text}},
		MaxTokens: l.project.Agent.MaxOutputTokens,
		SessionID: l.ref.SessionID,
		Step:      l.th.Steps + 1,
	}
	for _, m := range l.models {
		var answer model.Answer
		err = l.patiently(ctx, m, func() (err error) {
			answer, err = collect(ctx, m, req)
			return err
		})
		switch {
		case err != nil:
			continue
		case strings.TrimSpace(answer.Message.Text) == "":
			err = fmt.Errorf("the summary of %s is empty", m.ID)
			continue
		}
		usage := event.Usage(answer.Usage)
		done.Usage, done.UsageOf = &usage, m.ID
		return answer.Message.Text, nil
	}
	return "", err
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
