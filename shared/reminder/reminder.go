// Package reminder keeps what sessions are to be reminded of, and has them sent it at its time.
//
// A reminder is one entry of a [kv.Store], whose key is in the order of time; another entry lists those of each session. Whoever
// sends a reminder does so with its id as an idempotency key: it is sent once, however often it is tried.
package reminder

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/wake"
)

// Limits of reminders.
const (
	MaxMessage = 16 << 10             // bytes of a message
	MaxKey     = 256                  // bytes of a key
	MaxOpen    = 100                  // open reminders of a session
	MaxAhead   = 366 * 24 * time.Hour // how far ahead one may be
	idPrefix   = "rem_"               // then the time in milliseconds, of timeDigits hexadecimal digits, then chance
	timeDigits = 12                   // enough for any year
	page       = 100                  // entries read at once
	maxTries   = 64                   // of a change of a session's list against others
)

// Options adjust a Store. Agent is required.
type Options struct {
	Agent string        // slug of the agent
	Clock clock.Clock   // default: the system clock
	NewID func() string // default: 130 random bits in base 32, lower case
	Alarm wake.Alarm    // rings for each reminder at its time; nil: somebody runs Run
	Log   *slog.Logger  // default: nothing is logged
}

// Store keeps the reminders of one agent. It is safe for concurrent use, by many processes too where the kv store is.
type Store struct {
	entries *kv.Store
	opts    Options
	poke    chan struct{} // tells Run of a new reminder
}

// New returns a store over entries. It panics if Options.Agent is no slug, which would mix up the keys of agents.
func New(entries *kv.Store, opts Options) *Store {
	if opts.Agent == "" || strings.Contains(opts.Agent, "/") {
		panic(fmt.Sprintf("reminder: Options.Agent is %q", opts.Agent))
	}
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.NewID == nil {
		opts.NewID = func() string { return strings.ToLower(rand.Text()) }
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{entries: entries, opts: opts, poke: make(chan struct{}, 1)}
}

// entry is a reminder as it is stored.
type entry struct {
	bdk.ReminderRecord

	Owner   string `json:"owner"` // of the session
	Sending bool   `json:"sending,omitempty"`

	version int64
}

func (s *Store) key(id string) string { return "reminders/" + s.opts.Agent + "/due/" + id }

func (s *Store) listKey(session string) string { return "reminders/" + s.opts.Agent + "/of/" + session }

// Create makes a reminder of a session and its owner. It takes the place of an open one with the same key. The error is
// bdkerr.InvalidRequest, with what to change, for one that cannot be, and bdkerr.Conflict if the session has too many.
func (s *Store) Create(ctx context.Context, session, owner string, r bdk.Reminder) (bdk.ReminderRecord, error) {
	at, err := s.check(r)
	if err != nil {
		return bdk.ReminderRecord{}, err
	}
	e := entry{Owner: owner, ReminderRecord: bdk.ReminderRecord{
		ID:  fmt.Sprintf("%s%0*x%s", idPrefix, timeDigits, at.UnixMilli(), s.opts.NewID()),
		Key: r.Key, SessionID: session, Message: r.Message, At: at, CreatedAt: s.opts.Clock.Now().UTC().Truncate(time.Millisecond),
	}}
	if err := s.put(ctx, e); err != nil {
		return bdk.ReminderRecord{}, err
	}
	replaced, err := s.enlist(ctx, e)
	if err != nil {
		return bdk.ReminderRecord{}, errors.Join(err, s.entries.Delete(ctx, s.key(e.ID), 0))
	}
	for _, id := range replaced {
		if err := s.remove(ctx, id); err != nil && !errors.Is(err, bdk.ErrNotFound) {
			return bdk.ReminderRecord{}, err
		}
	}
	s.set(ctx, e)
	return e.ReminderRecord, nil
}

// check returns the time of a reminder that can be.
func (s *Store) check(r bdk.Reminder) (time.Time, error) {
	now := s.opts.Clock.Now()
	at := r.At
	bad := func(format string, args ...any) (time.Time, error) {
		return time.Time{}, bdkerr.New(bdkerr.InvalidRequest, format, args...)
	}
	switch {
	case strings.TrimSpace(r.Message) == "":
		return bad("the reminder has no Message")
	case len(r.Message) > MaxMessage || !utf8.ValidString(r.Message):
		return bad("the Message of the reminder has %d bytes: it must be UTF-8 of at most %d", len(r.Message), MaxMessage)
	case len(r.Key) > MaxKey || !utf8.ValidString(r.Key):
		return bad("the Key %.40q of the reminder has %d bytes: it must be UTF-8 of at most %d", r.Key, len(r.Key), MaxKey)
	case r.At.IsZero() == (r.After == 0):
		return bad("the reminder needs either At or After")
	case r.After < 0:
		return bad("After of the reminder is %s: it must be more than 0", r.After)
	case r.After > 0:
		at = now.Add(r.After)
	}
	if at.Before(now) {
		at = now
	}
	if at.Sub(now) > MaxAhead {
		return bad("the reminder is for %s: it can be a year ahead at most", at.UTC().Format(time.RFC3339))
	}
	return at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond), nil
}

