// Package session keeps conversations: a row and an append-only log of events for each.
//
// [Store] is the portable type with the rules every host shares: acceptance of messages, the rotating continuation
// token, the fence that stops a writer whose turn was ended, and readers that never see a hole. What differs between
// hosts is behind [Driver].
//
// The log is the fence. Every append is conditional on its index being free; the writer that loses looks at what beat
// it and stops if its turn was ended. No other lock decides who may write.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
)

// Store keeps sessions. It is safe for concurrent use.
type Store struct {
	driver Driver
	opts   Options
	hub    hub
	order  order
}

// Options adjust a Store. The zero value is usable.
type Options struct {
	Clock clock.Clock   // default: the system clock
	NewID func() string // unique, hard to guess; default: 130 random bits in base 32, lower case
	TTL   time.Duration // how long after its last turn a session is kept; 0: for ever

	// Holder names the process that runs the turns accepted here, and Lease is how long it may go without renewing.
	// An empty Holder leaves turns to whoever claims them.
	Holder string
	Lease  time.Duration

	// Committed is told what this Store appended, once it is recorded: all events of a session in the order of their indexes. It must
	// return soon, since the session's next append waits for it, and not use the Store. Default: nobody is told.
	Committed func(events []event.Event)

	// Poll is the longest wait of a reader that follows a log before it looks again. Appends made by this Store wake
	// readers at once; polling finds those of other processes. Default: 1 s.
	Poll time.Duration

	// PollTurn takes the place of Poll until the reader has seen that no turn runs. Default: Poll.
	PollTurn time.Duration
}

// New returns a store over driver.
func New(driver Driver, opts Options) *Store {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.NewID == nil {
		opts.NewID = func() string { return strings.ToLower(rand.Text()) }
	}
	if opts.Poll <= 0 {
		opts.Poll = time.Second
	}
	if opts.PollTurn <= 0 {
		opts.PollTurn = opts.Poll
	}
	return &Store{driver: driver, opts: opts}
}

// Start describes a new session. The zero values of its optional fields are those of the HTTP API.
type Start struct {
	Agent   string // slug; required
	Owner   string // principal; required
	Message string // the first user message; required
	Channel string // default "http"
	Mode    Mode   // default Chat
	Purpose string // default "chat"
	Title   string // default: none
	DryRun  bool
	AsOf    time.Time
	Files   string // blob reference of workspace files; "" for none
	Key     RequestKey
}

// Message is a follow-up to a session.
type Message struct {
	SessionID string
	Owner     string // who sends it; must own the session
	Token     string // the session's continuation token
	Text      string
	Key       RequestKey

	// Inside says that the agent's own code sends the message. It needs no Token, leaves the current one as it is, and ends no turn:
	// while one is active it fails with bdkerr.SessionBusy.
	Inside bool
}

// RequestKey makes a request repeatable: the same name and body get the same answer for 24 hours. The zero value means no key.
type RequestKey struct {
	Name string // as chosen by the client
	Body []byte // the request as sent
}

// Accepted is the answer to an accepted message. The message is durable; its turn ends in exactly one turn.completed or turn.failed.
type Accepted struct {
	SessionID   string `json:"sessionId"`
	TurnID      string `json:"turnId"`
	Token       string `json:"token"`                 // the new continuation token; the one before is stale now. "" if there is no new one
	Interrupted string `json:"interrupted,omitempty"` // the turn this message ended, if one was active
	Repeated    bool   `json:"-"`                     // the answer was given before, to a request with the same key
}

// keyTTL is how long the answer to a keyed request is kept.
const keyTTL = 24 * time.Hour

