package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/bdk-lambda/bdk/bdkpack/pack"
)

// measure is a row of BENCHMARKS.md.
type measure struct {
	name    string
	what    string
	group   string
	unit    string
	budget  float64 // 0: none
	more    bool    // more is better
	scale   scale   // how the figure of another machine is made comparable
	flushes float64 // of scale time: how often one operation waits for the disk
}

type scale int

const (
	plain scale = iota // bytes and ratios do not depend on the machine's speed
	ms                 // a time: so many flushes, the rest is work of the CPU
	rate               // work of the CPU per time
)

func measures() []measure {
	return []measure{
		{name: "start", group: "start", what: "process start to first healthy answer, p50", unit: "ms", budget: 50, scale: ms},
		{name: "idle", group: "start", what: "idle memory, 3 s after the start", unit: "MiB", budget: 40},
		{name: "onestep", group: "turn", what: "one-step turn, request to `turn.completed`, p50", unit: "ms", budget: 2, scale: ms, flushes: 2},
		{name: "tool", group: "turn", what: "turn with one tool call, p50", unit: "ms", budget: 4, scale: ms, flushes: 4},
		{name: "clients", group: "clients", what: "16 clients × 1,000 turns, none failed", unit: "turns/s", budget: 1000, more: true, scale: rate},
		{name: "memory", group: "clients", what: "memory after 10,000 turns against 1,000", unit: "×", budget: 1.2},
		{name: "memory MiB", group: "clients", what: "memory after 10,000 turns", unit: "MiB"},
		{name: "disk", group: "clients", what: "disk per one-step turn", unit: "kB", budget: 6},
		{name: "list", group: "clients", what: "page of 100,000 sessions: last tenth against first, p50", unit: "×", budget: 1.25},
		{name: "list ms", group: "clients", what: "page of 100 of 100,000 sessions, p50", unit: "ms", scale: ms},
		{name: "followup", group: "long", what: "follow-up in a session of 10,000 events against a fresh one, p50", unit: "×", budget: 1.5},
		{name: "replay", group: "long", what: "full replay of a session of 10,000 events", unit: "events/s", budget: 200_000, more: true, scale: rate},
		{name: "turn 10,000", group: "long", what: "turn 10,000 of a session against turn 1: last 100 against first 100, p50", unit: "×", budget: 1.5},
		{name: "fresh", group: "long", what: "the same: last 100 against turns of fresh sessions, p50", unit: "×", budget: 1.5},
		{name: "parked", group: "parked", what: "one-step turn beside 300 sessions that wait for approval against none, p50", unit: "×", budget: 1.2},
		{name: "bootstrap", group: "lambda", what: "program of the functions, arm64", unit: "MB", budget: pack.BudgetBootstrap / 1e6},
		{name: "archive", group: "lambda", what: "archive of the functions, arm64", unit: "MB", budget: pack.BudgetArchive / 1e6},
		{name: "poll sessions", group: "lambda", what: "start of a `sessions` process to its first poll for an event, p50", unit: "ms", budget: 25, scale: ms},
		{name: "poll step", group: "lambda", what: "start of a `step` process to its first poll for an event, p50", unit: "ms", budget: 25, scale: ms},
		{name: "peak", group: "lambda", what: "peak memory of either by then", unit: "MiB"},
		{name: "first", group: "lambda", what: "first request of a `discovery` process, reading the secret on loopback included, p50", unit: "ms", scale: ms},
	}
}

// figure is what was measured, and how fast the machine was then.
type figure struct {
	Value float64 `json:"value"`
	calibration
}

// expect returns what f would be on a machine of another speed.
func (m measure) expect(f figure, now calibration) float64 {
	switch m.scale {
	case ms:
		waits := min(m.flushes*f.Flush, f.Value/2)
		return waits/f.Flush*now.Flush + (f.Value-waits)/f.CPU*now.CPU
	case rate:
		return f.Value * f.CPU / now.CPU
	case plain:
	}
	return f.Value
}

func (m measure) text(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 1000:
		s := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s + " " + m.unit
	}
	return strconv.FormatFloat(v, 'f', 2, 64) + " " + m.unit
}

