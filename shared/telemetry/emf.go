package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// Namespace is the CloudWatch namespace of the metrics that [EMF] declares. Their one dimension is [SlugKey], the agent.
const Namespace = "bdk"

// The metrics of [EMF]. A request that follows a session's stream has no latency. Turns that their users have interrupted or
// stopped are not counted. The metrics behind TurnsFailed are of turns that ended by themselves, not of those that were given up.
const (
	Requests     = "Requests"     // count
	Errors5xx    = "Errors5xx"    // count: 0 or 1 for each request
	Latency      = "Latency"      // milliseconds
	Turns        = "Turns"        // count
	TurnsFailed  = "TurnsFailed"  // count: 0 or 1 for each turn
	ModelCalls   = "ModelCalls"   // count, by turn
	InputTokens  = "InputTokens"  // count, by turn
	OutputTokens = "OutputTokens" // count, by turn
	TurnTime     = "TurnTime"     // milliseconds, from the start of the turn to its end
)

// EMF returns a handler that passes records on to next, a JSON handler whose output becomes log entries of CloudWatch, and
// adds to those of requests and of ended turns what makes CloudWatch take metrics from them (its embedded metric format).
// Values of attributes whose key names a secret are replaced, as by [Ring]. A record has one attribute slug, the one
// that was bound first.
//
// Records in a group, of unknown time or without a slug get no metrics, and neither do those that tools log, whatever they say.
func EMF(next slog.Handler) slog.Handler { return &emf{next: next, metrics: true} }

type emf struct {
	next    slog.Handler
	slug    string // bound; "" for none
	metrics bool
}

// Enabled implements [slog.Handler].
func (h *emf) Enabled(ctx context.Context, level slog.Level) bool { return h.next.Enabled(ctx, level) }

// WithGroup implements [slog.Handler].
func (h *emf) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &emf{next: h.next.WithGroup(name)}
}

// WithAttrs implements [slog.Handler].
func (h *emf) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	clean := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		switch {
		case a.Key == SlugKey && c.slug != "":
			continue
		case a.Key == SlugKey && c.metrics:
			c.slug = text(a.Value)
		case a.Key == "call_id": // the log of a tool
			c.metrics = false
		}
		clean = append(clean, withoutSecret(a))
	}
	c.next = h.next.WithAttrs(clean)
	return &c
}

// Handle implements [slog.Handler].
func (h *emf) Handle(ctx context.Context, rec slog.Record) error {
	slug, values := h.slug, make(map[string]slog.Value, rec.NumAttrs())
	out := slog.NewRecord(rec.Time, rec.Level, rec.Message, rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		if a.Key == SlugKey {
			if h.slug != "" {
				return true
			}
			slug = text(a.Value)
		}
		values[a.Key] = a.Value
		out.AddAttrs(withoutSecret(a))
		return true
	})
	if h.metrics && slug != "" && !rec.Time.IsZero() {
		out.AddAttrs(embed(rec.Time, measure(rec.Message, values))...)
	}
	return h.next.Handle(ctx, out)
}

// text returns a value that is a string, "" for others: they cannot be dimensions.
func text(v slog.Value) string {
	if v.Kind() != slog.KindString {
		return ""
	}
	return v.String()
}

// metric is a value with the unit that CloudWatch knows it by.
type metric struct {
	slog.Attr

	unit string
}

func count(name string, n int64) metric { return metric{slog.Int64(name, n), "Count"} }

func countIf(name string, is bool) metric {
	if is {
		return count(name, 1)
	}
	return count(name, 0)
}

func milliseconds(name string, d time.Duration) metric {
	return metric{slog.Float64(name, float64(d)/float64(time.Millisecond)), "Milliseconds"}
}

// measure returns the metrics of a record with the message and attributes that packages httpapi and engine give theirs, none
// of any other.
func measure(message string, values map[string]slog.Value) []metric {
	switch message {
	case "request":
		return measureRequest(values)
	case "turn ended":
		return measureTurn(values)
	}
	return nil
}

func measureRequest(values map[string]slog.Value) []metric {
	status, took := values["status"], values["duration"]
	if status.Kind() != slog.KindInt64 || took.Kind() != slog.KindDuration {
		return nil
	}
	metrics := []metric{count(Requests, 1), countIf(Errors5xx, status.Int64() >= 500)}
	if strings.HasSuffix(text(values["route"]), "/stream") {
		return metrics
	}
	return append(metrics, milliseconds(Latency, took.Duration()))
}

func measureTurn(values map[string]slog.Value) []metric {
	failed := values["failed"]
	if failed.Kind() != slog.KindBool {
		return nil
	}
	metrics := []metric{count(Turns, 1), countIf(TurnsFailed, failed.Bool())}
	for _, m := range [][2]string{{"model_calls", ModelCalls}, {"input_tokens", InputTokens}, {"output_tokens", OutputTokens}} {
		if v := values[m[0]]; v.Kind() == slog.KindInt64 {
			metrics = append(metrics, count(m[1], v.Int64()))
		}
	}
	if took := values["took"]; took.Kind() == slog.KindDuration {
		metrics = append(metrics, milliseconds(TurnTime, took.Duration()))
	}
	return metrics
}

// The embedded metric format's own object.
type (
	emfMetadata struct {
		Timestamp         int64 // milliseconds of the epoch
		CloudWatchMetrics []emfDirective
	}
	emfDirective struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []emfMetric
	}
	emfMetric struct{ Name, Unit string }
)

// embed returns the attributes that declare metrics and hold their values.
func embed(at time.Time, metrics []metric) []slog.Attr {
	if len(metrics) == 0 {
		return nil
	}
	directive := emfDirective{Namespace: Namespace, Dimensions: [][]string{{SlugKey}}}
	attrs := make([]slog.Attr, 0, len(metrics)+1)
	for _, m := range metrics {
		directive.Metrics = append(directive.Metrics, emfMetric{m.Key, m.unit})
		attrs = append(attrs, m.Attr)
	}
	return append(attrs, slog.Attr{Key: "_aws", Value: slog.AnyValue(emfMetadata{at.UnixMilli(), []emfDirective{directive}})}) //nolint:sloglint // the format's name
}
