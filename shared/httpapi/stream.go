package httpapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

// maxIndex is the largest index a client may ask for: beyond it, a number in JSON is not exact.
const maxIndex = 1<<53 - 1

// errGone says that the reader of a stream is gone.
var errGone = errors.New("httpapi: the reader is gone")

// stream sends the log from an index on, then what is appended.
func (x *exchange) stream() error {
	q, err := x.query("startIndex", "follow")
	if err != nil {
		return err
	}
	follow, err := q.choice("follow", "true", "false")
	if err != nil {
		return err
	}
	return x.copyLog(q, "application/x-ndjson", func(ctx context.Context, out *lines, cursor *session.Cursor) error {
		if follow == "false" || x.row.Ended != "" {
			return x.replay(ctx, out, cursor)
		}
		return x.follow(ctx, out, cursor)
	})
}

// events sends the log as it is now.
func (x *exchange) events() error {
	q, err := x.query("startIndex", "format")
	if err != nil {
		return err
	}
	format, err := q.choice("format", "ndjson", "json")
	if err != nil {
		return err
	}
	if format == "ndjson" {
		return x.copyLog(q, "application/x-ndjson", x.replay)
	}
	return x.copyLog(q, "application/json", func(ctx context.Context, out *lines, cursor *session.Cursor) error {
		out.list = true
		out.buf.WriteString(`{"ok":true,"sessionId":"` + x.row.ID + `","events":[`)
		if err := x.replay(ctx, out, cursor); err != nil {
			return err
		}
		out.buf.WriteString("]}\n")
		return out.write()
	})
}

// copyLog answers with a log from startIndex on. It reads the first page before it begins to answer, so that a fault
// of the store has its envelope.
func (x *exchange) copyLog(q params, contentType string, send func(context.Context, *lines, *session.Cursor) error) error {
	from, err := q.number("startIndex", 0, -maxIndex, maxIndex)
	if err != nil {
		return err
	}
	select {
	case <-x.opts.Closing:
		return bdkerr.New(bdkerr.Unavailable, "the host is shutting down: read again in a moment")
	default:
	}
	ctx, release := x.untilClosing()
	defer release()
	if from < 0 {
		tail, err := x.agent.Sessions().Tail(ctx, x.row.ID)
		if err != nil {
			return err
		}
		from = max(tail+from, 0)
	}
	cursor := x.agent.Sessions().Cursor(x.row.ID, from)
	defer cursor.Close()
	first, err := cursor.Read(ctx)
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method == http.MethodHead {
		return nil
	}
	out := &lines{x: x, buf: x.bufs.Get().(*bytes.Buffer), first: first} //nolint:forcetypeassert // the pool has nothing else
	defer out.release()
	defer x.extend() // for the end of the answer
	if err := send(ctx, out, cursor); err != nil && !errors.Is(err, errGone) && x.r.Context().Err() == nil {
		return err
	}
	return nil
}

// untilClosing returns the request's context, which also ends when the host shuts down.
func (x *exchange) untilClosing() (context.Context, func()) {
	ctx, cancel := context.WithCancel(x.r.Context())
	if x.opts.Closing == nil {
		return ctx, cancel
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-x.opts.Closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// replay sends what is in the log now. An answer that ends early is cut, so that nobody takes it for the whole log.
func (x *exchange) replay(ctx context.Context, out *lines, cursor *session.Cursor) error {
	for {
		events, err := out.page(ctx, cursor)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return out.write()
		}
		if err := out.add(events); err != nil {
			return err
		}
	}
}

// follow sends the log and what is appended to it, until the session has ended, the reader or the host goes away, or the
// stream is too old or idle.
func (x *exchange) follow(ctx context.Context, out *lines, cursor *session.Cursor) error {
	t := x.opts.Clock.Now()
	f := follower{exchange: x, out: out, opened: t, written: t, active: t}
	if err := out.flush(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		events, err := out.page(ctx, cursor)
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the reader or the host goes away: a clean end
			}
			return err
		}
		if done, err := f.deliver(events); done || err != nil {
			return err
		}
		if f.over(ctx) {
			return nil
		}
		if len(events) == 0 {
			f.wait(ctx, cursor)
		}
	}
	return nil
}

