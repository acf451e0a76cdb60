package awshost

import (
	"context"
	"slices"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Announce sends recorded events, of which the data may be missing, to the queues of those who want them. It returns the position of the
// first event that was not sent to all, -1 if there is none.
func (h *Host) Announce(ctx context.Context, events []event.Event) (int, error) {
	failed, err := h.sender.Send(ctx, hook.Messages(h.control.Subscribers(), events))
	if err == nil {
		return -1, nil
	}
	return slices.IndexFunc(events, func(e event.Event) bool {
		return slices.ContainsFunc(failed, func(m hook.Message) bool { return m.SessionID == e.SessionID && slices.Contains(m.Indexes, e.Index) })
	}), err
}

// Receive tells a subscriber what a message says.
func (h *Host) Receive(ctx context.Context, m hook.Message) error {
	return hook.NewReceiver(h.control.Subscribers(), hook.Options{
		Sessions: func() *session.Store { return h.sessions }, Cursors: hook.NewCursors(h.kv, h.project.Slug), Clock: h.opts.Clock, Log: h.log,
	}).Receive(ctx, m)
}
