// Command bench measures the budgets of BENCHMARKS.md: it serves the sample agent the way a user does, with bin/bdk, talks to it
// over HTTP on loopback, and compares what it finds with the budgets and with the figures in baseline.json. The group lambda packs
// the agent instead and runs its functions as Lambda does.
//
//	go run ./test/bench                 # everything, about two minutes
//	go run ./test/bench -quick          # smaller numbers, about fifteen seconds
//	go run ./test/bench -run 'start|turn'
//
// It exits with 1 if a budget is missed or something became more than twice as slow as the committed figure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run: how big it is, and what it found.
type bench struct {
	bdk, agent string // the command and the agent's folder
	dir        string // everything that is written goes below
	quick      bool
	progress   io.Writer
	figures    map[string]figure

	before       calibration // the newest
	uncalibrated error
}

const (
	baselineFile = "test/bench/baseline.json"
	tableFile    = "BENCHMARKS.md"
	limit        = 15 * time.Minute // of a whole run
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b := &bench{progress: stderr, figures: map[string]figure{}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&b.bdk, "bdk", "bin/bdk", "the command to measure")
	flags.StringVar(&b.agent, "dir", "test/agents/bench", "the agent to serve")
	flags.BoolVar(&b.quick, "quick", false, "measure with smaller numbers")
	only := flags.String("run", "", "measure only the groups that match a regular expression: start, turn, clients, long, parked, lambda")
	asJSON := flags.Bool("json", false, "print the figures as JSON")
	update := flags.Bool("update", false, "commit the figures that were measured: write "+baselineFile+" and the table in "+tableFile)
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("reading -run: %w", err)
	}
	if *update && b.quick {
		return errors.New("-update needs the whole numbers: leave out -quick")
	}
	base, err := readBaseline(baselineFile)
	if err != nil {
		return err
	}
	if err := b.measure(ctx, pattern); err != nil {
		return err
	}
	r := compare(b.figures, base)
	if *update {
		err = base.update(b.figures)
	}
	if *asJSON {
		return errors.Join(err, r.json(stdout), r.verdict())
	}
	return errors.Join(err, r.table(stdout), r.verdict())
}

// measure runs the groups that match, each with a state root and a server of its own.
func (b *bench) measure(ctx context.Context, only *regexp.Regexp) (err error) {
	if b.dir, err = os.MkdirTemp("", "bdk-bench-"); err != nil {
		return fmt.Errorf("making a folder for state: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := os.WriteFile(b.script(), []byte(script), 0o600); err != nil {
		return fmt.Errorf("writing the script of the model: %w", err)
	}
	groups := []struct {
		name   string
		run    func(context.Context, *server) error
		served bool
	}{{"start", b.start, true}, {"turn", b.turns, true}, {"clients", b.clients, true}, {"long", b.long, true}, {"parked", b.parked, true}, {"lambda", b.lambda, false}}
	warm := false
	for _, g := range groups {
		if !only.MatchString(g.name) {
			continue
		}
		if g.served && !warm {
			fmt.Fprintln(b.progress, "building the agent")
			if err := b.warm(ctx); err != nil {
				return err
			}
			warm = true
		}
		fmt.Fprintln(b.progress, "measuring:", g.name)
		b.mark()
		s := &server{bench: b, root: filepath.Join(b.dir, g.name)}
		if err := errors.Join(g.run(ctx, s), s.stop(), b.uncalibrated); err != nil {
			return fmt.Errorf("measuring %s: %w\n%s", g.name, err, s.tail())
		}
	}
	return nil
}

// mark notes how fast the machine is before something is measured.
func (b *bench) mark() {
	var err error
	b.before, err = calibrate(b.dir)
	b.uncalibrated = errors.Join(b.uncalibrated, err)
}

// of returns n, or less of it in a quick run.
func (b *bench) of(n int) int {
	if b.quick {
		return max(n/10, 20)
	}
	return n
}

// record keeps a figure, with the speed of the machine around its measuring.
func (b *bench) record(name string, value float64) {
	before := b.before
	b.mark()
	around := calibration{Flush: digits((before.Flush + b.before.Flush) / 2), CPU: digits((before.CPU + b.before.CPU) / 2)}
	b.figures[name] = figure{Value: digits(value), calibration: around}
	fmt.Fprintf(b.progress, "  %-12s %g\n", name, digits(value))
}

// digits rounds v to four digits.
func digits(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // it was a number
	return v
}
