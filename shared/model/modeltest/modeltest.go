// Package modeltest is the conformance suite of adapters to models. Each adapter runs it against a local server that speaks its
// provider's real wire format:
//
//	func TestConformance(t *testing.T) { modeltest.Run(t, modeltest.Harness{…}) }
//
// The suite says what the provider sends as [model.Delta] values; the harness encodes them.
package modeltest

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/model"
)

// update rewrites the golden files. Packages that run the suite get it as their test flag -update.
var update = flag.Bool("update", false, "rewrite golden files")

// A Harness connects the suite to an adapter.
type Harness struct {
	// New returns the adapter under test, which sends its requests with client to url and uses Secret as its credential.
	// Its clock must stand at [Now].
	New func(t testing.TB, client *http.Client, url string) model.Model
	// Secret must not show in any error.
	Secret string
	// Model is the id of the model that New makes, provider:name, which signs reasoning; "" when the protocol has no signed reasoning.
	Model string
	// ContentType is that of a stream.
	ContentType string
	// Encode writes the answer that the deltas describe as the provider would, in frames: what is needed before the first
	// delta, then at least one frame for each, up to whatever ends an answer if the last one has a Finish. A
	// Finish that has no word in the protocol is written as it is.
	Encode func(deltas []model.Delta) [][]byte
	// Refusals are the answers the provider gives instead of a stream, with message as its words. There must be one for each
	// kind of model error.
	Refusals func(message string) []Refusal
	// Breaks are the errors inside a stream.
	Breaks func(message string) []Break
	// Golden is the path of the file with the JSON that must be sent for the suite's conversation.
	Golden string
}

// A Refusal is an HTTP answer that is no stream.
type Refusal struct {
	Name   string
	Status int
	Header http.Header
	Body   string
	Want   model.Kind
}

// A Break is an error frame inside a stream.
type Break struct {
	Name  string
	Frame []byte
	Want  model.Kind
}

// Now is the time at which the clock of adapters under test stands.
func Now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	cases := map[string]func(t *testing.T, h *Harness){
		"answers":               testAnswers,
		"split at every byte":   testSplits,
		"cut connections":       testCuts,
		"refusals":              testRefusals,
		"retry-after":           testRetryAfter,
		"breaks in the stream":  testBreaks,
		"nobody listens":        testNobodyListens,
		"context ends":          testContextEnds,
		"consumer breaks off":   testConsumerBreaksOff,
		"request":               testRequest,
		"lazy":                  testLazy,
		"concurrent":            testConcurrent,
		"history is sent again": testReplay,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, &h)
		})
	}
}

// A provider is the local server. What it answers is set before the request comes.
type provider struct {
	*httptest.Server
	header http.Header
	status int
	frames [][]byte
	hang   bool // keep the connection open after the frames
	cut    bool // close it without the proper end

	gone chan struct{} // receives when the client closed a hanging connection

	mu     sync.Mutex
	bodies [][]byte
}

// serve starts a provider, which ends with the test. Change its fields before the first request.
func (h *Harness) serve(t testing.TB) *provider {
	t.Helper()
	p := &provider{
		header: http.Header{"Content-Type": {h.ContentType}}, status: http.StatusOK, gone: make(chan struct{}, 1),
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// answer makes the provider send deltas.
func (h *Harness) answer(t testing.TB, deltas ...model.Delta) *provider {
	t.Helper()
	p := h.serve(t)
	p.frames = h.Encode(deltas)
	return p
}

// ServeHTTP sends the answer.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.record(r)
	maps.Copy(w.Header(), p.header)
	w.WriteHeader(p.status)
	flush(w)
	for _, f := range p.frames {
		if _, err := w.Write(f); err != nil {
			return
		}
		flush(w)
	}
	if p.hang {
		<-r.Context().Done()
		p.gone <- struct{}{}
	}
	if p.cut {
		panic(http.ErrAbortHandler)
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// model returns the adapter under test, talking to p.
func (h *Harness) model(t testing.TB, p *provider) model.Model {
	t.Helper()
	return h.New(t, p.Client(), p.URL)
}

// collect asks the model one simple thing and adds the answer up.
func (h *Harness) collect(t testing.TB, m model.Model) (model.Answer, error) {
	t.Helper()
	return model.Collect(h.Model, m.Stream(t.Context(), hello()))
}

func hello() *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}, MaxTokens: 100, Step: 1}
}

// want adds up what the deltas say.
func (h *Harness) want(deltas []model.Delta) model.Answer {
	a := model.NewAccumulator(h.Model)
	for _, d := range deltas {
		a.Add(d)
	}
	return a.Answer()
}

func text(s string) model.Delta { return model.Delta{Text: s} }

func end(reason model.FinishReason) model.Delta { return model.Delta{Finish: reason} }

func call(index int, id, name string) model.Delta {
	return model.Delta{Call: &model.CallDelta{Index: index, ID: id, Name: name}}
}

func args(index int, piece string) model.Delta {
	return model.Delta{Call: &model.CallDelta{Index: index, Args: piece}}
}

func callID(n int) string { return fmt.Sprintf("call_%d", n) }