// Start records a new session with its first message.
func (s *Store) Start(ctx context.Context, in Start) (Accepted, error) {
	key, earlier, err := s.key(ctx, in.Agent+"\x00"+in.Owner+"\x00start\x00", in.Key)
	if err != nil || earlier != nil {
		return s.repeat(earlier, err)
	}
	acc := Accepted{SessionID: sessionPrefix + s.opts.NewID(), TurnID: "turn_" + s.opts.NewID()}
	acc.Token = s.newToken(acc.SessionID)
	row := Record{
		ID: acc.SessionID, Agent: in.Agent, Owner: in.Owner, Channel: or(in.Channel, "http"), Mode: or(in.Mode, Chat),
		Purpose: or(in.Purpose, "chat"), Title: in.Title, DryRun: in.DryRun, Files: in.Files,
		CreatedAt: s.now(), TokenHash: hash(acc.Token),
	}
	started := event.SessionStarted{
		Agent: row.Agent, ChannelID: row.Channel, Mode: string(row.Mode), Purpose: row.Purpose, Title: row.Title, DryRun: row.DryRun,
	}
	if !in.AsOf.IsZero() {
		row.AsOf = whole(in.AsOf)
		started.AsOf = &row.AsOf
	}
	b := s.batch(acc.SessionID, 0, event.New("", started), event.New(acc.TurnID, event.MessageReceived{Text: in.Message}))
	b.Row, b.Key = s.busy(row, acc.TurnID, int64(len(b.Events))), key.with(acc)
	if err := s.commit(ctx, b); err != nil {
		return s.lost(fmt.Errorf("recording a session: %w", err), in.Key)
	}
	return acc, nil
}

// Send records a follow-up. If a turn is active it is ended first, with turn.failed and status cancelled.
func (s *Store) Send(ctx context.Context, in Message) (Accepted, error) {
	var acc Accepted
	err := s.amend(ctx, in.SessionID, func(row Record) (func(int64) Batch, error) {
		// The key is read after the row: whoever finds the token used up by the same request finds its answer too.
		key, earlier, err := s.key(ctx, in.SessionID+"\x00"+in.Owner+"\x00send\x00", in.Key)
		if err != nil || earlier != nil {
			acc, err = s.repeat(earlier, err)
			return nil, err
		}
		if err := mayContinue(row, in); err != nil {
			return nil, err
		}
		acc = Accepted{SessionID: row.ID, TurnID: "turn_" + s.opts.NewID(), Interrupted: row.Turn.ID}
		if !in.Inside {
			acc.Token = s.newToken(row.ID)
		}
		return func(at int64) Batch {
			b := s.batch(row.ID, at, append(fence(row), event.New(acc.TurnID, event.MessageReceived{Text: in.Text}))...)
			next := row
			if !in.Inside {
				next.TokenHash = hash(acc.Token)
			}
			b.Row, b.Key = s.busy(next, acc.TurnID, at+int64(len(b.Events))), key.with(acc)
			return b
		}, nil
	})
	if err != nil {
		return s.lost(err, in.Key)
	}
	return acc, nil
}

// maxTries bounds how often a change is tried against writers that are faster. Each lost try means that another writer got on.
const maxTries = 256

// amend commits the batch that prepare makes for the row and the next index, again on what is there then whenever another
// writer was faster. A nil batch function means that there is nothing to do.
func (s *Store) amend(ctx context.Context, id string, prepare func(Record) (func(at int64) Batch, error)) error {
	var seen int64 // events below it are known to be there
	for range maxTries {
		row, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		batch, err := prepare(row)
		if err != nil || batch == nil {
			return err
		}
		at := max(row.Next, seen)
		if row.Turn.ID != "" || seen > row.Next {
			if at, err = s.tail(ctx, id, at); err != nil {
				return err
			}
		}
		var conflict *ConflictError
		switch err := s.commit(ctx, batch(at)); {
		case err == nil:
			return nil
		case errors.As(err, &conflict):
			seen = conflict.Event.Index + 1
		case !errors.Is(err, ErrStale):
			return fmt.Errorf("changing session %s: %w", id, err)
		}
	}
	return bdkerr.New(bdkerr.Conflict, "the session changes too fast: try again")
}

func mayContinue(row Record, in Message) error {
	switch {
	case row.Owner != in.Owner:
		return bdkerr.New(bdkerr.Forbidden, "this session belongs to another caller")
	case row.Mode != Chat:
		return bdkerr.New(bdkerr.SessionClosed, "a task session takes no follow-up: start a new session")
	case in.Inside && row.Turn.ID != "":
		return bdkerr.New(bdkerr.SessionBusy, "a turn of the session is active")
	case in.Inside:
		return nil
	case !row.Current(in.Token):
		return bdkerr.New(bdkerr.StaleToken, "the continuation token is not the current one: use the token of the last accepted message")
	}
	return nil
}