func (m measure) budgetText() string {
	sign := "≤ "
	switch {
	case m.budget == 0:
		return ""
	case m.more:
		sign = "≥ "
	}
	return sign + strconv.FormatFloat(m.budget, 'f', -1, 64) + " " + m.unit
}

// result is one line of a report.
type result struct {
	measure

	Now       float64 `json:"now"`
	Committed float64 `json:"committed,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"` // to what the committed figure would be on this machine now; above 1 is worse
	Verdict   string  `json:"verdict"`
	bad       bool
}

type report []result

// compare judges figures by their budgets and by the committed figures.
func compare(figures map[string]figure, base baseline) report {
	const slower, muchSlower = 1.5, 2
	var r report
	for _, m := range measures() {
		f, ok := figures[m.name]
		if !ok {
			continue
		}
		res := result{measure: m, Now: f.Value, Verdict: "ok"}
		if old, ok := base.Figures[m.name]; ok {
			res.Committed, res.Ratio = old.Value, f.Value/m.expect(old, f.calibration)
			if m.more {
				res.Ratio = 1 / res.Ratio
			}
		}
		switch {
		case m.budget > 0 && (m.more && f.Value < m.budget || !m.more && f.Value > m.budget):
			res.Verdict, res.bad = "over budget", true
		case res.Ratio > muchSlower:
			res.Verdict, res.bad = "much worse than committed", true
		case res.Ratio > slower:
			res.Verdict = "worse than committed"
		}
		r = append(r, res)
	}
	return r
}

func (r report) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tbudget\tnow\tcommitted\tratio\tverdict")
	for _, l := range r {
		ratio := ""
		if l.Ratio > 0 {
			ratio = strconv.FormatFloat(l.Ratio, 'f', 2, 64)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", strings.ReplaceAll(l.what, "`", ""), l.budgetText(), l.text(l.Now), l.text(l.Committed), ratio, l.Verdict)
	}
	fmt.Fprintln(w, "\nThe ratio compares with what the committed figure would be at the speed this machine has now; above 1 is worse.")
	return w.Flush()
}

func (r report) json(out io.Writer) error {
	byName := make(map[string]result, len(r))
	for _, l := range r {
		byName[l.name] = l
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(byName)
}

// verdict returns an error that names what is not as it should be.
func (r report) verdict() error {
	var bad []string
	for _, l := range r {
		if l.bad {
			bad = append(bad, l.name+" is "+l.Verdict)
		}
	}
	if bad == nil {
		return nil
	}
	return errors.New(strings.Join(bad, ", "))
}

// baseline holds the committed figures.
type baseline struct {
	Machine string            `json:"machine"`
	Figures map[string]figure `json:"figures"`
}

func readBaseline(path string) (baseline, error) {
	b := baseline{Figures: map[string]figure{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		return b, fmt.Errorf("reading the committed figures: %w", err)
	}
	return b, nil
}

// update commits figures; those that were not measured stay.
func (b baseline) update(figures map[string]figure) error {
	b.Machine = fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	maps.Copy(b.Figures, figures)
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(baselineFile, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return b.document(tableFile)
}

// document rewrites the table between the marks of a file.
func (b baseline) document(path string) error {
	const begin, end = "<!-- figures, written by go run ./test/bench -update -->\n", "<!-- end of figures -->"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no marks around its table: %q and %q", path, begin, end)
	}
	var out bytes.Buffer
	out.Write(head)
	out.WriteString(begin + "\n| what | budget | measured | command |\n|---|---|---|---|\n")
	for _, m := range measures() {
		fmt.Fprintf(&out, "| %s | %s | %s | `go run ./test/bench -run %s` |\n", m.what, cmp.Or(m.budgetText(), " "), m.text(b.Figures[m.name].Value), m.group)
	}
	fmt.Fprintf(&out, "\nMeasured on %s.\n\n%s", b.Machine, end)
	out.Write(tail)
	return os.WriteFile(path, out.Bytes(), 0o644)
}
