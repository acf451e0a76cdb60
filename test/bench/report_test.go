package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	machine := calibration{Flush: 0.2, CPU: 2}
	slow := calibration{Flush: 0.6, CPU: 4}
	for _, c := range []struct {
		rule, name string
		old, now   figure
		want       string
		bad        bool
	}{
		{"without a committed figure the budget decides", "onestep", figure{}, figure{1.9, machine}, "ok", false},
		{"over budget", "onestep", figure{1.9, machine}, figure{2.1, machine}, "over budget", true},
		{"under budget, where more is better", "clients", figure{}, figure{999, machine}, "over budget", true},
		{"a little worse", "start", figure{10, machine}, figure{14, machine}, "ok", false},
		{"worse", "start", figure{10, machine}, figure{16, machine}, "worse than committed", false},
		{"much worse", "start", figure{10, machine}, figure{21, machine}, "much worse than committed", true},
		{"worse on a slower machine is as good", "start", figure{10, machine}, figure{21, slow}, "ok", false},
		{"as bad on a faster machine is worse", "start", figure{16, slow}, figure{16, machine}, "worse than committed", false},
		{"flushes count as flushes", "onestep", figure{0.8, machine}, figure{1.99, slow}, "ok", false},
		{"a rate falls with the speed", "clients", figure{4000, machine}, figure{2000, slow}, "ok", false},
		{"a rate that falls alone", "clients", figure{4000, machine}, figure{1900, machine}, "much worse than committed", true},
		{"bytes do not depend on the speed", "disk", figure{1, machine}, figure{2.5, slow}, "much worse than committed", true},
		{"a figure without a budget", "memory MiB", figure{30, machine}, figure{31, machine}, "ok", false},
	} {
		base := baseline{Figures: map[string]figure{}}
		if c.old.Value > 0 {
			base.Figures[c.name] = c.old
		}
		r := compare(map[string]figure{c.name: c.now}, base)
		if len(r) != 1 || r[0].Verdict != c.want || (r.verdict() != nil) != c.bad {
			t.Errorf("%s: got %+v, want %q", c.rule, r, c.want)
		}
	}
}

func TestTheTableIsWrittenBetweenItsMarks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "BENCHMARKS.md")
	const mark = "<!-- figures, written by go run ./test/bench -update -->\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := baseline{Machine: "here", Figures: map[string]figure{"replay": {Value: 1234567}}}
	write("head\n" + mark + "old\n<!-- end of figures -->\ntail\n")
	if err := b.document(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"head\n" + mark, "≥ 200000 events/s | 1,234,567 events/s | `go run ./test/bench -run long` |\n", "<!-- end of figures -->\ntail\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "old") {
		t.Error("the old table is still there")
	}
	write("no marks")
	if err := b.document(path); err == nil {
		t.Error("a file without marks was accepted")
	}
}
