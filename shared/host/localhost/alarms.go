package localhost

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/schedule"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

// alarms are the loops in which things happen at their time. The zero value has none.
type alarms struct {
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// wake begins to have schedules happen, and reminders be sent.
func (s *state) wake(ctx context.Context) {
	ctx, s.alarms.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, a := range s.agents {
		project := a.Project()
		loop := schedule.New(schedule.Options{
			Agent: project.Slug, Schedules: project.Schedules, Entries: s.kv, Clock: s.clock, Log: slog.New(s.ring).With(slog.String(telemetry.SlugKey, project.Slug)),
			Dispatch: func(ctx context.Context, name string, at time.Time) error {
				_, err := a.Dispatch(ctx, engine.Tick{Schedule: name, At: at})
				return err
			},
		})
		s.alarms.loops.Go(func() { loop.Run(ctx) })
		s.alarms.loops.Go(func() { a.RunReminders(ctx) })
	}
}

// close ends the loops. Functions that go on, though they are told to end, are waited for until ctx ends.
func (a *alarms) close(ctx context.Context) {
	if a.cancel == nil {
		return
	}
	a.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.loops.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
