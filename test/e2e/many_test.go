package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/launch"
	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

// TestManyClients: clients at the same time, turn after turn, none of which fails.
func TestManyClients(t *testing.T) {
	t.Parallel()
	const clients, turns = 8, 50
	target := inProcess(t, script, launch.Config{})
	for i := range clients {
		t.Run(fmt.Sprintf("client %d", i), func(t *testing.T) {
			t.Parallel()
			s := target.Ann(t).Start("add it")
			s.Completed()
			for range turns - 1 {
				s.Say("add more")
				s.Completed()
			}
		})
	}
}

// TestBurst: ten thousand events as fast as a turn can make them come without a gap, and from wherever a reader goes on.
func TestBurst(t *testing.T) {
	t.Parallel()
	const calls = 1000
	steps := 10
	if testing.Short() {
		steps = 1
	}
	file := filepath.Join(t.TempDir(), "model.yaml")
	text := fmt.Sprintf("rules:\n  - when: {step: %d}\n    text: done\n  - calls: [", steps+1) + strings.Repeat("{tool: add, args: {a: 1, b: 1}}, ", calls) + "]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := inProcess(t, file, launch.Config{}).Ann(t).Start("go")
	log := s.Completed() // read live
	if n := len(suite.Results(log)); n != steps*calls {
		t.Errorf("%d results; want %d", n, steps*calls)
	}
	lines := slices.Collect(strings.Lines(s.Do("GET", s.Path("/events"), "").Raw))
	if len(lines) != len(log) {
		t.Errorf("the dump has %d events, the stream had %d", len(lines), len(log))
	}
	for from := 0; from < len(lines); from += 997 {
		if s.Do("GET", s.Path(fmt.Sprintf("/events?startIndex=%d", from)), "").Raw != strings.Join(lines[from:], "") {
			t.Errorf("from %d: not the rest", from)
		}
	}
}