// Stop ends the active turn of a session and returns its id, "" if none was active. With turnID set, it ends only that
// turn and fails with bdkerr.TurnMismatch if it is not the active one.
func (s *Store) Stop(ctx context.Context, id, turnID string) (string, error) {
	var stopped string
	err := s.amend(ctx, id, func(row Record) (func(int64) Batch, error) {
		stopped = row.Turn.ID
		switch {
		case turnID != "" && row.Turn.ID != turnID:
			return nil, bdkerr.New(bdkerr.TurnMismatch, "turn %q is not active", turnID)
		case row.Turn.ID == "":
			return nil, nil
		}
		return func(at int64) Batch { return s.idle(row, at, append(fence(row), closing(row, "stopped"))) }, nil
	})
	if err != nil {
		return "", err
	}
	return stopped, nil
}

// closing returns the event that follows the end of a turn that failed.
func closing(row Record, why string) event.Event {
	if row.Mode == Task {
		return event.New("", event.SessionFailed{Message: why})
	}
	return event.New("", event.SessionWaiting{})
}

// fence returns the events that end the active turn of row, none if it has none.
func fence(row Record) []event.Event {
	if row.Turn.ID == "" {
		return nil
	}
	failed := event.TurnFailed{Message: "the turn was stopped", Status: event.StatusCancelled}
	return append(row.Turn.cancelled(), event.New(row.Turn.ID, failed))
}

// now returns the time as it is stored.
func (s *Store) now() time.Time { return whole(s.opts.Clock.Now()) }

// whole returns t in UTC and in whole milliseconds, which is what every driver keeps.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Get returns the row of a session, or a bdkerr.NotFound error if there is none or it expired.
func (s *Store) Get(ctx context.Context, id string) (Record, error) {
	row, err := s.driver.Get(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && row.expired(s.opts.Clock.Now()) {
		return Record{}, bdkerr.New(bdkerr.NotFound, "no session %q", id)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading session %s: %w", id, err)
	}
	return row, nil
}

func (r Record) expired(now time.Time) bool {
	return !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now)
}

// List returns a page of rows and the cursor of the next page, "" after the last. Expired sessions are left out.
func (s *Store) List(ctx context.Context, q Query) ([]Record, string, error) {
	if err := q.validate(); err != nil {
		return nil, "", err
	}
	rows, next, err := s.driver.List(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("listing sessions: %w", err)
	}
	now := s.opts.Clock.Now()
	kept := rows[:0]
	for _, r := range rows {
		if !r.expired(now) {
			kept = append(kept, r)
		}
	}
	return kept, next, nil
}

// Expire removes what has expired, where the driver does not do so by itself, and returns how many sessions and keys it removed.
func (s *Store) Expire(ctx context.Context, limit int) (int, error) {
	e, ok := s.driver.(Expirer)
	if !ok {
		return 0, nil
	}
	n, err := e.Expire(ctx, s.now(), limit)
	if err != nil {
		return n, fmt.Errorf("removing expired sessions: %w", err)
	}
	return n, nil
}

// PutSnapshot keeps derived state of a session unless what is kept covers more events.
func (s *Store) PutSnapshot(ctx context.Context, id string, snap Snapshot) error {
	if err := s.driver.PutSnapshot(ctx, id, snap); err != nil {
		return fmt.Errorf("keeping a snapshot of session %s: %w", id, err)
	}
	return nil
}

// Snapshot returns the latest snapshot of a session, the zero Snapshot if there is none.
func (s *Store) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	snap, err := s.driver.Snapshot(ctx, id)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading the snapshot of session %s: %w", id, err)
	}
	return snap, nil
}

// batch completes events with ids, times and indexes from at on.
func (s *Store) batch(id string, at int64, events ...event.Event) Batch {
	now := s.now()
	for i := range events {
		e := &events[i]
		e.SessionID, e.Index, e.At = id, at+int64(i), now
		if e.ID == "" {
			e.ID = s.opts.NewID()
		}
	}
	return Batch{SessionID: id, At: at, Events: events}
}

