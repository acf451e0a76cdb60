package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
)

// hooks: they are told what was recorded, once and in order, whatever other hooks do; what goes wrong is in the log.
func hooks(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("trail")
	s.Completed()
	for _, message := range []string{"trail, and fail", "trail, and panic"} {
		s = s.Say(message)
		s.Completed()
	}
	var want []string
	for _, e := range s.Events("") {
		if e.Type == event.TypeMessageReceived || e.Type == event.TypeTurnCompleted {
			want = append(want, fmt.Sprintf("%d %s http %s", e.Index, e.Type, ann.principal(s.ID)))
		}
	}
	var got []string
	for deadline := time.Now().Add(time.Minute); len(got) < len(want) && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		list, _ := ann.call("trail", object{"session": s.ID}).called("trail").([]any)
		got = nil
		for _, line := range list {
			got = append(got, fmt.Sprint(line))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 6 {
		t.Errorf("the hook was told (-want +got):\n%s", diff)
	}
	for _, line := range []string{
		`handler for message.received threw: the hook was told to fail`,
		`handler for message.received threw: panic: the hook was told to panic`,
	} {
		a := ann.pageOfLogs(line)
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(a.Raw, line) && time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
			a = ann.pageOfLogs(line)
		}
		if !strings.Contains(a.Raw, line) {
			t.Errorf("the log lacks %s: %.500s", line, a.Raw)
		}
	}
}

// principal returns who a session belongs to, as the list of sessions has it.
func (c *Client) principal(id string) string {
	c.t.Helper()
	list, _ := c.Do("GET", "/v1/sessions?limit=1000", "").Field("sessions").([]any)
	for _, one := range list {
		if s, ok := one.(map[string]any); ok && s["sessionId"] == id {
			return fmt.Sprint(s["owner"])
		}
	}
	c.t.Fatalf("session %s is not in the list", id)
	return ""
}
