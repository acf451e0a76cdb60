package narrate_test

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/narrate"
)

func TestApprover(t *testing.T) {
	t.Parallel()
	asked := event.New("turn_1", event.ApprovalRequested{CallID: "call_1", ToolName: "promote", Args: []byte(`{"build":"7f3"}`)})
	for name, tc := range map[string]struct{ mode, answer, want string }{
		"all approved": {narrate.Approve, "", event.Approve},
		"all denied":   {narrate.Deny, "y\n", event.Deny},
		"yes":          {narrate.Ask, "y\n", event.Approve},
		"YES":          {narrate.Ask, " YES \n", event.Approve},
		"no":           {narrate.Ask, "n\n", event.Deny},
		"nothing":      {narrate.Ask, "\n", event.Deny},
		"nobody there": {narrate.Ask, "", event.Deny},
	} {
		var out strings.Builder
		a := &narrate.Approver{Mode: tc.mode, In: bufio.NewReader(strings.NewReader(tc.answer)), Out: &out}
		id, got, ok, err := a.Decide(asked)
		if id != "call_1" || got != tc.want || !ok || err != nil {
			t.Errorf("%s: %q, %q, %t, %v; want %q", name, id, got, ok, err, tc.want)
		}
		if tc.mode == narrate.Ask && !strings.HasPrefix(out.String(), `? approve promote {"build":"7f3"} [y/N] `) {
			t.Errorf("%s: asked %q", name, out.String())
		}
	}
	for _, mode := range []string{"", narrate.Leave} {
		if _, _, _, err := (&narrate.Approver{Mode: mode}).Decide(asked); !errors.Is(err, narrate.ErrWaits) || !strings.Contains(err.Error(), "call_1") {
			t.Errorf("%q: %v", mode, err)
		}
	}
	if _, _, ok, err := (&narrate.Approver{}).Decide(event.New("turn_1", event.TurnStarted{})); ok || err != nil {
		t.Errorf("another event: %t, %v", ok, err)
	}
}
