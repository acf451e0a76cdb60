//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
	"github.com/bdk-lambda/bdk/bdkpack/cli/stack/stacktest"
)

func TestDestroyTellsWhatStaysAndRemovesTheStack(t *testing.T) {
	t.Parallel()
	retained := `{"Resources":{"eventsId":{"DeletionPolicy":"Retain"}}}`
	for name, c := range map[string]struct {
		stack    string // that there is
		template string
		yes      bool
		answer   string // on the terminal
		removed  bool
		fault    string
		says     []string // besides
	}{
		"confirmed": {"bdk-agent", retained, false, "y\n", true, "", []string{
			"removing the stack bdk-agent in 123456789012/eu-west-1", "What stays", "AWS::DynamoDB::Table     events\n", "Go on? [y/N] ", "removing, 1 resources are left\n",
		}},
		"without a question": {"bdk-agent", retained, true, "", true, "", []string{"events\n"}},
		"declined":           {"bdk-agent", retained, false, "n\n", false, "nothing was removed", []string{"events\n"}},
		"no answer":          {"bdk-agent", retained, false, "", false, "nothing was removed", nil},
		"nothing stays":      {"bdk-agent", "{}", true, "", true, "", []string{"Nothing of it stays: the sessions are removed too.\n"}},
		"no stack":           {"bdk-other", retained, true, "", false, "there is no stack bdk-agent in 123456789012/eu-west-1", nil},
		"no template":        {"bdk-agent", "Resources:", true, "", false, "reading the template", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "agent") // there is no agent in it, it may be broken
			if err := os.Mkdir(dir, 0o750); err != nil {
				t.Fatal(err)
			}
			a := &stacktest.Account{
				Stack: c.stack, Template: c.template, States: []string{"DELETE_IN_PROGRESS", "DELETE_COMPLETE"},
				Resources: []stacktest.Resource{{Type: "AWS::DynamoDB::Table", Name: "events", Status: "CREATE_COMPLETE"}},
			}
			var out, said bytes.Buffer
			io := &cli.IO{In: strings.NewReader(c.answer), Out: &out, Err: &said, Asks: !c.yes, Clock: new(stacktest.Clock)}
			err := cli.Destroy(t.Context(), io, cli.Deployment{Dir: dir, Yes: c.yes, AWS: a.Serve(t)})
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("got %v, want %q", err, c.fault)
			}
			if slices.Contains(a.Actions(), "DeleteStack") != c.removed || (out.String() == "agent is no longer deployed in 123456789012/eu-west-1.\n") != c.removed {
				t.Errorf("asked for %v, output %q", a.Actions(), out.String())
			}
			lacks(t, said.String(), c.says...)
			if c.yes && strings.Contains(said.String(), "Go on?") {
				t.Error("it asked")
			}
		})
	}
}
