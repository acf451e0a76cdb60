package hook

import (
	"context"
	"fmt"
	"slices"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
)

// Message tells a subscriber, in another process, which events it is to be told.
type Message struct {
	Subscriber string  `json:"subscriber"`
	SessionID  string  `json:"sessionId"`
	Indexes    []int64 `json:"indexes"` // ascending
}

// Messages returns what subscribers are to be told of recorded events, of which only the data may be missing: one message for each subscriber
// and session, in the order in which the events are first wanted.
func Messages(subs []Subscriber, events []event.Event) []Message {
	var all []Message
	for _, e := range events {
		for _, sub := range subs {
			if !sub.Wants(e) {
				continue
			}
			i := slices.IndexFunc(all, func(m Message) bool { return m.Subscriber == sub.Name && m.SessionID == e.SessionID })
			if i < 0 {
				all = append(all, Message{Subscriber: sub.Name, SessionID: e.SessionID})
				i = len(all) - 1
			}
			all[i].Indexes = append(all[i].Indexes, e.Index)
		}
	}
	return all
}

// Receiver tells the subscribers of an agent what messages say, which may come more than once. It is safe for concurrent use.
type Receiver struct {
	teller teller
	subs   []Subscriber
}

// NewReceiver returns a receiver. Options.Cursors is required.
func NewReceiver(subs []Subscriber, opts Options) *Receiver {
	return &Receiver{teller{Options: opts, claim: true}, subs}
}

// Receive tells the subscriber of a message its events. An error means that the message should come again. A subscriber that is not there
// any more is told nothing.
func (r *Receiver) Receive(ctx context.Context, m Message) error {
	i := slices.IndexFunc(r.subs, func(s Subscriber) bool { return s.Name == m.Subscriber })
	if i < 0 {
		return nil
	}
	events, err := r.read(ctx, m)
	if err != nil {
		return fmt.Errorf("reading what %s is to be told: %w", m.Subscriber, err)
	}
	for _, e := range events {
		if err := r.teller.tell(ctx, r.subs[i], e); err != nil {
			return fmt.Errorf("telling %s event %d of session %s: %w", m.Subscriber, e.Index, m.SessionID, err)
		}
	}
	return nil
}

// read returns the events that a message names, none if the session is not there any more. All are read before the first is told: one that
// cannot be read now must not be lost.
func (r *Receiver) read(ctx context.Context, m Message) ([]event.Event, error) {
	if len(m.Indexes) == 0 {
		return nil, nil
	}
	c := r.teller.Sessions().Cursor(m.SessionID, m.Indexes[0])
	defer c.Close()
	var found []event.Event
	for last := m.Indexes[len(m.Indexes)-1]; c.Next() <= last; {
		events, err := c.Read(ctx)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			if _, err := r.teller.Sessions().Get(ctx, m.SessionID); bdkerr.CodeOf(err) == bdkerr.NotFound {
				return nil, nil
			}
			return nil, fmt.Errorf("session %s has no event %d yet", m.SessionID, c.Next())
		}
		for _, e := range events {
			if slices.Contains(m.Indexes, e.Index) {
				found = append(found, e)
			}
		}
	}
	return found, nil
}
