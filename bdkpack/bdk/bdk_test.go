package bdk_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
)

func TestZeroAgentHasTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	want := bdk.Agent{
		MaxOutputTokens: 8192,
		ContextTokens:   200_000,
		Limits:          bdk.Limits{StepsPerTurn: 50, TurnTime: time.Hour, RunningTurns: 64, ParallelTools: 8, ToolOutput: 65_536},
	}
	if diff := cmp.Diff(want, bdk.Agent{}.WithDefaults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefaultsReplaceNothingThatWasSet(t *testing.T) {
	t.Parallel()
	full := bdk.Agent{
		Name: "n", Description: "d", Model: "m", Fallbacks: []string{"f"}, Instructions: "i", MaxOutputTokens: 1, ContextTokens: 2,
		Limits: bdk.Limits{
			StepsPerTurn: 3, TurnTime: 4, RunningTurns: 5, ParallelTools: 6, ToolOutput: 7, TokensPerSession: 8, USDPerSession: 9,
		},
	}
	if diff := cmp.Diff(full, full.WithDefaults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryEventTypeCanBeNamed(t *testing.T) {
	t.Parallel()
	got := []bdk.EventType{
		bdk.EventSessionStarted, bdk.EventMessageReceived, bdk.EventTurnStarted, bdk.EventReasoningAppended, bdk.EventReasoningCompleted,
		bdk.EventMessageAppended, bdk.EventMessageCompleted, bdk.EventActionsRequested, bdk.EventApprovalRequested, bdk.EventApprovalResolved,
		bdk.EventActionResult, bdk.EventSkillLoaded, bdk.EventSubagentCalled, bdk.EventSubagentCompleted, bdk.EventArtifactTagged,
		bdk.EventStepRestarted, bdk.EventContextCompacted, bdk.EventResultRejected, bdk.EventTurnCompleted, bdk.EventTurnFailed, bdk.EventSessionWaiting,
		bdk.EventSessionCompleted, bdk.EventSessionFailed,
	}
	if diff := cmp.Diff(event.Types(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	data := []bdk.EventData{
		bdk.SessionStarted{},
		bdk.MessageReceived{},
		bdk.TurnStarted{},
		bdk.ReasoningAppended{},
		bdk.ReasoningCompleted{},
		bdk.MessageAppended{},
		bdk.MessageCompleted{},
		bdk.ActionsRequested{},
		bdk.ApprovalRequested{},
		bdk.ApprovalResolved{},
		bdk.ActionResult{},
		bdk.SkillLoaded{},
		bdk.SubagentCalled{},
		bdk.SubagentCompleted{},
		bdk.ArtifactTagged{},
		bdk.StepRestarted{},
		bdk.ContextCompacted{},
		bdk.ResultRejected{},
		bdk.TurnCompleted{},
		bdk.TurnFailed{},
		bdk.SessionWaiting{},
		bdk.SessionCompleted{},
		bdk.SessionFailed{},
	}
	for i, d := range data {
		if d.Type() != got[i] {
			t.Errorf("%T is the data of %s, not of %s", d, d.Type(), got[i])
		}
	}
}

func TestDecodingAnEventAsAnotherTypeFails(t *testing.T) {
	t.Parallel()
	if _, err := bdk.DecodeEvent[bdk.TurnFailed](bdk.Event{Type: bdk.EventTurnCompleted, Data: []byte(`{}`)}); err == nil {
		t.Error("got nil, want an error")
	}
}

func TestTimeStandsStillInAFrozenSession(t *testing.T) {
	t.Parallel()
	frozen := time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)
	if got := (&bdk.Call{Session: bdk.SessionInfo{AsOf: frozen}}).Now(); !got.Equal(frozen) {
		t.Errorf("got %v, want %v", got, frozen)
	}
	before := time.Now()
	if got := (&bdk.Call{}).Now(); got.Before(before) || got.After(time.Now()) {
		t.Errorf("got %v, want the current time", got)
	}
}
