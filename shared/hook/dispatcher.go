package hook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

const (
	// maxHeld bounds the data, in bytes, of events that wait for slow subscribers. What is beyond is read again when it is its turn.
	maxHeld = 32 << 20
	// attempts is how often an event is told to a subscriber with Retry; the pauses double from firstPause on, to three minutes in all.
	attempts   = 8
	firstPause = 1500 * time.Millisecond
)

// Dispatcher tells subscribers in this process. It is safe for concurrent use.
type Dispatcher struct {
	opts Options

	mu      sync.Mutex
	subs    []Subscriber
	queues  map[place][]event.Event // what waits; the first one is being told
	held    int                     // bytes of data in queues
	closed  bool
	workers sync.WaitGroup
	ctx     context.Context //nolint:containedctx // of the workers, which come and go with the events
	cancel  context.CancelFunc
}

// place is where events wait: there is a worker for each.
type place struct {
	sub     int
	session string
}

// Options of a [Dispatcher]. Those without a default are required.
type Options struct {
	Sessions func() *session.Store // where events are read again
	Cursors  *Cursors              // of subscribers with Retry; nil if there are none
	Clock    clock.Clock           // default: the system clock
	Log      *slog.Logger
}

// NewDispatcher returns a dispatcher without subscribers. What it calls has the values of ctx, and does not end with it.
func NewDispatcher(ctx context.Context, opts Options) *Dispatcher {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	d := &Dispatcher{opts: opts, queues: map[place][]event.Event{}}
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return d
}

// Subscribe adds subscribers. It is called before the first event is told.
func (d *Dispatcher) Subscribe(subs ...Subscriber) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subs = append(d.subs, subs...)
}

// Told has the subscribers told events of one session that this process has recorded. It returns at once.
func (d *Dispatcher) Told(events []event.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	for i, sub := range d.subs {
		for _, e := range events {
			if sub.Wants(e) {
				d.enqueue(place{i, e.SessionID}, e)
			}
		}
	}
}

// enqueue has an event told after those that wait.
func (d *Dispatcher) enqueue(p place, e event.Event) {
	if d.held+len(e.Data) > maxHeld {
		e.Data = nil // events have at least {}
	}
	d.held += len(e.Data)
	queue, running := d.queues[p]
	d.queues[p] = append(queue, e)
	if !running {
		d.workers.Go(func() { d.work(p) })
	}
}

// work tells what waits at a place, until nothing does.
func (d *Dispatcher) work(p place) {
	sub := d.subs[p.sub]
	for {
		d.mu.Lock()
		queue := d.queues[p]
		if len(queue) == 0 {
			delete(d.queues, p)
			d.mu.Unlock()
			return
		}
		e := queue[0]
		d.mu.Unlock()
		if d.ctx.Err() == nil {
			d.tell(sub, e)
		}
		d.mu.Lock()
		d.held -= len(e.Data)
		queue = d.queues[p]
		queue[0] = event.Event{}
		d.queues[p] = queue[1:]
		d.mu.Unlock()
	}
}

// tell tells one event, as often as the subscriber wants.
func (d *Dispatcher) tell(sub Subscriber, e event.Event) {
	log := d.opts.Log.With(slog.String("subscriber", sub.Name), slog.String("session_id", e.SessionID), slog.Int64("index", e.Index))
	for pause, n := firstPause, 1; ; pause, n = 2*pause, n+1 {
		err := d.try(sub, e)
		switch {
		case err == nil || d.ctx.Err() != nil:
			return
		case !sub.Retry || n == attempts:
			log.Error("an event was not told: it is skipped", slog.Any("error", err), slog.Int("attempts", n))
			if sub.Retry {
				_, _ = d.opts.Cursors.Advance(d.ctx, sub.Name, e.SessionID, e.Index) // otherwise it is tried again some time
			}
			return
		}
		log.Warn("an event was not told: it is tried again", slog.Any("error", err))
		if clock.Sleep(d.ctx, d.opts.Clock, pause) != nil {
			return
		}
	}
}

// try tells one event once.
func (d *Dispatcher) try(sub Subscriber, e event.Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if sub.Retry {
		at, err := d.opts.Cursors.At(d.ctx, sub.Name, e.SessionID)
		if err != nil || at >= e.Index {
			return err
		}
	}
	if e.Data == nil {
		if e, err = Read(d.ctx, d.opts.Sessions(), e.SessionID, e.Index); err != nil {
			return err
		}
	}
	if err = sub.Handle(d.ctx, e); err == nil && sub.Retry {
		_, err = d.opts.Cursors.Advance(d.ctx, sub.Name, e.SessionID, e.Index)
	}
	return err
}

// Close waits until everything has been told, or ctx ends: then subscribers are told to end, and waited for no longer than they take for
// that. What is recorded from then on is told by no one, or, with Retry, by the next process.
func (d *Dispatcher) Close(ctx context.Context) {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	done := make(chan struct{})
	go func() {
		d.workers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	d.cancel()
	<-done
}

// Read returns one event of a session.
func Read(ctx context.Context, sessions *session.Store, id string, index int64) (event.Event, error) {
	c := sessions.Cursor(id, index)
	defer c.Close()
	events, err := c.Read(ctx)
	if err == nil && len(events) == 0 {
		err = fmt.Errorf("session %s has no event %d", id, index)
	}
	if err != nil {
		return event.Event{}, err
	}
	return events[0], nil
}
