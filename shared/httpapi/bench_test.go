package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
)

// BenchmarkReplay reads a log of 10,000 events over loopback.
func BenchmarkReplay(b *testing.B) {
	const events = 10_000
	agent := newAgent("demo")
	acc, w := agent.begin(b, "ann", session.Chat)
	batch := make([]event.Data, 100)
	for i := range batch {
		batch[i] = event.MessageAppended{Text: "a piece of an answer, as long as most are"}
	}
	for range events / len(batch) {
		add(b, w, batch...)
	}
	s := httptest.NewServer(newClient(b, httpapi.Options{}, agent).h)
	defer s.Close()
	for _, path := range []string{"stream?follow=false", "events", "events?format=json"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), "GET", s.URL+"/demo/v1/session/"+acc.SessionID+"/"+path, http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("X-Caller", "ann")
				res, err := s.Client().Do(r)
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, res.Body)
				if err != nil || n < events*100 {
					b.Fatalf("got %d bytes, error %v", n, err)
				}
				_ = res.Body.Close()
			}
			b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkStart records a session through the API.
func BenchmarkStart(b *testing.B) {
	c := newClient(b, httpapi.Options{}, newAgent("demo"))
	b.ReportAllocs()
	for b.Loop() {
		if a := c.do("POST", "/demo/v1/session", `{"message":"hello"}`); a.status != http.StatusAccepted {
			b.Fatal(a.raw)
		}
	}
}
