package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/bdkpack/scaffold"
	"github.com/bdk-lambda/bdk/shared/clock"
)

func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	type step struct {
		maingen.Progress

		takes time.Duration
	}
	compile := func(done int, takes time.Duration) step {
		return step{maingen.Progress{Phase: maingen.Compiling, Done: done}, takes}
	}
	cases := []struct {
		name     string
		terminal bool
		steps    []step
		want     string
	}{
		{"not when the build is quick", false, []step{{maingen.Progress{Phase: maingen.Checking}, 400 * time.Millisecond}, {maingen.Progress{Phase: maingen.Linking}, 3 * time.Second}}, ""},
		{
			"now and then when it is not", false,
			[]step{{maingen.Progress{Phase: maingen.Checking}, time.Second}, compile(1, time.Second), compile(2, time.Second), compile(3, time.Second), {maingen.Progress{Phase: maingen.Linking}, time.Second}},
			"compiling (1 package so far, 1s)\ncompiling (3 packages so far, 3s)\nlinking (4s)\n",
		},
		{
			"again when a step takes long", false,
			[]step{compile(1, time.Second), compile(2, 12*time.Second)},
			"compiling (2 packages so far, 1s)\ncompiling (2 packages so far, 10s)\n",
		},
		{
			"with the module that is downloaded", false,
			[]step{{maingen.Progress{Phase: maingen.Checking}, time.Second}, {maingen.Progress{Phase: maingen.Downloading, Module: "m v1", Done: 1}, time.Second}},
			"downloading (1 module so far, 1s) m v1\n",
		},
		{
			"in one line of a terminal", true,
			[]step{compile(1, time.Second), compile(2, time.Second)},
			"\r\x1b[Kcompiling (2 packages so far, 1s)\r\x1b[K",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				show, end := cli.StartProgress(&cli.IO{Err: &out, Terminal: tc.terminal, Clock: clock.System{}})
				for _, s := range tc.steps {
					show(s.Progress)
					time.Sleep(s.takes)
				}
				end()
				if diff := cmp.Diff(tc.want, out.String()); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What a program is built from is found by discovery; serve relies on it to see every change.
func TestEveryChangeOfAnAgentChangesItsFingerprint(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "agent")
	if _, err := scaffold.Write(dir, scaffold.Options{Template: "pr-approver", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	ws, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "GOWORK=off")})
	if err != nil || diags.HasErrors() {
		t.Fatal(err, diags)
	}
	fingerprint := func() string {
		f, err := ws.Inputs.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := fingerprint()
	at := func(name string) string { return filepath.Join(dir, name) }
	edit := func(name string) error {
		text, err := os.ReadFile(at(name))
		return errors.Join(err, os.WriteFile(at(name), append(text, '\n'), 0o600))
	}
	add := func(name string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), nil, 0o600))
	}
	cases := []struct {
		name   string
		file   string
		change func(file string) error
		want   bool // another fingerprint
	}{
		{"a Go file is edited", "bot/agent.go", edit, true},
		{"a tool is edited", "bot/tools/inspect_pr.go", edit, true},
		{"a tool is added", "bot/tools/new.go", add, true},
		{"a tool is removed", "bot/tools/approve_pr.go", func(name string) error { return os.Remove(at(name)) }, true},
		{"a package of the agent's own is edited", "bot/lib/prs/prs.go", edit, true},
		{"an embedded file is edited", "bot/lib/prs/prs.json", edit, true},
		{"instructions are edited", "bot/instructions.md", edit, true},
		{"instructions are removed", "bot/instructions.md", func(name string) error { return os.Remove(at(name)) }, true},
		{"instructions of another form are added", "bot/instructions.go", add, true},
		{"a folder of instructions is added", "bot/instructions/a.md", add, true},
		{"go.mod is edited", "go.mod", edit, true},
		{"go.sum is edited", "go.sum", edit, true},
		{"a workspace file is added", "go.work", add, true},
		{"a test is added", "bot/tools/new_test.go", add, false},
		{"a file is touched", "bot/agent.go", func(name string) error { return os.Chtimes(at(name), time.Time{}, time.Unix(1, 0)) }, false},
		{"state is written", ".bdk/state/db", add, false},
	}
	for _, tc := range cases { // one after the other, each undone
		text, missing := os.ReadFile(at(tc.file))
		if err := tc.change(tc.file); err != nil {
			t.Fatal(err)
		}
		if got := fingerprint() != before; got != tc.want {
			t.Errorf("%s: fingerprint changed: %v, want %v", tc.name, got, tc.want)
		}
		err := os.RemoveAll(at(tc.file))
		if missing == nil {
			err = os.WriteFile(at(tc.file), text, 0o600)
		} else if filepath.Dir(tc.file) == "bot/instructions" {
			err = os.RemoveAll(at("bot/instructions"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if tc.want && fingerprint() != before {
			t.Fatalf("%s: undoing it does not bring the fingerprint back", tc.name)
		}
	}
}
