package suite

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
)

// start: every field of a new session is accepted and told.
func start(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start(" Größe? 🌍 ", map[string]any{
		"title": "A title", "dryRun": true, "asOf": "2026-01-31T09:00:00+02:00", "purpose": "eval",
		"workspaceFiles": map[string]string{"a/b.txt": "one", "c": ""},
	})
	log := s.Completed()
	asOf := time.Date(2026, 1, 31, 7, 0, 0, 0, time.UTC)
	want := event.SessionStarted{Agent: "workshop", ChannelID: "http", Mode: "chat", Purpose: "eval", Title: "A title", DryRun: true, AsOf: &asOf}
	got, err := event.Decode[event.SessionStarted](log[0])
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("session.started, error %v, want -, got +:\n%s", err, diff)
	}
	if m, err := event.Decode[event.MessageReceived](log[1]); err != nil || m.Text != " Größe? 🌍 " {
		t.Errorf("the message is %q, error %v", m.Text, err)
	}
	order := ann.Start("add it").Completed()
	wantOrder := []string{
		"session.started", "message.received", "turn.started", "reasoning.appended", "reasoning.completed", "message.appended",
		"message.completed", "actions.requested", "action.result", "message.appended", "message.completed", "turn.completed", "session.waiting",
	}
	if diff := cmp.Diff(wantOrder, types(order)); diff != "" {
		t.Errorf("a turn with a tool, want -, got +:\n%s", diff)
	}
	if r := Results(order)[0]; r.IsError || string(r.Output) != "5" {
		t.Errorf("2 + 3 is %s", r.Output)
	}
	a := ann.post("/v1/session", map[string]any{"message": "hello"})
	if url := a.Text("traceUrl"); !strings.HasSuffix(url, "/v1/session/"+a.Text("sessionId")+"/events") {
		t.Errorf("the trace URL is %q", url)
	}
}

// followUps: each token is good for one message.
func followUps(t *testing.T, target Target) {
	s := target.Ann(t).Start("one")
	s.Completed()
	first := s.Token
	s.Say("two")
	if s.Token == first {
		t.Error("the token did not rotate")
	}
	s.send(first, "again").Refused("a used token", 409, "stale_token")
	s.send("http:guess", "again").Refused("a guess", 409, "stale_token")
	s.send("", "again").Refused("an empty token", 400, "invalid_request")
	s.post(s.Path(""), map[string]any{"message": "again"}).Refused("no token", 400, "invalid_request")
	s.Completed()
	s.Say("three")
	log := s.Completed()
	var said []string
	for _, m := range all[event.MessageReceived](log) {
		said = append(said, m.Text)
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, said); diff != "" {
		t.Errorf("messages, want -, got +:\n%s", diff)
	}
}

// idempotencyKeys: the same request again is answered again, another one with its key is refused.
func idempotencyKeys(t *testing.T, target Target) {
	ann := target.Ann(t)
	key := []string{"Idempotency-Key", "start " + t.Name()}
	body := map[string]any{"message": "one"}
	first := ann.post("/v1/session", body, key...)
	again := ann.post("/v1/session", body, key...)
	if again.Raw != first.Raw || again.Header.Get("Idempotency-Replayed") != "true" || first.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("got %s, then %s", first.Raw, again.Raw)
	}
	ann.post("/v1/session", map[string]any{"message": "two"}, key...).Refused("another body", 409, "idempotency_key")
	s := ann.Started(first)
	s.Completed()
	sent := s.send(s.Token, "two", key...)
	resent := s.send(s.Token, "two", key...)
	if sent.Status != http.StatusAccepted || resent.Raw != sent.Raw {
		t.Errorf("a follow-up: got %d %s, then %d %s", sent.Status, sent.Raw, resent.Status, resent.Raw)
	}
	ann.post("/v1/session", body, "Idempotency-Key", strings.Repeat("k", 256)).Refused("a long key", 400, "invalid_request")
}

// manyRequestsWithOneKey: identical requests at the same time start one session.
func manyRequestsWithOneKey(t *testing.T, target Target) {
	ann := target.Ann(t)
	answers := make([]string, 16)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			a, err := ann.try("POST", "/v1/session", `{"message":"add once"}`, "Idempotency-Key", t.Name())
			answers[i] = fmt.Sprintf("%d %s%v", a.Status, a.Raw, err)
		})
	}
	wg.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.HasPrefix(a, "202 ") {
			t.Fatalf("got %s and %s", answers[0], a)
		}
	}
	s := ann.Started(ann.Do("POST", "/v1/session", `{"message":"add once"}`, "Idempotency-Key", t.Name()))
	log := s.Completed()
	if n := len(all[event.TurnStarted](log)); n != 1 || len(Results(log)) != 1 {
		t.Errorf("%d turns started, %d calls were made; want 1 and 1", n, len(Results(log)))
	}
}

// dryRun: reads run, writes are answered.
func dryRun(t *testing.T, target Target) {
	ann := target.Ann(t)
	log := ann.Start("note it", map[string]any{"dryRun": true}).Completed()
	ran := ann.Notes()
	for _, r := range Results(log) {
		if write := r.ToolName == "note"; r.Stubbed != write || r.IsError || ran[r.CallID] != 0 {
			t.Errorf("%s: stubbed %t, error %t, ran %d times", r.ToolName, r.Stubbed, r.IsError, ran[r.CallID])
		}
	}
}

// lists: sessions at rest are listed page by page, the newest first, each
// once. (One whose turn ends between two pages moves to the front.)
func lists(t *testing.T, target Target) {
	ann := target.Ann(t)
	mine := map[string]bool{}
	for i := range 5 {
		s := ann.Start("hello", map[string]any{"title": fmt.Sprintf("%s %d", t.Name(), i)})
		s.Completed()
		mine[s.ID] = true
	}
	seen, cursor := map[string]bool{}, ""
	for range 1000 {
		a := ann.Do("GET", "/v1/sessions?limit=2"+cursor, "")
		page, _ := a.Field("sessions").([]any)
		for _, entry := range page {
			fields, _ := entry.(map[string]any)
			id, _ := fields["sessionId"].(string)
			if mine[id] && (seen[id] || !strings.HasPrefix(fmt.Sprint(fields["title"]), t.Name())) {
				t.Errorf("listed: %v", fields)
			}
			seen[id] = true
		}
		next := a.Text("nextCursor")
		if next == "" || len(page) == 0 {
			break
		}
		cursor = "&cursor=" + next
	}
	for id := range mine {
		if !seen[id] {
			t.Errorf("session %s is not listed", id)
		}
	}
}

// cost: usage adds up turn by turn; without a price there is no cost.
func cost(t *testing.T, target Target) {
	s := target.Ann(t).Start("add it")
	s.Completed()
	s.Usable()
	a := s.Do("GET", s.Path("/cost"), "")
	turns, _ := a.Field("turns").([]any)
	usage, _ := a.Field("usage").(map[string]any)
	if in, _ := usage["inputTokens"].(float64); a.Status != 200 || len(turns) != 2 || in <= 0 || a.Field("cost") != nil {
		t.Errorf("got %d %s", a.Status, a.Raw)
	}
}
