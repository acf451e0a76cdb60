package sfnturn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/internal/awsx"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

const (
	firstLook  = 30 * time.Second // how old a turn is when a sweep first looks at it
	sweepPage  = 200
	sweepLooks = 8 // at turns at once
)

// Sweeper looks after the turns that nobody looks after: those that were accepted while the service could not start them, and
// those whose execution ended without them. It keeps no state and is safe for concurrent use.
type Sweeper struct {
	runner   *Runner
	sessions *session.Store
	agent    string
	opts     SweepOptions
}

// SweepOptions adjust a Sweeper. The zero value is usable.
type SweepOptions struct {
	Clock clock.Clock  // default: the system clock
	Log   *slog.Logger // default: none

	// Window is the longest time between the beginnings of two sweeps. A turn that became due longer ago is taken for one that was
	// looked at. Default: 2 min, for a schedule that fires at any moment of every minute.
	Window time.Duration
}

// NewSweeper returns the sweeper of the turns that runner starts for the sessions of an agent, given by its slug.
func NewSweeper(runner *Runner, sessions *session.Store, agent string, opts SweepOptions) *Sweeper {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Window <= 0 {
		opts.Window = 2 * time.Minute
	}
	return &Sweeper{runner, sessions, agent, opts}
}

// Sweep resumes the calls of active turns that were decided or have waited long enough, and looks at the turns that are due: it starts those without an execution, and ends those whose execution has ended
// with fail, which must leave a turn alone that has ended in the log. A turn is due when it is 30 s old, then 1 min, 2 min, 4 min
// and so on: parked turns, which wait for days, take no part in the work of a sweep but for being listed.
//
// A turn that cannot be looked after does not keep the others from it. Sweep returns the first error, and ends when ctx does.
func (s *Sweeper) Sweep(ctx context.Context, fail func(ctx context.Context, ref turn.Ref, message string) error) error {
	var looks errgroup.Group
	looks.SetLimit(sweepLooks)
	now := s.opts.Clock.Now()
	q := session.Query{Agent: s.agent, Active: true, Limit: sweepPage}
	for {
		rows, next, err := s.sessions.List(ctx, q)
		for _, row := range rows {
			looks.Go(func() error { return s.resume(ctx, row, now) })
			// an active turn began with the last update of its row
			if due(now.Sub(row.UpdatedAt), s.opts.Window) {
				looks.Go(func() error { return s.look(ctx, turn.Ref{SessionID: row.ID, TurnID: row.Turn.ID}, fail) })
			}
		}
		if q.Cursor = next; err != nil || next == "" {
			return errors.Join(err, looks.Wait())
		}
	}
}

// resume has a turn go on that waits for calls although one of them was decided, in case that who recorded the decision could
// not, or has waited long enough.
func (s *Sweeper) resume(ctx context.Context, row session.Record, now time.Time) error {
	var calls []string
	settled := false
	for _, a := range row.Turn.Approvals {
		calls = append(calls, a.CallID)
		settled = settled || a.Decision != "" && !row.Turn.Parked || a.Decision == "" && !now.Before(a.ExpiresAt)
	}
	if !settled {
		return nil
	}
	return s.runner.Resume(ctx, turn.Ref{SessionID: row.ID, TurnID: row.Turn.ID}, row.Turn.Parked, calls...)
}

// due reports whether the age of a turn reached firstLook, or a power of two of it, within the last window.
func due(age, window time.Duration) bool {
	at := firstLook
	for at <= age/2 {
		at *= 2
	}
	return at <= age && at > age-window
}

// look starts a turn that has no execution, and ends one whose execution has ended.
func (s *Sweeper) look(ctx context.Context, ref turn.Ref, fail func(context.Context, turn.Ref, string) error) error {
	log := s.opts.Log.With(slog.String("session_id", ref.SessionID), slog.String("turn_id", ref.TurnID))
	existed, err := s.runner.start(ctx, ref)
	if err != nil || !existed {
		return err
	}
	why, ended, err := s.runner.ended(ctx, ref)
	if err != nil || !ended {
		return err
	}
	log.WarnContext(ctx, "execution ended without its turn", slog.String("error", why.Error), slog.String("cause", why.Cause))
	return fail(ctx, ref, why.Message())
}

// ended reports whether the execution of a turn has ended, and why.
func (r *Runner) ended(ctx context.Context, ref turn.Ref) (Failure, bool, error) {
	arn, err := execution(r.machineOf(ctx), ref)
	if err != nil {
		return Failure{}, false, err
	}
	x, err := r.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil {
		return Failure{}, false, fmt.Errorf("looking at turn %s: %w", ref.TurnID, awsx.Fault(ctx, err))
	}
	switch x.Status {
	case types.ExecutionStatusSucceeded, types.ExecutionStatusFailed, types.ExecutionStatusTimedOut, types.ExecutionStatusAborted:
		return Failure{Error: "execution " + string(x.Status), Cause: aws.ToString(x.Cause)}, true, nil
	default:
		return Failure{}, false, nil
	}
}
