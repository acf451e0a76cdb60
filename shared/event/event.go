// Package event is the vocabulary of the session log: the envelope every event wears and the data of every type.
//
// A log is a list of events whose indexes are dense from 0. It is the truth about a session: whatever else the
// system stores about a conversation can be rebuilt from it.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Type names what happened. Readers ignore types they do not know.
type Type string

// An Event is one entry of a session's log. It is a value: copy it freely, but do not change the bytes of Data.
type Event struct {
	Type      Type
	Index     int64  // dense from 0 in its session; set by the session store
	SessionID string // set by the session store
	TurnID    string // the turn it belongs to; empty for session-scoped events
	At        time.Time
	Data      json.RawMessage // a JSON object, see the data type of Type

	// ID names the event for its writer, so that a write which was retried can be told from a write that lost.
	// It is set by the session store and not part of the wire form.
	ID string
}

// Data is the payload of one event type. Its implementations are the structs of this package.
type Data interface {
	// Type returns the event type the payload belongs to.
	Type() Type
}

// New returns an event with the given payload. Store and clock fields are left to the session store.
//
// A fault in a payload never loses the event: text that is not UTF-8 gets U+FFFD in place of each wrong byte, raw JSON that is
// broken becomes a JSON string of the same text, and a number or time that JSON cannot express is left out.
func New(turnID string, data Data) Event {
	raw, err := json.Marshal(data)
	if err != nil {
		if raw, err = json.Marshal(mended(data)); err != nil {
			raw, _ = json.Marshal(map[string]string{"invalid": err.Error()}) //nolint:errchkjson // a map of strings always encodes
		}
	}
	if !utf8.Valid(raw) { // raw JSON passes through the encoder as it is
		raw = []byte(string([]rune(string(raw))))
	}
	return Event{Type: data.Type(), TurnID: turnID, Data: raw}
}

// Decode returns the payload of e as T. It fails if e has another type than T or its data is not of T's shape.
func Decode[T Data](e Event) (T, error) {
	var data T
	if e.Type != data.Type() {
		return data, fmt.Errorf("decoding event %d: it is %q, not %q", e.Index, e.Type, data.Type())
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return data, fmt.Errorf("decoding the data of event %d (%s): %w", e.Index, e.Type, err)
	}
	return data, nil
}

// timeLayout is RFC 3339 with exactly three decimals, in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

// AppendJSON appends the wire form of e, one JSON object without a newline, and returns the extended buffer.
func (e Event) AppendJSON(buf []byte) []byte {
	buf = append(buf, `{"type":`...)
	buf = appendString(buf, string(e.Type))
	buf = append(buf, `,"index":`...)
	buf = strconv.AppendInt(buf, e.Index, 10)
	buf = append(buf, `,"sessionId":`...)
	buf = appendString(buf, e.SessionID)
	if e.TurnID != "" {
		buf = append(buf, `,"turnId":`...)
		buf = appendString(buf, e.TurnID)
	}
	buf = append(buf, `,"at":"`...)
	buf = e.At.UTC().AppendFormat(buf, timeLayout)
	buf = append(buf, `","data":`...)
	if len(e.Data) == 0 {
		buf = append(buf, "{}"...)
	} else {
		buf = append(buf, e.Data...)
	}
	return append(buf, '}')
}

// appendString appends s as a JSON string. Types and ids hardly ever need escaping.
func appendString(buf []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) //nolint:errchkjson // a string always encodes
			return append(buf, quoted...)
		}
	}
	buf = append(buf, '"')
	buf = append(buf, s...)
	return append(buf, '"')
}

// MarshalJSON returns the wire form.
func (e Event) MarshalJSON() ([]byte, error) {
	return e.AppendJSON(nil), nil
}

// UnmarshalJSON reads the wire form.
func (e *Event) UnmarshalJSON(b []byte) error {
	var w struct {
		Type      Type            `json:"type"`
		Index     int64           `json:"index"`
		SessionID string          `json:"sessionId"`
		TurnID    string          `json:"turnId"`
		At        time.Time       `json:"at"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("reading an event: %w", err)
	}
	var data bytes.Buffer // without the spaces and line ends it may have come with: one event is one line
	if len(w.Data) > 0 {
		if err := json.Compact(&data, w.Data); err != nil {
			return fmt.Errorf("reading the data of an event: %w", err)
		}
	}
	at := w.At.UTC()
	if at.Year() < 0 || at.Year() > 9999 {
		return errors.New("reading an event: in UTC the year of its time does not have four digits")
	}
	*e = Event{Type: w.Type, Index: w.Index, SessionID: w.SessionID, TurnID: w.TurnID, At: at, Data: data.Bytes()}
	return nil
}
