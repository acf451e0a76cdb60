package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/telemetry"
)

func messages(records []telemetry.Record) (got []string) {
	for _, r := range records {
		got = append(got, fmt.Sprintf("%d %s", r.N, r.Message))
	}
	return got
}

func TestAfterReturnsWhatCameSince(t *testing.T) {
	t.Parallel()
	ring := telemetry.NewRing(3, nil)
	log := slog.New(ring)
	for _, m := range []string{"a", "b", "c", "d", "e"} {
		log.Info(m)
	}
	for _, tc := range []struct {
		after int64
		want  []string
	}{
		{0, []string{"3 c", "4 d", "5 e"}},
		{1, []string{"3 c", "4 d", "5 e"}},
		{2, []string{"3 c", "4 d", "5 e"}},
		{3, []string{"4 d", "5 e"}},
		{5, nil},
		{-7, []string{"3 c", "4 d", "5 e"}},
		{6, []string{"3 c", "4 d", "5 e"}}, // the process was restarted meanwhile
	} {
		records, next, _ := ring.After(t.Context(), tc.after)
		if diff := cmp.Diff(tc.want, messages(records)); diff != "" || next != 5 {
			t.Errorf("after %d, next %d (-want +got):\n%s", tc.after, next, diff)
		}
	}
}

func TestAnEmptyRingBeginsAtZero(t *testing.T) {
	t.Parallel()
	if records, next, _ := telemetry.NewRing(0, nil).After(t.Context(), 9); len(records) != 0 || next != 0 {
		t.Errorf("got %v, %d; want nothing and 0", records, next)
	}
}

func TestBytesAreBounded(t *testing.T) {
	t.Parallel()
	ring := telemetry.NewRing(64, nil)
	log := slog.New(ring)
	for i := range 50 {
		log.Info(strings.Repeat("x", 10_000), slog.String("big", strings.Repeat("é", 10_000)), slog.Any("list", make([]int, 10_000)), slog.Int("i", i))
	}
	records, next, _ := ring.After(t.Context(), 0)
	total := 0
	for _, r := range records {
		total += len(r.Message)
		for _, v := range r.Attrs {
			total += len(v)
			if !json.Valid(v) {
				t.Fatalf("a cut attribute is not JSON: %.60s", v)
			}
		}
	}
	if len(records) == 0 || total > 64<<10 || next != 50 {
		t.Errorf("%d records of %d bytes, next %d; want at least one, at most 64 KiB, next 50", len(records), total, next)
	}
	log.Info("small")
	if records, _, _ = ring.After(t.Context(), next); len(records) != 1 {
		t.Errorf("a small record after big ones: got %v", messages(records))
	}
}

func TestAttributesKeepTheirGroupsAndTypes(t *testing.T) {
	t.Parallel()
	ring := telemetry.NewRing(8, nil)
	changing := map[string]int{"a": 1}
	log := slog.New(ring).With(slog.String("slug", "demo")).WithGroup("http").With(slog.String("method", "GET"))
	log.Warn("x", slog.Int("status", 200), slog.Group("peer", slog.Bool("local", true)), slog.Any("err", errors.New("boom")),
		slog.Duration("took", 1500*time.Millisecond), slog.Any("map", changing), slog.Any("odd", func() {}), slog.Any("nil", nil))
	changing["a"] = 2
	records, _, _ := ring.After(t.Context(), 0)
	got := map[string]string{}
	for k, v := range records[0].Attrs {
		got[k] = string(v)
	}
	if !strings.HasPrefix(got["http.odd"], `"0x`) {
		t.Errorf("a value that JSON cannot express: got %s", got["http.odd"])
	}
	delete(got, "http.odd")
	want := map[string]string{
		"slug": `"demo"`, "http.method": `"GET"`, "http.status": "200", "http.peer.local": "true", "http.err": `"boom"`, "http.took": `"1.5s"`,
		"http.map": `{"a":1}`, "http.nil": "null",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if records[0].Slug() != "demo" || records[0].Level != slog.LevelWarn || records[0].Time.IsZero() {
		t.Errorf("got %+v", records[0])
	}
	if slug := (telemetry.Record{}).Slug(); slug != "" {
		t.Errorf("a record of the host has slug %q", slug)
	}
}

func TestSecretsAreNeitherRememberedNorPassedOn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ring := telemetry.NewRing(8, slog.NewJSONHandler(&out, nil))
	log := slog.New(ring)
	log.Info("x", slog.String("Authorization", "hunter2"), slog.Int("output_tokens", 7))
	log.Info("x", slog.Group("header", slog.String("Set-Cookie", "hunter2"), slog.String("accept", "any")))
	log.With(slog.String("api_key", "hunter2")).WithGroup("g").Info("x", slog.Any("token", "hunter2"))
	log.Info("x", slog.Any("valuer", valuer{}))
	records, _, _ := ring.After(t.Context(), 0)
	raw, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"ring": string(raw), "next": out.String()} {
		if strings.Contains(text, "hunter2") || strings.Count(text, "[redacted]") != 5 || !strings.Contains(text, "any") || !strings.Contains(text, "7") {
			t.Errorf("%s: %s", where, text)
		}
	}
}

