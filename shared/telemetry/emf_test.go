package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/telemetry"
)

func at() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 6_700_000, time.UTC) }

const atMillis = 1893553445006

// logged returns the line that a record leaves.
func logged(t *testing.T, h slog.Handler, out *bytes.Buffer, when time.Time, message string, attrs ...slog.Attr) string {
	t.Helper()
	out.Reset()
	rec := slog.NewRecord(when, slog.LevelInfo, message, 0)
	rec.AddAttrs(attrs...)
	if err := h.Handle(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	line := out.String()
	if err := checkLine(line); err != nil {
		t.Errorf("%v:\n%s", err, line)
	}
	return line
}

func newEMF() (slog.Handler, *bytes.Buffer) {
	out := new(bytes.Buffer)
	return telemetry.EMF(slog.NewJSONHandler(out, nil)).WithAttrs([]slog.Attr{slog.String("slug", "demo")}), out
}

func request(status int, route string, took time.Duration) []slog.Attr {
	return []slog.Attr{
		slog.String("method", "GET"), slog.String("route", route), slog.String("request_id", "r1"), slog.String("slug", "demo"),
		slog.Int("status", status), slog.Duration("duration", took),
	}
}

func TestRecordsThatAreMeasured(t *testing.T) {
	t.Parallel()
	const begin = `{"time":"2030-01-02T03:04:05.0067Z","level":"INFO","msg":`
	declared := func(metrics string) string {
		return fmt.Sprintf(`"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":"bdk","Dimensions":[["slug"]],"Metrics":[%s]}]}}`, atMillis, metrics)
	}
	const (
		countRequests = `{"Name":"Requests","Unit":"Count"},{"Name":"Errors5xx","Unit":"Count"}`
		countTurns    = `{"Name":"Turns","Unit":"Count"},{"Name":"TurnsFailed","Unit":"Count"}`
	)
	for _, tc := range []struct {
		name    string
		message string
		attrs   []slog.Attr
		want    string
	}{
		{
			"a request", "request", request(202, "/v1/session", 12_345_678*time.Nanosecond),
			begin + `"request","slug":"demo","method":"GET","route":"/v1/session","request_id":"r1","status":202,"duration":12345678,` +
				`"Requests":1,"Errors5xx":0,"Latency":12.345678,` + declared(countRequests+`,{"Name":"Latency","Unit":"Milliseconds"}`),
		},
		{
			"a request that failed", "request", request(500, "/v1/session", 0),
			begin + `"request","slug":"demo","method":"GET","route":"/v1/session","request_id":"r1","status":500,"duration":0,` +
				`"Requests":1,"Errors5xx":1,"Latency":0,` + declared(countRequests+`,{"Name":"Latency","Unit":"Milliseconds"}`),
		},
		{
			"a stream", "request", request(200, "/v1/session/{id}/stream", 14*time.Minute),
			begin + `"request","slug":"demo","method":"GET","route":"/v1/session/{id}/stream","request_id":"r1","status":200,"duration":840000000000,` +
				`"Requests":1,"Errors5xx":0,` + declared(countRequests),
		},
		{
			"a turn", "turn ended",
			[]slog.Attr{
				slog.Bool("failed", false), slog.Int("model_calls", 2), slog.Int64("input_tokens", 100), slog.Int64("output_tokens", 7),
				slog.Duration("took", 1500*time.Millisecond),
			},
			begin + `"turn ended","slug":"demo","failed":false,"model_calls":2,"input_tokens":100,"output_tokens":7,"took":1500000000,` +
				`"Turns":1,"TurnsFailed":0,"ModelCalls":2,"InputTokens":100,"OutputTokens":7,"TurnTime":1500,` +
				declared(countTurns+`,{"Name":"ModelCalls","Unit":"Count"},{"Name":"InputTokens","Unit":"Count"},{"Name":"OutputTokens","Unit":"Count"},{"Name":"TurnTime","Unit":"Milliseconds"}`),
		},
		{
			"a turn that was given up", "turn ended",
			[]slog.Attr{slog.Bool("failed", true)},
			begin + `"turn ended","slug":"demo","failed":true,"Turns":1,"TurnsFailed":1,` + declared(countTurns),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h, out := newEMF()
			if diff := cmp.Diff(tc.want+"\n", logged(t, h, out, at(), tc.message, tc.attrs...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordsThatAreLeftAlone(t *testing.T) {
	t.Parallel()
	h, out := newEMF()
	bare := telemetry.EMF(slog.NewJSONHandler(out, nil))
	req := request(200, "/v1/info", time.Second)
	for _, tc := range []struct {
		name    string
		handler slog.Handler
		when    time.Time
		message string
		attrs   []slog.Attr
	}{
		{"another message", h, at(), "request failed", req},
		{"a request without a status", h, at(), "request", req[:4]},
		{"a status that is no number", h, at(), "request", append(req[:4:4], slog.String("status", "200"), slog.Duration("duration", 1))},
		{"a duration that is none", h, at(), "request", append(req[:5:5], slog.Int("duration", 1))},
		{"a turn of unknown end", h, at(), "turn ended", []slog.Attr{slog.Int("model_calls", 1)}},
		{"a record of a tool", h.WithAttrs([]slog.Attr{slog.String("call_id", "c1")}), at(), "request", req},
		{"a record in a group", h.WithGroup("g"), at(), "request", req},
		{"a record without a time", h, time.Time{}, "request", req},
		{"a record without a slug", bare, at(), "turn ended", []slog.Attr{slog.Bool("failed", true)}},
		{"a slug that is no text", bare, at(), "turn ended", []slog.Attr{slog.Int("slug", 1), slog.Bool("failed", true)}},
		{"a bound slug that is no text", bare.WithAttrs([]slog.Attr{slog.Int("slug", 1)}), at(), "turn ended", []slog.Attr{slog.Bool("failed", true)}},
	} {
		line := logged(t, tc.handler, out, tc.when, tc.message, tc.attrs...)
		if strings.Contains(line, "_aws") || !strings.Contains(line, tc.message) {
			t.Errorf("%s: got %s", tc.name, line)
		}
	}
}

func TestOneSlugIsTheDimension(t *testing.T) {
	t.Parallel()
	h, out := newEMF()
	bare := telemetry.EMF(slog.NewJSONHandler(out, nil))
	failed := slog.Bool("failed", true)
	for name, tc := range map[string]struct {
		handler slog.Handler
		attrs   []slog.Attr
		want    string
	}{
		"bound":             {h, []slog.Attr{failed}, "demo"},
		"in the record":     {bare, []slog.Attr{slog.String("slug", "other"), failed}, "other"},
		"in both":           {h, []slog.Attr{slog.String("slug", "other"), failed}, "demo"},
		"bound twice":       {h.WithAttrs([]slog.Attr{slog.String("slug", "other")}), []slog.Attr{failed}, "demo"},
		"bound with others": {bare.WithAttrs([]slog.Attr{slog.String("a", "b"), slog.String("slug", "third")}), []slog.Attr{failed}, "third"},
	} {
		line := logged(t, tc.handler, out, at(), "turn ended", tc.attrs...)
		if !strings.Contains(line, fmt.Sprintf(`"slug":%q`, tc.want)) || strings.Count(line, `"slug":`) != 1 || !strings.Contains(line, "_aws") {
			t.Errorf("%s: got %s", name, line)
		}
	}
}

func TestEMFShowsNoSecrets(t *testing.T) {
	t.Parallel()
	h, out := newEMF()
	for _, h := range []slog.Handler{h, h.WithGroup("g"), h.WithAttrs([]slog.Attr{slog.String("call_id", "c")}), h.WithAttrs([]slog.Attr{slog.String("api_key", "hunter2")})} {
		line := logged(t, h, out, at(), "x", slog.String("token", "hunter2"), slog.Group("header", slog.String("Cookie", "hunter2")))
		if strings.Contains(line, "hunter2") || strings.Count(line, "[redacted]") < 2 {
			t.Errorf("got %s", line)
		}
	}
}

// TestRequestsOfTheAPIAreMeasured shows that the API still logs what EMF looks for.
func TestRequestsOfTheAPIAreMeasured(t *testing.T) {
	t.Parallel()
	h, out := newEMF()
	api := httpapi.New(nil, httpapi.Options{Log: slog.New(h)})
	api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/nothing", nil))
	line := out.String()
	if err := checkLine(line); err != nil || !strings.Contains(line, `"Requests":1,"Errors5xx":0,"Latency":`) || !strings.Contains(line, `"request_id":`) {
		t.Errorf("error %v, got %s", err, line)
	}
	long := 0
	for _, r := range httpapi.Routes() {
		if strings.HasSuffix(r.Pattern, "/stream") {
			long++
		}
	}
	if long != 1 {
		t.Errorf("%d routes end in /stream; want the one that follows a session", long)
	}
}

func TestEMFHandlerContract(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return telemetry.EMF(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T) map[string]any {
		t.Helper()
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	})
}

// checkLine checks a log entry against the rules of the embedded metric format, if it has metrics, and for keys that are there twice.
func checkLine(line string) error {
	members, err := membersOf(line)
	if err != nil || members["_aws"] == nil {
		return err
	}
	var meta struct {
		Timestamp         *int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
	dec := json.NewDecoder(bytes.NewReader(members["_aws"]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&meta); err != nil {
		return err
	}
	var logTime time.Time
	if err := json.Unmarshal(members["time"], &logTime); err != nil || meta.Timestamp == nil || *meta.Timestamp != logTime.UnixMilli() {
		return errors.New("the timestamp is not that of the entry in milliseconds")
	}
	if len(meta.CloudWatchMetrics) != 1 {
		return errors.New("want one directive")
	}
	d := meta.CloudWatchMetrics[0]
	if d.Namespace == "" || len(d.Namespace) > 255 || strings.HasPrefix(d.Namespace, "AWS/") || len(d.Metrics) == 0 || len(d.Metrics) > 100 {
		return errors.New("namespace or number of metrics out of bounds")
	}
	if diff := cmp.Diff([][]string{{"slug"}}, d.Dimensions); diff != "" {
		return fmt.Errorf("dimensions: %s", diff)
	}
	var slug string
	if json.Unmarshal(members["slug"], &slug) != nil || slug == "" || len(slug) > 255 {
		return fmt.Errorf("dimension slug is %s", members["slug"])
	}
	names := make(map[string]bool)
	for _, m := range d.Metrics {
		var value float64
		if names[m.Name] || m.Name == "" || len(m.Name) > 255 || json.Unmarshal(members[m.Name], &value) != nil || value < 0 {
			return fmt.Errorf("metric %q: twice, or its value is %s", m.Name, members[m.Name])
		}
		if !slices.Contains([]string{"Count", "Milliseconds"}, m.Unit) {
			return fmt.Errorf("metric %q: unit %q", m.Name, m.Unit)
		}
		names[m.Name] = true
	}
	return nil
}

// membersOf returns the members of the one JSON object in line.
func membersOf(line string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(strings.NewReader(line))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("the entry is no object: %w", err)
	}
	members := make(map[string]json.RawMessage)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		if members[fmt.Sprint(key)] != nil {
			return nil, fmt.Errorf("key %v is there twice", key)
		}
		members[fmt.Sprint(key)] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one object")
	}
	return members, nil
}

func BenchmarkEMF(b *testing.B) {
	log := slog.New(telemetry.EMF(slog.NewJSONHandler(io.Discard, nil))).With(slog.String("slug", "demo"))
	attrs := request(200, "/v1/session", time.Second)
	b.ReportAllocs()
	for b.Loop() {
		log.LogAttrs(b.Context(), slog.LevelInfo, "request", attrs...)
	}
}
