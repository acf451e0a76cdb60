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
		out.separator, out.between = ',', true
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
	out := &lines{x: x, buf: x.bufs.Get().(*bytes.Buffer), first: first, separator: '\n'} //nolint:forcetypeassert // the pool has nothing else
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
	now := x.opts.Clock.Now
	opened := now()
	written, active := opened, opened
	if err := out.flush(); err != nil {
		return err
	}
	for {
		events, err := out.page(ctx, cursor)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case len(events) > 0:
			if err := errors.Join(out.add(events), out.write(), out.flush()); err != nil {
				return err
			}
			written, active = now(), now()
			if ends(events[len(events)-1].Type) {
				return nil
			}
		case now().Sub(written) >= x.opts.Heartbeat:
			out.buf.WriteByte('\n')
			if err := errors.Join(out.write(), out.flush()); err != nil {
				return err
			}
			written = now()
		}
		t := now()
		if expired(t, opened, x.opts.MaxStream) {
			return nil
		}
		if expired(t, active, x.opts.IdleClose) {
			row, err := x.agent.Sessions().Get(ctx, x.row.ID)
			if err != nil || row.Turn.ID == "" {
				return nil //nolint:nilerr // the session is gone, and so is the stream
			}
			active = t
		}
		if len(events) == 0 {
			x.wait(ctx, cursor, t, x.due(written, opened, active))
		}
	}
}

// ends reports whether no event comes behind one of this type.
func ends(t event.Type) bool {
	return t == event.TypeSessionCompleted || t == event.TypeSessionFailed
}

// expired reports whether a limit, 0 for none, is over since a time.
func expired(now, since time.Time, limit time.Duration) bool {
	return limit > 0 && now.Sub(since) >= limit
}

// due returns when a stream has to do something although no event comes.
func (x *exchange) due(written, opened, active time.Time) time.Time {
	due := written.Add(x.opts.Heartbeat)
	if end := opened.Add(x.opts.MaxStream); x.opts.MaxStream > 0 && end.Before(due) {
		due = end
	}
	if end := active.Add(x.opts.IdleClose); x.opts.IdleClose > 0 && end.Before(due) {
		due = end
	}
	return due
}

// wait returns when there may be more to read, when it is due, or at the end of ctx.
func (x *exchange) wait(ctx context.Context, cursor *session.Cursor, now, due time.Time) {
	ctx, cancel := context.WithTimeout(ctx, due.Sub(now))
	defer cancel()
	_ = cursor.Wait(ctx) // the caller finds out why
}

// lines writes events to a client, many at once.
type lines struct {
	x         *exchange
	buf       *bytes.Buffer
	first     []event.Event // the page that was read before the answer began
	separator byte          // behind each event, or between events
	between   bool
	any       bool // an event was added
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
		if l.between && l.any {
			l.buf.WriteByte(l.separator)
		}
		l.any = true
		l.buf.Write(e.AppendJSON(l.buf.AvailableBuffer()))
		if !l.between {
			l.buf.WriteByte(l.separator)
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

// flush has the client get what was written, where the host can do so.
func (l *lines) flush() error {
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
