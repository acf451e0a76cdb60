package dynamosession

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// The attributes of an event. One of data, packed and ref holds its data.
const (
	eventID = "id"
	at      = "at" // milliseconds
	data    = "d"  // JSON as it is
	packed  = "z"  // deflated
	ref     = "ref"
	size    = "size" // bytes of what ref names
	preview = "pre"
)

const (
	packAbove  = 768      // bytes of data: less fits into a write unit with the rest of its item
	spillAbove = 16 << 10 // bytes as they would be stored
	previewMax = 512      // bytes of data that stay in the log
)

// items returns events as they are stored. What is too large is in the blob store when it returns.
func (d *Driver) items(ctx context.Context, events []event.Event) ([]dynamox.Item, error) {
	items := make([]dynamox.Item, len(events))
	for i, e := range events {
		item := dynamox.Item{
			tables.SessionID: dynamox.S(e.SessionID), tables.Index: dynamox.N(e.Index),
			eventID: dynamox.S(e.ID), tables.EventType: dynamox.S(string(e.Type)), at: dynamox.N(e.At.UnixMilli()),
		}
		if e.TurnID != "" {
			item[tables.EventTurn] = dynamox.S(e.TurnID)
		}
		if err := d.store(ctx, item, e); err != nil {
			return nil, err
		}
		items[i] = item
	}
	return items, nil
}

// store puts the data of an event into its item, or where the item says.
func (d *Driver) store(ctx context.Context, item dynamox.Item, e event.Event) error {
	if len(e.Data) <= packAbove {
		item[data] = dynamox.S(string(e.Data))
		return nil
	}
	small, err := deflate(e.Data)
	if err != nil {
		return fmt.Errorf("compressing event %d: %w", e.Index, err)
	}
	switch {
	case len(small) > spillAbove:
		name, err := d.blobs.Put(ctx, salted(e.SessionID, e.Data))
		if err != nil {
			return fmt.Errorf("keeping the data of event %d: %w", e.Index, err)
		}
		item[ref], item[size], item[preview] = dynamox.S(string(name)), dynamox.N(int64(len(e.Data))), dynamox.S(beginning(e.Data))
	case len(small) < len(e.Data):
		item[packed] = dynamox.B(small)
	default:
		item[data] = dynamox.S(string(e.Data))
	}
	return nil
}

// salted returns data as one session keeps it in the blob store. No two sessions share a blob, so that each can remove its own.
func salted(sessionID string, data []byte) []byte {
	return append(append(make([]byte, 0, len(sessionID)+1+len(data)), sessionID+"\n"...), data...)
}

// load returns the data that was stored as ref for a session.
func (d *Driver) load(ctx context.Context, sessionID, ref string) ([]byte, error) {
	raw, err := d.blobs.Get(ctx, blob.Ref(ref))
	if err != nil {
		return nil, err
	}
	raw, ok := bytes.CutPrefix(raw, []byte(sessionID+"\n"))
	if !ok {
		return nil, fmt.Errorf("blob %s belongs to another session than %s", ref, sessionID)
	}
	return raw, nil
}

// beginning returns the first characters of a text.
func beginning(text []byte) string {
	text = text[:min(len(text), previewMax)]
	for len(text) > 0 && !utf8.Valid(text) {
		text = text[:len(text)-1]
	}
	return string(text)
}

// head reads a stored event but for its data.
func head(item dynamox.Item) event.Event {
	return event.Event{
		Type: event.Type(dynamox.Str(item, tables.EventType)), Index: dynamox.Int(item, tables.Index), SessionID: dynamox.Str(item, tables.SessionID),
		TurnID: dynamox.Str(item, tables.EventTurn), At: dynamox.Time(dynamox.Int(item, at)), ID: dynamox.Str(item, eventID),
	}
}

// event reads a stored event.
func (d *Driver) event(ctx context.Context, item dynamox.Item) (event.Event, error) {
	e := head(item)
	var err error
	switch {
	case item[ref] != nil:
		e.Data, err = d.load(ctx, e.SessionID, dynamox.Str(item, ref))
	case item[packed] != nil:
		e.Data, err = io.ReadAll(flate.NewReader(bytes.NewReader(dynamox.Bytes(item, packed))))
	default:
		e.Data = []byte(dynamox.Str(item, data))
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("reading the data of event %d of session %s: %w", e.Index, e.SessionID, err)
	}
	return e, nil
}

const (
	maxPage  = 4 << 20 // bytes of spilt data in a page, if it holds more than one event
	maxLoads = 8       // blobs read at once
)

// events reads stored events, the first of them at least.
func (d *Driver) events(ctx context.Context, items []dynamox.Item) ([]event.Event, error) {
	total := int64(0)
	for i, item := range items {
		if total += dynamox.Int(item, size); i > 0 && total > maxPage {
			items = items[:i]
			break
		}
	}
	events := make([]event.Event, len(items))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxLoads)
	for i, item := range items {
		g.Go(func() (err error) {
			events[i], err = d.event(ctx, item)
			return err
		})
	}
	return events, g.Wait()
}

func deflate(b []byte) ([]byte, error) {
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return buf.Bytes(), err
}
