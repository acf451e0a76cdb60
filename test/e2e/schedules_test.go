package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/launch"
	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

// In development nothing happens by itself; a schedule that somebody has happen does so once, and a reminder is sent when somebody says so.
func TestSchedulesInDevelopment(t *testing.T) {
	t.Parallel()
	ann := tokens(inProcess(t, script, launch.Config{BearerTokens: []string{"ann:a-secret", "bob:b-secret"}, Dev: true})).Ann(t)
	a := ann.Do("POST", "/v1/dev/schedules/yearly", "")
	ids, _ := a.Field("sessionIds").([]any)
	if a.Status != 200 || a.Text("scheduleId") != "yearly" || len(ids) != 1 {
		t.Fatalf("got %d %s", a.Status, a.Raw)
	}
	ann.Do("POST", "/v1/dev/schedules/pulse", "").Refused("a function that fails", 500, "schedule_failed")
	ann.Do("POST", "/v1/dev/schedules/none", "").Refused("an unknown schedule", 404, "not_found")
	var notes map[string]int
	for range 100 { // the session's turn, of another owner
		if notes = ann.Notes(); len(notes) == 2 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for id, n := range notes {
		if n != 1 {
			t.Errorf("call %s ran %d times", id, n)
		}
	}
	if len(notes) != 2 {
		t.Errorf("notes %v", notes)
	}

	s := ann.Start("remind me")
	results := suite.Results(s.Completed())
	id := "rem_" + strings.SplitN(strings.SplitN(string(results[0].Output), `"id":"rem_`, 2)[1], `"`, 2)[0]
	time.Sleep(2 * time.Second) // it is due, and nobody sends it
	list := ann.Do("GET", "/v1/dev/reminders", "")
	if list.Status != 200 || strings.Count(list.Raw, `"id":"`) != 1 || !strings.Contains(list.Raw, id) || !strings.Contains(list.Raw, s.ID) {
		t.Errorf("got %d %s", list.Status, list.Raw)
	}
	if a := ann.Do("POST", "/v1/dev/reminders/"+id, ""); a.Status != 200 {
		t.Errorf("got %d %s", a.Status, a.Raw)
	}
	ann.Do("POST", "/v1/dev/reminders/"+id, "").Refused("again", 404, "not_found")
	s.Say("the token is as it was")
	s.Ended()
	if !slices.ContainsFunc(s.Events(""), func(e event.Event) bool { return strings.Contains(string(e.Data), "hello again") }) {
		t.Error("the session was not reminded")
	}
}
