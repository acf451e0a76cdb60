package engine_test

import (
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

type verdict struct {
	Approve bool   `json:"approve"`
	Why     string `json:"why"`
}

// The last text of a turn has to match the agent's schema. The model has one try to mend it; then the turn fails, as does a task.
func TestResult(t *testing.T) {
	t.Parallel()
	say := func(text string) []model.Delta { return []model.Delta{{Text: text}, finish(model.FinishStop)} }
	good, bad := say(" {\"approve\": true, \"why\": \"fine\"}\n"), say("It looks fine.")
	for name, tc := range map[string]struct {
		answers  [][]model.Delta
		rejected int
		end      event.Type
		asked    int
	}{
		"good":            {[][]model.Delta{good}, 0, event.TypeTurnCompleted, 1},
		"mended":          {[][]model.Delta{bad, good}, 1, event.TypeTurnCompleted, 2},
		"wrong twice":     {[][]model.Delta{bad, say(`{"approve":"yes","why":""}`), good}, 1, event.TypeTurnFailed, 2},
		"after a call":    {[][]model.Delta{{{Text: "I look."}, call(0, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}, good}, 0, event.TypeTurnCompleted, 2},
		"a call to mend":  {[][]model.Delta{bad, {call(0, "add", `{"a":1,"b":1}`), finish(model.FinishToolCalls)}, good}, 1, event.TypeTurnCompleted, 3},
		"something extra": {[][]model.Delta{say(`{"approve":true,"why":"a"} and more`), good}, 1, event.TypeTurnCompleted, 2},
	} {
		for _, mode := range []session.Mode{session.Chat, session.Task} {
			s, c := newStorage(), &counted{}
			f := &fake{answers: tc.answers}
			e := newEngine(t, config{storage: s, models: f.named(), prompt: "Judge.", agent: bdk.Agent{Result: bdk.ResultOf[verdict]()}, tools: []bdk.NamedTool{c.tool("add", bdk.Read)}})
			acc, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "go", Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			step(t, e, turn.Ref{SessionID: acc.SessionID, TurnID: acc.TurnID})
			log := events(t, s.sessions, acc.SessionID)
			if got := log[len(log)-2]; got.Type != tc.end || len(f.requests) != tc.asked {
				t.Errorf("%s: the turn ended with %s %s after %d requests; want %s after %d", name, got.Type, got.Data, len(f.requests), tc.end, tc.asked)
			}
			if got := find[event.ResultRejected](t, log); len(got) != tc.rejected || tc.rejected > 0 && !strings.Contains(got[0].Reason, "corrected JSON object") {
				t.Errorf("%s: rejected %+v", name, got)
			}
			if got := find[event.SessionFailed](t, log); (len(got) == 1) != (mode == session.Task && tc.end == event.TypeTurnFailed) {
				t.Errorf("%s, %s: session.failed = %+v", name, mode, got)
			}
			if got := f.requests[0].Instructions; !strings.HasPrefix(got, "Judge.") || !strings.Contains(got, `"approve"`) {
				t.Errorf("%s: the model is told %q", name, got)
			}
			checkPairs(t, f.requests)
		}
	}
}
