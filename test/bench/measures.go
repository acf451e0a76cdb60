package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience bounds a start.
const patience = 20 * time.Second

// start measures how long a process takes to answer and how much memory it then takes.
func (b *bench) start(ctx context.Context, s *server) error {
	var took []time.Duration
	for range b.of(200) / 10 {
		d, err := s.serve(ctx, patience)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	b.record("start", p50(took))
	if err := settle(ctx, 3*time.Second); err != nil {
		return err
	}
	mib, err := s.memory(ctx)
	b.record("idle", mib)
	return err
}

// turns measures the turns of one client, each in a new session.
func (b *bench) turns(ctx context.Context, s *server) error {
	if _, err := s.serve(ctx, patience); err != nil {
		return err
	}
	c := s.client()
	for _, m := range []struct{ name, text string }{{"onestep", "hello"}, {"tool", "tool"}} {
		var took []time.Duration
		for i := range b.of(1000) + 50 {
			d, err := c.turn(ctx, &conversation{}, m.text)
			if err != nil {
				return err
			}
			if i >= 50 { // the first ones warm up
				took = append(took, d)
			}
		}
		b.record(m.name, p50(took))
	}
	return nil
}

// clients measures 16 clients at once, what many sessions cost in memory and on the disk, and the list of them.
func (b *bench) clients(ctx context.Context, s *server) error {
	if _, err := s.serve(ctx, patience); err != nil {
		return err
	}
	few, many, all, listed := b.of(1000), b.of(10_000), b.of(16_000), b.of(100_000)
	var busy time.Duration
	var memory [2]float64
	for i, step := range []int{few, many - few, all - many} {
		d, err := s.crowd(ctx, step, (*client).turn)
		if err != nil {
			return err
		}
		busy += d
		if i == len(memory) {
			break
		}
		if err := settle(ctx, 2*time.Second); err != nil {
			return err
		}
		if memory[i], err = s.memory(ctx); err != nil {
			return err
		}
	}
	b.record("clients", float64(all)/busy.Seconds())
	if !b.quick { // a hundred turns fill no cache
		b.record("memory", memory[1]/memory[0])
	}
	b.record("memory MiB", memory[1])
	if err := s.stop(); err != nil { // moves the log into the file
		return err
	}
	size, err := s.disk()
	if err != nil {
		return err
	}
	b.record("disk", float64(size)/1000/float64(all))
	return b.list(ctx, s, all, listed)
}

// list measures pages of the list of many sessions.
func (b *bench) list(ctx context.Context, s *server, have, want int) error {
	if _, err := s.serve(ctx, patience); err != nil {
		return err
	}
	accept := func(c *client, ctx context.Context, v *conversation, text string) (time.Duration, error) {
		return 0, c.post(ctx, v, text)
	}
	if _, err := s.crowd(ctx, want-have, accept); err != nil {
		return err
	}
	if err := settle(ctx, 2*time.Second); err != nil { // turns that still run
		return err
	}
	c, cursor, total := s.client(), "", 0
	var took []time.Duration
	for {
		began := time.Now()
		n, next, err := c.page(ctx, cursor)
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
		total += n
		if cursor = next; cursor == "" {
			break
		}
	}
	if total != want {
		return fmt.Errorf("the list has %d sessions of %d", total, want)
	}
	part := len(took) / 10
	b.record("list", p50(took[len(took)-part:])/p50(took[:part]))
	b.record("list ms", p50(took))
	return nil
}

// crowd has 16 clients do n turns in new sessions and returns how long it took.
func (s *server) crowd(ctx context.Context, n int, turn func(*client, context.Context, *conversation, string) (time.Duration, error)) (time.Duration, error) {
	g, ctx := errgroup.WithContext(ctx)
	c := s.client()
	var done atomic.Int64
	began := time.Now()
	for range 16 {
		g.Go(func() error {
			for done.Add(1) <= int64(n) {
				if _, err := turn(c, ctx, &conversation{}, "hello"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

// long measures one conversation that grows, next to fresh ones.
func (b *bench) long(ctx context.Context, s *server) error {
	if _, err := s.serve(ctx, patience); err != nil {
		return err
	}
	c, v := s.client(), &conversation{}
	if _, _, err := c.beside(ctx, &conversation{}, b.of(200)); err != nil { // warms up
		return err
	}
	part := b.of(100)
	first, fresh, err := c.beside(ctx, v, part)
	if err != nil {
		return err
	}
	young := first / fresh
	for v.next < b.of(10_000) {
		if _, err := c.turn(ctx, v, "hello"); err != nil {
			return err
		}
	}
	grown, fresh, err := c.beside(ctx, v, part)
	if err != nil {
		return err
	}
	b.record("followup", grown/fresh)
	if err := b.replay(ctx, c, v); err != nil {
		return err
	}
	for v.turns < b.of(10_000)-part {
		if _, err := c.turn(ctx, v, "hello"); err != nil {
			return err
		}
	}
	last, fresh, err := c.beside(ctx, v, part)
	if err != nil {
		return err
	}
	b.record("turn 10,000", last/fresh/young) // the machine may have changed since
	b.record("fresh", last/fresh)
	return nil
}

// parked measures turns beside many sessions that wait for approval, next to turns on a server without any.
func (b *bench) parked(ctx context.Context, s *server) (err error) {
	empty := &server{bench: b, root: s.root + "-empty"}
	for _, one := range []*server{s, empty} {
		if _, err := one.serve(ctx, patience); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, empty.stop()) }()
	c := s.client()
	for range b.of(300) {
		v := &conversation{}
		if err := c.post(ctx, v, "park"); err != nil {
			return err
		}
		if err := c.asked(ctx, v); err != nil {
			return err
		}
	}
	var beside, alone []time.Duration
	none := empty.client()
	for i := range b.of(1000) + 50 {
		one, err := c.turn(ctx, &conversation{}, "hello")
		if err != nil {
			return err
		}
		other, err := none.turn(ctx, &conversation{}, "hello")
		if err != nil {
			return err
		}
		if i >= 50 { // the first ones warm up
			beside, alone = append(beside, one), append(alone, other)
		}
	}
	b.record("parked", p50(beside)/p50(alone))
	return nil
}

// beside measures n turns of a conversation that alternate with second turns of fresh ones, so that both meet the same machine.
func (c *client) beside(ctx context.Context, v *conversation, n int) (one, fresh float64, err error) {
	var ones, others []time.Duration
	for range n {
		d, err := c.turn(ctx, v, "hello")
		if err != nil {
			return 0, 0, err
		}
		ones = append(ones, d)
		other := &conversation{}
		if _, err := c.turn(ctx, other, "hello"); err != nil {
			return 0, 0, err
		}
		if d, err = c.turn(ctx, other, "hello"); err != nil {
			return 0, 0, err
		}
		others = append(others, d)
	}
	return p50(ones), p50(others), nil
}

// replay measures how fast a whole log is read.
func (b *bench) replay(ctx context.Context, c *client, v *conversation) error {
	var took []time.Duration
	events := 0
	b.mark()
	for range 20 {
		began := time.Now()
		n, err := c.replay(ctx, v)
		if err != nil {
			return err
		}
		took, events = append(took, time.Since(began)), n
	}
	if events < v.next {
		return fmt.Errorf("the replay has %d events of %d", events, v.next)
	}
	b.record("replay", float64(events)/p50(took)*1000)
	return nil
}

// p50 returns the median in milliseconds.
func p50(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}

func settle(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