// follower is a stream that follows its log.
type follower struct {
	*exchange

	out     *lines
	opened  time.Time
	written time.Time // when something was sent last
	active  time.Time // when an event was sent last, or a turn was seen to run
}

// deliver sends events, or a heartbeat if there are none for too long. It reports whether no event can follow.
func (f *follower) deliver(events []event.Event) (done bool, err error) {
	t := f.opts.Clock.Now()
	switch {
	case len(events) > 0:
		if err := f.out.add(events); err != nil {
			return false, err
		}
		last := events[len(events)-1].Type
		done, f.active = last == event.TypeSessionCompleted || last == event.TypeSessionFailed, t
	case expired(t, f.written, f.opts.Heartbeat):
		f.out.buf.WriteByte('\n')
	default:
		return false, nil
	}
	f.written = t
	return done, f.out.flush()
}

// over reports whether the stream is too old, or idle without a turn that runs.
func (f *follower) over(ctx context.Context) bool {
	t := f.opts.Clock.Now()
	if expired(t, f.opened, f.opts.MaxStream) {
		return true
	}
	if !expired(t, f.active, f.opts.IdleClose) {
		return false
	}
	row, err := f.agent.Sessions().Get(ctx, f.row.ID)
	f.active = t
	return err != nil || row.Turn.ID == "" // without its session, the stream is over too
}

// expired reports whether a limit, 0 for none, is over since a time.
func expired(now, since time.Time, limit time.Duration) bool {
	return limit > 0 && now.Sub(since) >= limit
}

// wait returns when there may be more to read, when something is due without an event, or at the end of ctx.
func (f *follower) wait(ctx context.Context, cursor *session.Cursor) {
	due := f.written.Add(f.opts.Heartbeat)
	if end := f.opened.Add(f.opts.MaxStream); f.opts.MaxStream > 0 && end.Before(due) {
		due = end
	}
	if end := f.active.Add(f.opts.IdleClose); f.opts.IdleClose > 0 && end.Before(due) {
		due = end
	}
	ctx, cancel := context.WithTimeout(ctx, due.Sub(f.opts.Clock.Now()))
	defer cancel()
	_ = cursor.Wait(ctx) // the caller finds out why it returned
}

// lines writes events to a client, many at once.
type lines struct {
	x     *exchange
	buf   *bytes.Buffer
	first []event.Event // the page that was read before the answer began
	list  bool          // commas between events, instead of a line end behind each
	any   bool          // an event was added
}

// flushAt is how many bytes are written at once; a buffer that grew far beyond is not kept.
const flushAt = 64 << 10

// page returns the next events, none at the end of the log.
func (l *lines) page(ctx context.Context, cursor *session.Cursor) ([]event.Event, error) {
	if events := l.first; len(events) > 0 {
		l.first = nil
		return events, nil
	}
	return cursor.Read(ctx)
}

// add writes events, or keeps them for the next write.
func (l *lines) add(events []event.Event) error {
	for _, e := range events {
		if l.list && l.any {
			l.buf.WriteByte(',')
		}
		l.any = true
		l.buf.Write(e.AppendJSON(l.buf.AvailableBuffer()))
		if !l.list {
			l.buf.WriteByte('\n')
		}
		if l.buf.Len() >= flushAt {
			if err := l.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

// write sends what was kept. A client that does not read in time is gone.
func (l *lines) write() error {
	if l.buf.Len() == 0 {
		return nil
	}
	l.x.extend()
	_, err := l.x.w.Write(l.buf.Bytes())
	l.buf.Reset()
	return l.gone(err)
}

// flush sends what was kept and has the client get it at once, where the host can do so.
func (l *lines) flush() error {
	if err := l.write(); err != nil {
		return err
	}
	l.x.extend()
	err := http.NewResponseController(l.x.w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return l.gone(err)
}

func (l *lines) gone(err error) error {
	if err == nil {
		return nil
	}
	l.x.log(slog.LevelDebug, "reader is gone", slog.Any("error", err))
	return errGone
}

func (l *lines) release() {
	if l.buf.Cap() <= 4*flushAt {
		l.buf.Reset()
		l.x.bufs.Put(l.buf)
	}
}
