package hook

import (
	"context"
	"log/slog"
	"sync"

	"github.com/bdk-lambda/bdk/shared/event"
)

// maxHeld bounds the data, in bytes, of events that wait for slow subscribers. What is beyond is read again when it is its turn.
const maxHeld = 32 << 20

// Dispatcher tells subscribers in this process. It is safe for concurrent use.
type Dispatcher struct {
	teller teller

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

// NewDispatcher returns a dispatcher without subscribers. What it calls has the values of ctx, and does not end with it.
func NewDispatcher(ctx context.Context, opts Options) *Dispatcher {
	d := &Dispatcher{teller: teller{Options: opts}, queues: map[place][]event.Event{}}
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
			if err := d.teller.tell(d.ctx, sub, e); err != nil && d.ctx.Err() == nil {
				d.teller.Log.ErrorContext(d.ctx, "telling an event", slog.String("subscriber", sub.Name), slog.String("session_id", e.SessionID), slog.Any("error", err))
			}
		}
		d.mu.Lock()
		d.held -= len(e.Data)
		queue = d.queues[p]
		queue[0] = event.Event{}
		d.queues[p] = queue[1:]
		d.mu.Unlock()
	}
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