type valuer struct{}

func (valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("password", "hunter2")) }

func TestLevels(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for _, tc := range []struct {
		next slog.Handler
		want []string
	}{
		{nil, []string{"1 info", "2 error"}},
		{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}), []string{"1 info", "2 error"}},
		{slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelDebug}), []string{"1 debug", "2 info", "3 error"}},
	} {
		ring := telemetry.NewRing(8, tc.next)
		log := slog.New(ring)
		log.Debug("debug")
		log.Info("info")
		log.Error("error")
		records, _, _ := ring.After(t.Context(), 0)
		if diff := cmp.Diff(tc.want, messages(records)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if strings.Contains(out.String(), "info") || !strings.Contains(out.String(), "error") {
		t.Errorf("the next handler got %q; want the error only", out.String())
	}
}

func TestManyWriters(t *testing.T) {
	t.Parallel()
	ring := telemetry.NewRing(100, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			log := slog.New(ring).With(slog.String("slug", "a"))
			for i := range 100 {
				log.Info("m", slog.Int("i", i))
				_, _, _ = ring.After(t.Context(), int64(i))
			}
		})
	}
	wg.Wait()
	records, next, _ := ring.After(t.Context(), 0)
	if len(records) != 100 || next != 800 {
		t.Fatalf("got %d records, next %d", len(records), next)
	}
	for i, r := range records {
		if r.N != int64(701+i) {
			t.Fatalf("record %d has number %d", i, r.N)
		}
	}
}

// TestHandlerContract runs the standard library's own checks of a slog handler on what the ring remembers.
func TestHandlerContract(t *testing.T) {
	t.Parallel()
	ring := telemetry.NewRing(1, nil)
	slogtest.Run(t, func(*testing.T) slog.Handler { return ring }, func(*testing.T) map[string]any {
		records, _, _ := ring.After(t.Context(), 0)
		r := records[len(records)-1]
		got := map[string]any{slog.LevelKey: r.Level, slog.MessageKey: r.Message}
		if !r.Time.IsZero() {
			got[slog.TimeKey] = r.Time
		}
		for k, v := range r.Attrs {
			nest(got, strings.Split(k, "."), string(v))
		}
		return got
	})
}

func nest(into map[string]any, path []string, value string) {
	for ; len(path) > 1; path = path[1:] {
		sub, ok := into[path[0]].(map[string]any)
		if !ok {
			sub = map[string]any{}
			into[path[0]] = sub
		}
		into = sub
	}
	into[path[0]] = strings.Trim(value, `"`)
}

func BenchmarkHandle(b *testing.B) {
	log := slog.New(telemetry.NewRing(1000, nil)).With(slog.String("slug", "demo"))
	b.ReportAllocs()
	for b.Loop() {
		log.LogAttrs(context.Background(), slog.LevelInfo, "request", slog.String("method", "GET"), slog.Int("status", 200),
			slog.Duration("took", time.Millisecond))
	}
}
