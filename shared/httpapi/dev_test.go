package httpapi_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// In development schedules and reminders happen when somebody asks for it.
func TestDevRoutes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 9, 7, 3, 0, time.UTC)
	agent := newAgent("demo")
	agent.reminders = []bdk.ReminderRecord{{ID: "rem_1", SessionID: "ses_1", Message: "stand up", At: now, CreatedAt: now}}
	agent.onDispatch = func(tick engine.Tick) (engine.Dispatched, error) {
		if !tick.ByHand || !tick.At.Equal(now) {
			t.Errorf("tick %+v", tick)
		}
		switch tick.Schedule {
		case "daily":
			return engine.Dispatched{SessionIDs: []string{"ses_1"}}, nil
		case "quiet":
			return engine.Dispatched{}, nil
		case "broken":
			return engine.Dispatched{Failed: errors.New("no luck")}, nil
		}
		return engine.Dispatched{}, bdkerr.New(bdkerr.NotFound, "there is no schedule %q", tick.Schedule)
	}
	c := newClient(t, httpapi.Options{Dev: true, Clock: clock.Fixed(now)}, agent)
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "schedules/daily", "", 200, `{"ok":true,"scheduleId":"daily","sessionIds":["ses_1"]}`},
		{"POST", "schedules/daily", "{}", 200, `"ses_1"`},
		{"POST", "schedules/quiet", "", 200, `"sessionIds":[]`},
		{"POST", "schedules/broken", "", 500, `the schedule failed, and is not tried again: no luck`},
		{"POST", "schedules/none", "", 404, `there is no schedule \"none\"`},
		{"POST", "schedules/daily", `{"at":"now"}`, 400, `invalid_request`},
		{"POST", "schedules/daily?at=now", "", 400, `invalid_request`},
		{"GET", "schedules/daily", "", 405, `method_not_allowed`},
		{"GET", "reminders", "", 200, `"reminders":[{"id":"rem_1","sessionId":"ses_1","message":"stand up","at":"2026-12-01T09:07:03Z","createdAt":"2026-12-01T09:07:03Z"}]`},
		{"GET", "reminders?all=1", "", 400, `invalid_request`},
		{"POST", "reminders/rem_1", "", 200, `{"ok":true,"reminderId":"rem_1"}`},
		{"POST", "reminders/rem_2", "", 404, `there is no open reminder`},
	} {
		if a := c.do(tc.method, "/demo/v1/dev/"+tc.path, tc.body); a.status != tc.status || !strings.Contains(a.raw, tc.want) {
			t.Errorf("%s %s %s: got %d %s; want %d %s", tc.method, tc.path, tc.body, a.status, a.raw, tc.status, tc.want)
		}
	}
	agent.remindFault = bdkerr.New(bdkerr.SessionBusy, "a turn runs")
	if a := c.do("POST", "/demo/v1/dev/reminders/rem_1", ""); a.status != 409 {
		t.Errorf("a busy session: %d %s", a.status, a.raw)
	}
	c = newClient(t, httpapi.Options{}, agent)
	for _, path := range []string{"POST schedules/daily", "GET reminders", "POST reminders/rem_1"} {
		method, path, _ := strings.Cut(path, " ")
		if a := c.do(method, "/demo/v1/dev/"+path, ""); a.status != 404 {
			t.Errorf("%s %s: got %d outside of development", method, path, a.status)
		}
	}
}
