package templates_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/templates/pr-approver/bot/tools"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
)

func TestDemoAnswersUsefully(t *testing.T) {
	t.Parallel()
	const pull = "https://example.com/acme/checkout/pull/"
	inspect, both := []string{"inspect_pr"}, []string{"inspect_pr", "approve_pr"}
	for message, test := range map[string]struct {
		calls []string
		says  string // at the end of the answer
	}{
		"Review pull request 42":                {inspect, "Verdict: ready to approve, because the change is small, tested and its checks passed."},
		"Review " + pull + "42":                 {inspect, "Verdict: ready to approve, because the change is small, tested and its checks passed."},
		"Approve " + pull + "42":                {both, "Verdict: approve, because the change is small, tested and its checks passed."},
		"approve pull request 42, please":       {both, "Verdict: approve, because the change is small, tested and its checks passed."},
		"Approve " + pull + "43":                {inspect, "Verdict: not approved, because it is a draft."},
		"Approve " + pull + "44":                {inspect, "Verdict: not approved, because the unit check failed."},
		"Approve " + pull + "45":                {both, "Verdict: approve, because it changes documentation only."},
		"What about #45?":                       {inspect, "Verdict: ready to approve, because it changes documentation only."},
		"Approve " + pull + "46":                {inspect, "Verdict: not approved yet, because the migration needs a second pair of eyes."},
		"Hello":                                 {nil, `say "Review pull request 42" or "Approve ` + pull + `42".`},
		"Is 2 the answer?\nI thought it was 42": {inspect, "Verdict: ready to approve, because the change is small, tested and its checks passed."},
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			calls, says, pieces := converse(t, message, &bdk.Call{ID: "call_1", Services: bdk.Services{StateRoot: t.TempDir()}})
			if diff := cmp.Diff(test.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if !strings.HasSuffix(says, test.says) {
				t.Errorf("it says %q, want %q at the end", says, test.says)
			}
			if pieces < 2 {
				t.Errorf("the answer is not streamed: %d pieces", pieces)
			}
		})
	}
}

func TestDemoDoesNotClaimWhatFailed(t *testing.T) {
	t.Parallel()
	call := &bdk.Call{ID: "call_1", Services: bdk.Services{StateRoot: filepath.Join(t.TempDir(), "missing")}}
	for _, number := range []string{"42", "45"} {
		calls, says, _ := converse(t, "Approve pull request "+number, call)
		const want = "Verdict: not approved, because the approval was not given or could not be recorded."
		if !slices.Contains(calls, "approve_pr") || !strings.HasSuffix(says, want) {
			t.Errorf("%s: it calls %q and says %q, want %q at the end", number, calls, says, want)
		}
	}
}

// converse plays one turn of the agent and returns the tools that were called, the last answer and how many pieces it
// came in.
func converse(t *testing.T, message string, call *bdk.Call) (called []string, text string, pieces int) {
	t.Helper()
	script, err := scripted.Load("pr-approver/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := scripted.New(script, clock.Fixed{})
	messages := []model.Message{{Role: model.User, Text: message}}
	for step := 1; step < 5; step++ {
		var calls []model.Call
		text, pieces = "", 0
		for delta, err := range m.Stream(t.Context(), &model.Request{Messages: messages, SessionID: "ses_1", Step: step}) {
			if err != nil {
				t.Fatal(err)
			}
			if delta.Call != nil {
				calls = append(calls, model.Call{ID: delta.Call.ID, Name: delta.Call.Name, Args: json.RawMessage(delta.Call.Args)})
			}
			if delta.Text != "" {
				pieces++
			}
			text += delta.Text
		}
		if len(calls) == 0 {
			return called, text, pieces
		}
		var results []model.Result
		for _, c := range calls {
			called = append(called, c.Name)
			output, err := run(t, call, c)
			if err != nil {
				output = err.Error()
			}
			results = append(results, model.Result{CallID: c.ID, Name: c.Name, Output: output, IsError: err != nil})
		}
		messages = append(slices.Clip(messages), model.Message{Role: model.Assistant, Calls: calls}, model.Message{Role: model.Results, Results: results})
	}
	t.Fatal("the turn does not end")
	return nil, "", 0
}

func run(t *testing.T, call *bdk.Call, c model.Call) (string, error) {
	t.Helper()
	tool := map[string]bdk.Tool{"inspect_pr": tools.InspectPR, "approve_pr": tools.ApprovePR}[c.Name]
	if err := tool.CheckInput(c.Args); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	result, err := tool.Run(t.Context(), call, c.Args)
	if err != nil {
		return "", err
	}
	output, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(output), nil
}
