package suite

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// schedules: what is due when is shown.
func schedules(t *testing.T, target Target) {
	var info struct {
		Schedules []struct {
			Name, Source, Cron, Form string
			Next                     []time.Time
		}
	}
	a := target.Ann(t).Do("GET", "/v1/info", "")
	if err := json.Unmarshal([]byte(a.Raw), &info); err != nil || len(info.Schedules) != 2 {
		t.Fatalf("got %d %s, %v", a.Status, a.Raw, err)
	}
	for i, want := range []struct{ name, form, date string }{{"pulse", "run", "12-31"}, {"yearly", "prompt", "01-01"}} {
		s := info.Schedules[i]
		if s.Name != want.name || s.Form != want.form || len(s.Next) != 3 || !s.Next[0].After(time.Now()) {
			t.Errorf("got %+v; want %+v", s, want)
		}
		for n, at := range s.Next {
			if at.Format("01-02 15:04") != want.date+" 00:00" || n > 0 && at.Year() != s.Next[n-1].Year()+1 {
				t.Errorf("%s is due at %s", s.Name, at)
			}
		}
	}
}

// devRoutes: what happens by hand in development alone is not there otherwise.
func devRoutes(t *testing.T, target Target) {
	ann := target.Ann(t)
	for _, r := range httpapi.Routes() {
		if r.Dev {
			path := strings.NewReplacer("{scheduleId}", "yearly", "{reminderId}", "rem_x").Replace(r.Pattern)
			ann.Do(r.Method, path, "").Refused(r.Method+" "+path, 404, "not_found")
		}
	}
}

// reminders: a session is sent what it is to be reminded of, once, while its client has the token that it had.
func reminders(t *testing.T, target Target) {
	s := target.Ann(t).Start("remind me")
	results := Results(s.Completed())
	if len(results) != 1 || results[0].IsError || strings.Count(string(results[0].Output), `"id":"rem_`) != 1 {
		t.Fatalf("the tool: %+v", results)
	}
	const most = 4 * time.Minute // on AWS it takes more than a minute
	var log []event.Event
	for begin := time.Now(); time.Since(begin) < most; time.Sleep(200 * time.Millisecond) {
		log = s.Events("")
		if messages := all[event.MessageReceived](log); len(messages) > 1 && isEnd(ending(log, last(log, event.TypeMessageReceived).TurnID)) {
			break
		}
	}
	var texts []string
	for _, m := range all[event.MessageReceived](log) {
		texts = append(texts, m.Text)
	}
	if len(texts) != 2 || texts[1] != "hello again" {
		t.Fatalf("messages %q", texts)
	}
	Check(t, log)
	s.Usable()
	if messages := all[event.MessageReceived](s.Events("")); len(messages) != 3 {
		t.Errorf("messages %+v", messages)
	}
}

// last returns the last event of a type.
func last(log []event.Event, kind event.Type) (e event.Event) {
	for _, one := range log {
		if one.Type == kind {
			e = one
		}
	}
	return e
}