// set has somebody look at the time of a reminder. Without an alarm it is found late, so that is no error.
func (s *Store) set(ctx context.Context, e entry) {
	if s.opts.Alarm == nil {
		select {
		case s.poke <- struct{}{}:
		default:
		}
		return
	}
	if err := s.opts.Alarm.Set(ctx, e.ID, e.At); err != nil {
		s.opts.Log.WarnContext(ctx, "reminder without an alarm: it will be late", slog.String("reminder_id", e.ID), slog.Any("error", err))
	}
}

// listed is a reminder in the list of its session.
type listed struct {
	ID  string `json:"id"`
	Key string `json:"key,omitempty"`
}

// enlist adds a reminder to the list of its session, and returns those that it takes the place of.
func (s *Store) enlist(ctx context.Context, e entry) (replaced []string, err error) {
	err = s.change(ctx, e.SessionID, func(list []listed) ([]listed, error) {
		replaced = nil
		if len(list) >= MaxOpen {
			if list, err = s.prune(ctx, list); err != nil {
				return nil, err
			}
		}
		kept := list[:0]
		for _, l := range list {
			if e.Key != "" && l.Key == e.Key {
				replaced = append(replaced, l.ID)
			} else {
				kept = append(kept, l)
			}
		}
		if len(kept) >= MaxOpen {
			return nil, bdkerr.New(bdkerr.Conflict, "the session has %d open reminders, which is the most: cancel some", len(kept))
		}
		return append(kept, listed{e.ID, e.Key}), nil
	})
	return replaced, err
}

// prune returns a list without reminders that there are not any more.
func (s *Store) prune(ctx context.Context, list []listed) ([]listed, error) {
	var kept []listed
	for _, l := range list {
		switch _, err := s.get(ctx, l.ID); {
		case err == nil:
			kept = append(kept, l)
		case !errors.Is(err, bdk.ErrNotFound):
			return nil, err
		}
	}
	return kept, nil
}