// busy returns row with an active turn that begins now.
func (s *Store) busy(row Record, turnID string, next int64) *Record {
	row.Turn, row.UpdatedAt, row.ExpiresAt, row.Next = s.lease(turnID), s.now(), time.Time{}, next
	return &row
}

// lease returns the turn as this process runs it.
func (s *Store) lease(turnID string) Turn {
	if s.opts.Holder == "" {
		return Turn{ID: turnID}
	}
	return Turn{ID: turnID, Holder: s.opts.Holder, Until: s.now().Add(s.opts.Lease)}
}

// idle returns the batch that appends events and leaves the session without an active turn.
func (s *Store) idle(row Record, at int64, events []event.Event) Batch {
	b := s.batch(row.ID, at, events...)
	row.Turn, row.UpdatedAt, row.Next = Turn{}, s.now(), at+int64(len(events))
	if s.opts.TTL > 0 {
		row.ExpiresAt = row.UpdatedAt.Add(s.opts.TTL)
	}
	if last := events[len(events)-1].Type; last == event.TypeSessionCompleted || last == event.TypeSessionFailed {
		row.Ended = strings.TrimPrefix(string(last), "session.")
	}
	b.Row = &row
	return b
}

func (s *Store) commit(ctx context.Context, b Batch) error {
	if s.opts.Committed != nil {
		defer s.order.lock(b.SessionID)()
	}
	if err := s.driver.Commit(ctx, b); err != nil {
		return err
	}
	s.hub.tell(b.SessionID, b.Events)
	if s.opts.Committed != nil && len(b.Events) > 0 {
		s.opts.Committed(b.Events)
	}
	return nil
}

// order keeps the appends of a session one at a time, so that they are told in the order in which they are made. The zero value is ready.
type order [1024]sync.Mutex

// lock locks the place of a session, which it may share with others, and returns what unlocks it.
func (o *order) lock(id string) (unlock func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	m := &o[h.Sum32()%uint32(len(o))]
	m.Lock()
	return m.Unlock
}

// keySlot is where the answer to a keyed request goes; nil if the request has no key.
type keySlot struct{ key Key }

// key returns the slot of a request key and, if the key was used before, what was answered.
func (s *Store) key(ctx context.Context, scope string, rk RequestKey) (*keySlot, *Accepted, error) {
	if rk.Name == "" {
		return nil, nil, nil
	}
	slot := &keySlot{Key{Name: hash(scope + rk.Name), BodyHash: hash(string(rk.Body)), ExpiresAt: s.now().Add(keyTTL)}}
	stored, err := s.driver.Key(ctx, slot.key.Name)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && !stored.ExpiresAt.After(s.opts.Clock.Now()):
		return slot, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading an idempotency key: %w", err)
	}
	acc, err := answer(stored, rk)
	return slot, acc, err
}

func (k *keySlot) with(acc Accepted) *Key {
	if k == nil {
		return nil
	}
	k.key.Answer, _ = json.Marshal(acc) //nolint:errchkjson // strings only
	return &k.key
}

// answer returns what was answered to the request that used the key first.
func answer(stored Key, rk RequestKey) (*Accepted, error) {
	if stored.BodyHash != hash(string(rk.Body)) {
		return nil, bdkerr.New(bdkerr.KeyReused, "idempotency key %q was used with another request: take a new key", rk.Name)
	}
	var acc Accepted
	if err := json.Unmarshal(stored.Answer, &acc); err != nil {
		return nil, fmt.Errorf("reading the answer of an idempotency key: %w", err)
	}
	acc.Repeated = true
	return &acc, nil
}

func (s *Store) repeat(acc *Accepted, err error) (Accepted, error) {
	if err != nil {
		return Accepted{}, err
	}
	return *acc, nil
}

// lost turns the error of a failed acceptance into its answer: a request that raced with itself gets the winner's answer.
func (s *Store) lost(err error, rk RequestKey) (Accepted, error) {
	if taken, ok := errors.AsType[*KeyError](err); ok {
		return s.repeat(answer(taken.Key, rk))
	}
	return Accepted{}, err
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func or[T ~string](v, fallback T) T {
	if v == "" {
		return fallback
	}
	return v
}
