package sqlitex

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// pool lends out read connections. The one returned last is lent first: its pages are in memory.
type pool struct {
	path    string
	places  chan struct{} // holds one value per connection that may still be lent
	closing <-chan struct{}

	mu   sync.Mutex
	free []*conn
}

func (p *pool) init(path string, size int, closing <-chan struct{}) {
	p.path, p.closing = path, closing
	p.places = make(chan struct{}, size)
	for range size {
		p.places <- struct{}{}
	}
}

func (p *pool) get(ctx context.Context) (*conn, error) {
	select {
	case <-p.closing:
		return nil, ErrClosed
	default:
	}
	select {
	case <-p.places:
	case <-p.closing:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := openConn(ctx, p.path, fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY; PRAGMA query_only=ON",
		busyTimeoutMS, readerCacheKiB))
	if err != nil {
		p.places <- struct{}{}
		return nil, interrupted(ctx, err)
	}
	return c, nil
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	p.places <- struct{}{}
}

// close waits for lent connections and closes all.
func (p *pool) close() error {
	for range cap(p.places) {
		<-p.places
	}
	var errs []error
	for _, c := range p.free {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
