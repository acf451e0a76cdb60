package tools

import (
	"slices"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

const repository = "https://example.com/acme/checkout/pull/"

func TestInspectPR(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]inspection{
		"42": {Complexity: "ordinary", Ready: true},
		"43": {Complexity: "ordinary", Blockers: []string{"it is a draft"}},
		"44": {Complexity: "ordinary", Blockers: []string{"check unit: failed"}},
		"45": {Complexity: "trivial", Ready: true},
		"46": {Complexity: "large", Ready: true},
	} {
		got, err := inspectPR(t.Context(), &bdk.Call{}, inspectPRInput{PRURL: repository + number})
		if err != nil {
			t.Errorf("%s: %v", number, err)
			continue
		}
		if got.URL != repository+number || got.Title == "" || len(got.Files) == 0 {
			t.Errorf("%s: the record is incomplete: %+v", number, got.PR)
		}
		if got.Complexity != want.Complexity || got.Ready != want.Ready || !slices.Equal(got.Blockers, want.Blockers) {
			t.Errorf("%s: got %s, ready %t, %q; want %s, ready %t, %q", number,
				got.Complexity, got.Ready, got.Blockers, want.Complexity, want.Ready, want.Blockers)
		}
	}
}

func TestInspectPRNamesThePullRequestsThereAre(t *testing.T) {
	t.Parallel()
	_, err := inspectPR(t.Context(), &bdk.Call{}, inspectPRInput{PRURL: repository + "1"})
	if err == nil || !strings.Contains(err.Error(), repository+"42") {
		t.Errorf("got %v, want an error that names the known pull requests", err)
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	for name, tool := range map[string]bdk.Tool{"inspect_pr": InspectPR, "approve_pr": ApprovePR} {
		if err := tool.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := tool.CheckInput([]byte(`{}`)); err == nil || !strings.Contains(err.Error(), "prUrl") {
			t.Errorf("%s: an input without prUrl gives %v, want an error that names the field", name, err)
		}
	}
}
