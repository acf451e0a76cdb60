// Package memory lets an agent remember: a hook writes down each finished turn, and the model reads it in later sessions.
//
// The file bot/hooks/memory.go turns it on:
//
//	var Memory = memory.Hook()
//
// The model finds memory/journal.jsonl in the workspace of every session. Tell it so in the instructions, and that what is written there
// is what people and tools have said: to be weighed, not obeyed.
package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// Journal is the file of the deployment that the hook writes: a JSON object, a [Record], in each line.
const Journal = "memory/journal.jsonl"

const (
	maxText    = 4 << 10 // bytes of a message or a result
	keepOfFull = 4 << 20 // bytes of the journal that stay when it is full
)

// Record is one finished turn.
type Record struct {
	At          time.Time  `json:"at"` // its end, in UTC
	SessionID   string     `json:"sessionId"`
	ChannelID   string     `json:"channelId"`
	Status      string     `json:"status"` // completed, failed or cancelled
	Title       string     `json:"title,omitempty"`
	UserMessage string     `json:"userMessage"`      // its first 4 KiB
	Result      string     `json:"result,omitempty"` // its first 4 KiB; of a turn that failed, why
	Usage       *bdk.Usage `json:"usage,omitempty"`
}

// Hook returns a hook that adds each finished turn to the journal, those of sessions with the purpose eval and of dry runs left out. Of a journal
// that is full, at 16 MiB, the last 4 MiB stay.
func Hook() bdk.Hook {
	return bdk.DefineHook(bdk.HookSpec{},
		bdk.On(func(ctx context.Context, h *bdk.HookContext, e bdk.Event, data bdk.MessageReceived) error {
			if ignored(h) {
				return nil
			}
			return h.KV.Set(ctx, key(e), cut(data.Text))
		}),
		bdk.On(func(ctx context.Context, h *bdk.HookContext, e bdk.Event, data bdk.TurnCompleted) error {
			return write(ctx, h, e, Record{Status: "completed", Result: cut(data.Result), Usage: data.Usage})
		}),
		bdk.On(func(ctx context.Context, h *bdk.HookContext, e bdk.Event, data bdk.TurnFailed) error {
			status := "failed"
			if data.Status == "cancelled" {
				status = data.Status
			}
			return write(ctx, h, e, Record{Status: status, Result: cut(data.Message)})
		}),
	)
}

func ignored(h *bdk.HookContext) bool { return h.Session.Purpose == "eval" || h.Session.DryRun }

// key is where the message of a turn waits for the turn's end.
func key(e bdk.Event) string { return "memory/message/" + e.TurnID }

func write(ctx context.Context, h *bdk.HookContext, e bdk.Event, r Record) error {
	if ignored(h) {
		return nil
	}
	r.At, r.SessionID, r.ChannelID, r.Title = e.At.UTC(), h.Session.ID, h.Channel.ID, h.Session.Title
	message, err := h.KV.Get(ctx, key(e))
	if err == nil {
		err = json.Unmarshal(message.Value, &r.UserMessage)
	}
	if err != nil && !errors.Is(err, bdk.ErrNotFound) {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a turn: %w", err)
	}
	if err := add(ctx, h.Files.Deployment(), append(line, '\n')); err != nil {
		return err
	}
	return h.KV.Delete(ctx, key(e))
}

// add adds a line to the journal, and makes room for it if there is none.
func add(ctx context.Context, files bdk.Files, line []byte) error {
	err := files.Append(ctx, Journal, line)
	if bdkerr.CodeOf(err) != bdkerr.PayloadTooLarge {
		return err
	}
	all, err := files.Read(ctx, Journal)
	if err != nil {
		return err
	}
	rest := all[max(0, len(all)-keepOfFull):]
	for i, c := range rest {
		if c == '\n' {
			rest = rest[i+1:]
			break
		}
	}
	return files.Write(ctx, Journal, append(rest, line...))
}

// cut returns the beginning of a text, in whole characters.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	text = text[:maxText]
	for !utf8.ValidString(text) && len(text) > maxText-utf8.UTFMax {
		text = text[:len(text)-1]
	}
	return text + "…"
}
