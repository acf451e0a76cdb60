package localhost_test

import (
	"bufio"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/host/localhost"
)

// jumpy is a clock that stands still, but for jumps. Who waits for it looks at it often.
type jumpy struct {
	clock.System

	mu  sync.Mutex
	now time.Time
}

func (j *jumpy) Now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now
}

func (j *jumpy) jump(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = j.now.Add(d)
}

func (j *jumpy) After(d time.Duration) (<-chan time.Time, func() bool) {
	return j.System.After(min(d, 20*time.Millisecond))
}

// Two hosts on one state root have what is due in a moment happen once; in development they do not.
func TestSchedulesHappen(t *testing.T) {
	t.Parallel()
	for _, dev := range []bool{false, true} {
		var mu sync.Mutex
		ticks := map[time.Time]int{}
		happened := make(chan struct{}, 1000)
		beat := bdk.NamedSchedule{Name: "beat", Schedule: bdk.DefineSchedule(bdk.ScheduleSpec{
			Cron: "* * * * *", Run: func(_ context.Context, c *bdk.ScheduleContext) error {
				mu.Lock()
				defer mu.Unlock()
				ticks[c.At]++
				happened <- struct{}{}
				return nil
			},
		})}
		_, config := place(t)
		config.Dev = dev
		agents := projects()
		agents[0].Schedules = []bdk.NamedSchedule{beat}
		begin := time.Now().Truncate(time.Minute)
		c := &jumpy{now: begin}
		ctx, cancel := context.WithCancel(t.Context())
		var hosts sync.WaitGroup
		for range 2 {
			out, banner := io.Pipe()
			p := localhost.Program{Projects: agents, Config: config, Clock: c, Getenv: func(string) string { return "" }, Stdout: banner, Stderr: io.Discard}
			hosts.Go(func() {
				if err := p.Run(ctx); err != nil {
					t.Error(err)
				}
				_ = banner.Close()
			})
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		for range 500 { // the loops may not have begun yet; when they have, each minute is due
			c.jump(time.Minute)
			time.Sleep(30 * time.Millisecond)
			if dev && c.Now().After(begin.Add(10*time.Minute)) || len(happened) > 2 {
				break
			}
		}
		cancel()
		hosts.Wait()
		if dev == (len(ticks) > 0) {
			t.Errorf("dev %t: ticks %v", dev, ticks)
		}
		for at, n := range ticks {
			if n != 1 {
				t.Errorf("it happened %d times at %s", n, at)
			}
		}
	}
}
