// Package telemetry keeps what a host reports about itself where its operator can read it.
//
// [Ring] is a [slog.Handler] that remembers the latest records, in bounded memory, and passes them on. [EMF] returns one that has
// CloudWatch take metrics from them.
package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// SlugKey is the attribute that says which agent a record is about. A record without it is about the host.
const SlugKey = "slug"

// Bounds of what a ring remembers.
const (
	maxText     = 8 << 10 // bytes of a message or of one attribute; what is over is cut
	meanRecord  = 1 << 10 // bytes of all records together: capacity times this
	recordBytes = 128     // what a record takes besides its texts, about
)

// Record is a log record as a ring remembers it.
type Record struct {
	N       int64                      `json:"n"` // counts the records of this process from 1
	Time    time.Time                  `json:"time"`
	Level   slog.Level                 `json:"level"`
	Message string                     `json:"message"`
	Attrs   map[string]json.RawMessage `json:"attrs,omitempty"` // by key; the keys of a group are joined with dots; do not change it

	size int
}

// Slug returns the agent a record is about, "" if it is about the host.
func (r Record) Slug() string {
	var slug string
	if json.Unmarshal(r.Attrs[SlugKey], &slug) != nil {
		return ""
	}
	return slug
}

// Ring is a [slog.Handler] that remembers the latest records. It is safe for concurrent use; the handlers that WithAttrs and
// WithGroup return remember in the same ring.
//
// Values of attributes whose key names a secret (authorization, cookie, token, password …) are neither remembered nor
// passed on. A secret inside a text is not found: do not log it.
type Ring struct {
	*memory

	next   slog.Handler // nil for none
	prefix string       // of the open groups, with a dot behind each
	bound  map[string]json.RawMessage
}

type memory struct {
	capacity int

	mu      sync.Mutex // guards what follows
	records []Record   // a circle: the oldest is at first
	first   int
	count   int
	bytes   int
	last    int64 // N of the newest
}

// NewRing returns a ring that remembers at most capacity records and about capacity KiB, at least one record, and
// passes records on to next, which may be nil. It remembers from level info on, and whatever next wants.
func NewRing(capacity int, next slog.Handler) *Ring {
	capacity = max(capacity, 1)
	return &Ring{memory: &memory{capacity: capacity, records: make([]Record, capacity)}, next: next}
}

// After returns the remembered records with a number greater than n, oldest first, and the number to ask with the next time. A number
// that was not reached yet comes from another process: everything is returned.
func (m *memory) After(_ context.Context, n int64) (records []Record, next int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > m.last {
		n = 0
	}
	want := min(m.last-n, int64(m.count))
	records = make([]Record, 0, want)
	for i := m.count - int(want); i < m.count; i++ {
		records = append(records, m.records[(m.first+i)%m.capacity])
	}
	return records, m.last, nil
}

func (m *memory) add(r Record) {
	r.size = recordBytes + len(r.Message)
	for k, v := range r.Attrs {
		r.size += len(k) + len(v)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.count > 0 && (m.count == m.capacity || m.bytes+r.size > m.capacity*meanRecord) {
		m.bytes -= m.records[m.first].size
		m.records[m.first] = Record{}
		m.first, m.count = (m.first+1)%m.capacity, m.count-1
	}
	m.last++
	r.N = m.last
	m.records[(m.first+m.count)%m.capacity] = r
	m.count, m.bytes = m.count+1, m.bytes+r.size
}

// Enabled implements [slog.Handler].
func (r *Ring) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || r.next != nil && r.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (r *Ring) Handle(ctx context.Context, rec slog.Record) error {
	rec = withoutSecrets(rec)
	kept := Record{Time: rec.Time, Level: rec.Level, Message: cut(rec.Message), Attrs: make(map[string]json.RawMessage, len(r.bound)+rec.NumAttrs())}
	maps.Copy(kept.Attrs, r.bound)
	rec.Attrs(func(a slog.Attr) bool {
		flatten(kept.Attrs, r.prefix, a)
		return true
	})
	r.add(kept)
	if r.next == nil || !r.next.Enabled(ctx, rec.Level) {
		return nil
	}
	return r.next.Handle(ctx, rec)
}

// WithAttrs implements [slog.Handler].
func (r *Ring) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *r
	c.bound = make(map[string]json.RawMessage, len(r.bound)+len(attrs))
	maps.Copy(c.bound, r.bound)
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = withoutSecret(a)
		flatten(c.bound, r.prefix, clean[i])
	}
	if r.next != nil {
		c.next = r.next.WithAttrs(clean)
	}
	return &c
}

// WithGroup implements [slog.Handler].
func (r *Ring) WithGroup(name string) slog.Handler {
	if name == "" {
		return r
	}
	c := *r
	c.prefix += name + "."
	if r.next != nil {
		c.next = r.next.WithGroup(name)
	}
	return &c
}

// flatten adds an attribute, or those of a group, to attrs. The values are encoded at once: they may change later.
func flatten(attrs map[string]json.RawMessage, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	switch {
	case v.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			flatten(attrs, prefix, g)
		}
	case a.Key != "":
		attrs[prefix+a.Key] = encode(v)
	}
}

func encode(v slog.Value) json.RawMessage {
	var value any
	switch x := v.Any().(type) {
	case error:
		value = cut(x.Error())
	case string:
		value = cut(x)
	case time.Duration:
		value = x.String()
	default:
		value = x
	}
	raw, err := json.Marshal(value)
	if err != nil || len(raw) > 2*maxText {
		raw, _ = json.Marshal(cut(cmp.Or(string(raw), fmt.Sprint(value)))) //nolint:errchkjson // a string always encodes
	}
	return raw
}

// cut shortens a text to maxText bytes, on a character boundary.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// withoutSecrets returns rec with the values of secret attributes replaced; the record itself if it has none.
func withoutSecrets(rec slog.Record) slog.Record {
	found := false
	rec.Attrs(func(a slog.Attr) bool {
		found = hasSecret(a)
		return !found
	})
	if !found {
		return rec
	}
	clean := slog.NewRecord(rec.Time, rec.Level, rec.Message, rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(withoutSecret(a))
		return true
	})
	return clean
}

func hasSecret(a slog.Attr) bool {
	if secretKey(a.Key) {
		return true
	}
	if a.Value.Kind() == slog.KindLogValuer {
		a.Value = a.Value.Resolve()
	}
	if a.Value.Kind() != slog.KindGroup {
		return false
	}
	return slices.ContainsFunc(a.Value.Group(), hasSecret)
}

func withoutSecret(a slog.Attr) slog.Attr {
	switch {
	case !hasSecret(a):
		return a
	case secretKey(a.Key):
		return slog.String(a.Key, "[redacted]")
	}
	group := a.Value.Resolve().Group()
	clean := make([]slog.Attr, len(group))
	for i, g := range group {
		clean[i] = withoutSecret(g)
	}
	return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
}

// secretKey reports whether a key names something nobody should read in a log. Counts of tokens do not.
func secretKey(key string) bool {
	plain := strings.Map(func(c rune) rune {
		switch {
		case c == '-' || c == '_' || c == '.':
			return -1
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		}
		return c
	}, key)
	switch plain {
	case "authorization", "proxyauthorization", "cookie", "setcookie", "token", "bearertoken", "accesstoken", "refreshtoken", "sessiontoken",
		"continuationtoken", "xamzsecuritytoken", "password", "passwd", "secret", "clientsecret", "secretaccesskey", "apikey", "xapikey", "privatekey":
		return true
	}
	return false
}