// change changes the list of a session.
func (s *Store) change(ctx context.Context, session string, f func([]listed) ([]listed, error)) error {
	key := s.listKey(session)
	for range maxTries {
		old, err := s.entries.Get(ctx, key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		var list []listed
		if err == nil {
			if err := json.Unmarshal(old.Value, &list); err != nil {
				return fmt.Errorf("reading the reminders of session %s: %w", session, err)
			}
		}
		if list, err = f(list); err != nil {
			return err
		}
		var value []byte
		if value, err = json.Marshal(list); err != nil {
			return fmt.Errorf("encoding the reminders of session %s: %w", session, err)
		}
		switch {
		case old.Version == 0 && len(list) == 0:
			return nil
		case old.Version == 0:
			err = s.entries.Create(ctx, key, value, 0)
		case len(list) == 0:
			err = s.entries.Delete(ctx, key, old.Version)
		default:
			err = s.entries.Swap(ctx, key, old.Version, value, 0)
		}
		if !errors.Is(err, kv.ErrExists) && !errors.Is(err, kv.ErrVersion) {
			return err
		}
	}
	return bdkerr.New(bdkerr.Conflict, "the reminders of session %s change too fast", session)
}

// List returns the open reminders of a session, the next one first.
func (s *Store) List(ctx context.Context, session string) ([]bdk.ReminderRecord, error) {
	var list []listed
	err := s.change(ctx, session, func(l []listed) ([]listed, error) {
		list = l
		return nil, errUnchanged
	})
	if !errors.Is(err, errUnchanged) {
		return nil, err
	}
	records := []bdk.ReminderRecord{}
	for _, l := range list {
		e, err := s.get(ctx, l.ID)
		switch {
		case err == nil:
			records = append(records, e.ReminderRecord)
		case !errors.Is(err, bdk.ErrNotFound):
			return nil, err
		}
	}
	slices.SortFunc(records, func(a, b bdk.ReminderRecord) int { return cmp.Compare(a.ID, b.ID) })
	return records, nil
}

// errUnchanged ends a change.
var errUnchanged = errors.New("unchanged")

// All returns the open reminders of all sessions, the next one first, at most limit of them.
func (s *Store) All(ctx context.Context, limit int) ([]bdk.ReminderRecord, error) {
	records := []bdk.ReminderRecord{}
	err := s.each(ctx, func(e entry) (bool, error) {
		records = append(records, e.ReminderRecord)
		return len(records) < limit, nil
	})
	return records, err
}

// Cancel removes an open reminder of a session. The error is a bdk.ErrNotFound if there is none, or it is being sent.
func (s *Store) Cancel(ctx context.Context, session, id string) error {
	e, err := s.get(ctx, id)
	if err == nil && e.SessionID != session {
		err = notFound(id)
	}
	if err == nil {
		err = s.remove(ctx, id)
	}
	if err != nil {
		return err
	}
	return s.delist(ctx, e)
}

// remove removes a reminder unless it is being sent.
func (s *Store) remove(ctx context.Context, id string) error {
	for range maxTries {
		e, err := s.get(ctx, id)
		if err != nil {
			return err
		}
		if e.Sending {
			return notFound(id)
		}
		err = s.entries.Delete(ctx, s.key(id), e.version)
		if errors.Is(err, kv.ErrVersion) {
			continue
		}
		if err == nil && s.opts.Alarm != nil {
			if err := s.opts.Alarm.Unset(ctx, id); err != nil {
				s.opts.Log.WarnContext(ctx, "an alarm rings for nothing", slog.String("reminder_id", id), slog.Any("error", err))
			}
		}
		return err
	}
	return bdkerr.New(bdkerr.Conflict, "the reminder %.80q changes too fast", id)
}

// delist takes a reminder off the list of its session.
func (s *Store) delist(ctx context.Context, e entry) error {
	return s.change(ctx, e.SessionID, func(list []listed) ([]listed, error) {
		return slices.DeleteFunc(list, func(l listed) bool { return l.ID == e.ID }), nil
	})
}

func notFound(id string) error { return fmt.Errorf("reminder %.80q: %w", id, bdk.ErrNotFound) }

// get returns a reminder, or a bdk.ErrNotFound.
func (s *Store) get(ctx context.Context, id string) (e entry, err error) {
	const most = 256 // bytes of an id
	if !strings.HasPrefix(id, idPrefix) || len(id) > most {
		return entry{}, notFound(id)
	}
	kept, err := s.entries.Get(ctx, s.key(id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return entry{}, notFound(id)
	case err != nil:
		return entry{}, err
	}
	if err := json.Unmarshal(kept.Value, &e); err != nil {
		return entry{}, fmt.Errorf("reading reminder %s: %w", id, err)
	}
	e.version = kept.Version
	return e, nil
}

// put stores a reminder in the place of its version. The error is a kv.ErrVersion if somebody else was faster.
func (s *Store) put(ctx context.Context, e entry) error {
	value, err := json.Marshal(e)
	switch {
	case err != nil:
		return fmt.Errorf("encoding reminder %s: %w", e.ID, err)
	case e.version == 0:
		return s.entries.Create(ctx, s.key(e.ID), value, 0)
	}
	return s.entries.Swap(ctx, s.key(e.ID), e.version, value, 0)
}

// each calls f for the reminders in the order of time, until it returns false.
func (s *Store) each(ctx context.Context, f func(entry) (bool, error)) error {
	prefix := s.key(idPrefix)
	for after := ""; ; {
		list, err := s.entries.List(ctx, prefix, after, page)
		if err != nil {
			return err
		}
		for _, kept := range list {
			var e entry
			if err := json.Unmarshal(kept.Value, &e); err != nil {
				s.opts.Log.ErrorContext(ctx, "reminder cannot be read", slog.String("key", kept.Key), slog.Any("error", err))
				continue
			}
			e.version = kept.Version
			if more, err := f(e); err != nil || !more {
				return err
			}
		}
		if len(list) < page {
			return nil
		}
		after = list[len(list)-1].Key
	}
}
