package wake_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/functions/wake"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
)

// schedules answers each tick in the same way.
type schedules struct {
	ticks []engine.Tick
	done  engine.Dispatched
	err   error
}

func (s *schedules) Dispatch(_ context.Context, t engine.Tick) (engine.Dispatched, error) {
	s.ticks = append(s.ticks, t)
	return s.done, s.err
}

// What may be tried again is an error, and nothing else is.
func TestEvents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		event     string
		schedules schedules
		fault     string
		logged    string
	}{
		"dispatched":           {`{"schedule":"daily","at":"2026-12-01T09:00:42Z"}`, schedules{done: engine.Dispatched{SessionIDs: []string{"ses_1"}}}, "", `"session_ids":["ses_1"]`},
		"dispatched before":    {`{"schedule":"daily","at":"2026-12-01T09:00:00Z"}`, schedules{done: engine.Dispatched{Repeated: true}}, "", `"repeated":true`},
		"a function's failure": {`{"schedule":"daily","at":"2026-12-01T09:00:00Z"}`, schedules{done: engine.Dispatched{Failed: errors.New("no luck")}}, "", `"failed":true`},
		"gone meanwhile":       {`{"schedule":"daily","at":"2026-12-01T09:00:00Z"}`, schedules{err: bdkerr.New(bdkerr.NotFound, "no")}, "", `"unknown":true`},
		"out of reach":         {`{"schedule":"daily","at":"2026-12-01T09:00:00Z"}`, schedules{err: errors.New("away")}, "away", `"error":"away"`},
		"no time":              {`{"schedule":"daily"}`, schedules{}, "no schedule, or no time", `"level":"ERROR"`},
		"no schedule":          {`{"at":"2026-12-01T09:00:00Z"}`, schedules{}, "no schedule, or no time", `"level":"ERROR"`},
	} {
		var log bytes.Buffer
		s := tc.schedules
		_, err := lambda.NewHandler(wake.New(&s, slog.New(slog.NewJSONHandler(&log, nil)))).Invoke(t.Context(), []byte(tc.event))
		if (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) || !strings.Contains(log.String(), tc.logged) {
			t.Errorf("%s: %v, logged %s", name, err, log.String())
		}
		want := engine.Tick{Schedule: "daily", At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}
		if asked := !strings.Contains(tc.fault, "no schedule"); asked && (len(s.ticks) != 1 || s.ticks[0] != want) || !asked && len(s.ticks) != 0 {
			t.Errorf("%s: asked for %+v", name, s.ticks)
		}
	}
}
