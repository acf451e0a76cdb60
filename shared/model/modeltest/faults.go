package modeltest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/model"
)

// fault checks that err is a model error of the kind wanted which shows no secret, and returns it.
func (h *Harness) fault(t testing.TB, err error, want model.Kind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a *model.Error of kind %s", err, want)
	}
	if e.Kind != want {
		t.Errorf("got kind %s (%v), want %s", e.Kind, err, want)
	}
	if e.Message == "" {
		t.Error("the error has no message")
	}
	if h.Secret == "" {
		t.Fatal("the harness has no secret")
	}
	for chain := err; chain != nil; chain = errors.Unwrap(chain) {
		if s := fmt.Sprintf("%v %+v", chain, chain); strings.Contains(s, h.Secret) {
			t.Errorf("the error shows the credential: %s", s)
		}
	}
	return e
}

// testCuts ends the stream in front of each delta, and inside each frame.
func testCuts(t *testing.T, h *Harness) {
	deltas := h.conversations()["text and calls"]
	for n := range deltas {
		for _, abrupt := range []bool{false, true} {
			p := h.answer(t, deltas[:n]...)
			p.cut = abrupt
			got, err := h.collect(t, h.model(t, p))
			_ = h.fault(t, err, model.Unavailable)
			if n > 0 && got.Message.Text != "Let me see." {
				t.Errorf("cut before delta %d: got text %q", n, got.Message.Text)
			}
		}
	}
	all := h.Encode(deltas[:len(deltas)-1])
	for n := range all {
		p := h.serve(t)
		p.frames = append(all[:n:n], all[n][:len(all[n])/2])
		_, err := h.collect(t, h.model(t, p))
		_ = h.fault(t, err, model.Unavailable)
	}
}

func testRefusals(t *testing.T, h *Harness) {
	refusals := h.Refusals("the reason is " + h.Secret + ".")
	seen := map[model.Kind]bool{}
	for _, r := range refusals {
		seen[r.Want] = true
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			p := h.refuse(t, r)
			_, err := h.collect(t, h.model(t, p))
			e := h.fault(t, err, r.Want)
			if e.RetryAfter != 0 {
				t.Errorf("got RetryAfter %v, nobody asked for one", e.RetryAfter)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests were sent: the engine retries, adapters must not", n)
			}
		})
	}
	for _, k := range []model.Kind{
		model.Throttled, model.Overloaded, model.Unavailable, model.Invalid, model.ContextLength, model.Denied,
	} {
		if !seen[k] {
			t.Errorf("the harness has no refusal of kind %s", k)
		}
	}
}

func (h *Harness) refuse(t testing.TB, r Refusal) *provider {
	t.Helper()
	p := h.serve(t)
	p.status = r.Status
	p.header = http.Header{"Content-Type": {"application/json"}}
	for key, values := range r.Header {
		p.header[http.CanonicalHeaderKey(key)] = values
	}
	p.frames = [][]byte{[]byte(r.Body)}
	return p
}

func testRetryAfter(t *testing.T, h *Harness) {
	date := Now().Add(90 * time.Second).Format(http.TimeFormat)
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, date: 90 * time.Second} {
		for _, r := range h.Refusals("slow down") {
			p := h.refuse(t, r)
			p.header.Set("Retry-After", value)
			_, err := h.collect(t, h.model(t, p))
			e := h.fault(t, err, r.Want)
			if wait := e.RetryAfter; e.Retryable() && wait != want || !e.Retryable() && wait != 0 {
				t.Errorf("%s with Retry-After %s: got %v", r.Name, value, wait)
			}
		}
	}
}

func testBreaks(t *testing.T, h *Harness) {
	breaks := h.Breaks("the reason is " + h.Secret + ".")
	if len(breaks) == 0 {
		t.Fatal("the harness has no break")
	}
	for _, b := range breaks {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			p := h.answer(t, text("half"))
			p.frames = append(p.frames, b.Frame)
			got, err := h.collect(t, h.model(t, p))
			_ = h.fault(t, err, b.Want)
			if got.Message.Text != "half" {
				t.Errorf("got text %q before the error, want half", got.Message.Text)
			}
		})
	}
}

// testNobodyListens asks a port that is closed.
func testNobodyListens(t *testing.T, h *Harness) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = h.collect(t, h.New(t, &http.Client{Transport: &http.Transport{}}, url))
	_ = h.fault(t, err, model.Unavailable)
}

// testContextEnds ends the context while the provider is silent: before its headers, and in the middle of an answer.
func testContextEnds(t *testing.T, h *Harness) {
	t.Run("before the request", func(t *testing.T) {
		t.Parallel()
		p := h.answer(t, end(model.FinishStop))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := model.Collect(h.Model, h.model(t, p).Stream(ctx, hello()))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if n := len(p.requests()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
	t.Run("in the answer", func(t *testing.T) {
		t.Parallel()
		p := h.answer(t, text("half"))
		p.hang = true
		cause := errors.New("stopped by its user")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var last error
		for d, err := range h.model(t, p).Stream(ctx, hello()) {
			if last != nil {
				t.Errorf("%+v, %v after the error", d, err)
			}
			if last = err; d.Text != "" {
				cancel(cause)
			}
		}
		p.waitGone(t)
		if !errors.Is(last, cause) {
			t.Errorf("got %v, want the cause of the cancellation", last)
		}
	})
	t.Run("at a deadline", func(t *testing.T) {
		t.Parallel()
		p := h.answer(t, text("half"))
		p.hang = true
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := model.Collect(h.Model, h.model(t, p).Stream(ctx, hello()))
		p.waitGone(t)
		if !errors.Is(err, context.DeadlineExceeded) || model.KindOf(err) != "" {
			t.Errorf("got %v, want context.DeadlineExceeded and no model error", err)
		}
	})
}

// waitGone waits for the client to close the connection, which it must do within a second.
func (p *provider) waitGone(t testing.TB) {
	t.Helper()
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-p.gone:
		return
	case <-late.C:
	}
	t.Error("the connection to the provider is open a second later")
	p.CloseClientConnections()
}

func testConsumerBreaksOff(t *testing.T, h *Harness) {
	p := h.answer(t, text("half"))
	p.hang = true
	for d, err := range h.model(t, p).Stream(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Text != "" {
			break
		}
	}
	p.waitGone(t)

	deltas := h.conversations()["text and calls"]
	deltas = append(deltas, model.Delta{Usage: &model.Usage{InputTokens: 1}})
	for most := 1; most <= len(deltas); most++ {
		n := 0
		for range h.model(t, h.answer(t, deltas...)).Stream(t.Context(), hello()) {
			if n++; n == most {
				break
			}
		}
		if n > most {
			t.Errorf("%d deltas came, the consumer broke off after %d", n, most)
		}
	}
}

func testLazy(t *testing.T, h *Harness) {
	p := h.answer(t, text("x"), end(model.FinishStop))
	stream := h.model(t, p).Stream(t.Context(), hello())
	if n := len(p.requests()); n != 0 {
		t.Fatalf("%d requests were sent before the range", n)
	}
	if _, err := model.Collect(h.Model, stream); err != nil {
		t.Fatal(err)
	}
	if n := len(p.requests()); n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
}
