package crash_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
)

// TestKillAtEveryWriteOfAGatedTurn: whether the host dies before a decision, between it and the call, in the call or before its
// result is recorded, no call runs that was not approved, none twice, and none is lost.
func TestKillAtEveryWriteOfAGatedTurn(t *testing.T) {
	t.Parallel()
	killAtEveryWrite(t, 12, killGatedAt)
}

func killGatedAt(t *testing.T, at string) (died bool, unknown int) {
	t.Helper()
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "script.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	h := boot(t, state, at)
	acc, ok := h.post(t.Context(), "/v1/session", map[string]any{"message": "sign it"})
	if !ok {
		<-h.dead
		return true, 0 // TestKillAtEveryWrite checks what becomes of the message
	}
	id, turnID := acc["sessionId"].(string), acc["turnId"].(string)
	log, died := h.approveAll(t, id, turnID)
	h.kill()
	if died {
		heir := boot(t, state, "never:0")
		defer heir.kill()
		if log, died = heir.approveAll(t, id, turnID); died {
			t.Fatalf("killed %s: the heir died, too", at)
		}
		died = true
	}
	unknown = check(t, at, log, turnID, filepath.Join(state, "agents", "crash", "notes"), 3)
	approved := map[string]bool{}
	for _, e := range log {
		if d, err := event.Decode[event.ApprovalResolved](e); err == nil {
			if approved[d.CallID] {
				t.Errorf("killed %s: %s was decided twice", at, d.CallID)
			}
			approved[d.CallID] = d.Decision == event.Approve
		}
		if d, err := event.Decode[event.ActionResult](e); err == nil && d.ToolName == "sign" && !approved[d.CallID] {
			t.Errorf("killed %s: %s has a result before its approval", at, d.CallID)
		}
	}
	return died, unknown
}

// approveAll approves what waits until the turn has ended, and returns the log, or died if the host did before.
func (h *host) approveAll(t *testing.T, id, turnID string) (log []event.Event, died bool) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(2 * time.Millisecond) {
		for _, call := range h.waiting(t, id) {
			h.post(t.Context(), "/v1/session/"+id+"/approvals/"+call, map[string]any{"decision": "approve"})
		}
		select {
		case <-h.dead:
			return nil, true
		default:
		}
		log, ok := h.tryEvents(t, id)
		if !ok {
			continue
		}
		for _, e := range log {
			if e.TurnID == turnID && (e.Type == event.TypeTurnCompleted || e.Type == event.TypeTurnFailed) {
				select { // writes may follow the end of the turn
				case <-h.dead:
					return nil, true
				case <-time.After(50 * time.Millisecond):
					return log, false
				}
			}
		}
	}
	t.Fatalf("turn %s has not ended", turnID)
	return nil, false
}

func (h *host) waiting(t *testing.T, id string) (calls []string) {
	t.Helper()
	var answer struct {
		Approvals []struct {
			CallID string `json:"callId"`
		} `json:"approvals"`
	}
	h.get(t, "/v1/session/"+id+"/approvals", &answer)
	for _, a := range answer.Approvals {
		calls = append(calls, a.CallID)
	}
	return calls
}

func (h *host) tryEvents(t *testing.T, id string) ([]event.Event, bool) {
	t.Helper()
	var answer struct{ Events []event.Event }
	ok := h.get(t, "/v1/session/"+id+"/events?format=json", &answer)
	return answer.Events, ok
}

// get reads a JSON answer; it reports false if the host died over it.
func (h *host) get(t *testing.T, path string, answer any) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(answer) == nil
}
