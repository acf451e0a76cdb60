package modeltest

import (
	"io"
	"net/http"
)

// record keeps the body of a request.
func (p *provider) record(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies = append(p.bodies, body)
}

// requests returns the bodies that came so far.
func (p *provider) requests() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]byte(nil), p.bodies...)
}

// sliced returns a client whose answers are read in two parts, the first of n bytes; with n = 0, byte by byte.
func (p *provider) sliced(n int) *http.Client {
	return &http.Client{Transport: slicer{next: p.Client().Transport, n: n}}
}

type slicer struct {
	next http.RoundTripper
	n    int
}

// RoundTrip slices the body of the answer.
func (s slicer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err == nil {
		resp.Body = &slicedBody{ReadCloser: resp.Body, left: s.n, single: s.n == 0}
	}
	return resp, err
}

type slicedBody struct {
	io.ReadCloser
	left   int // bytes before the cut
	single bool
}

// Read never reads over the cut.
func (b *slicedBody) Read(p []byte) (int, error) {
	switch {
	case b.single && len(p) > 0:
		p = p[:1]
	case b.left > 0 && b.left < len(p):
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left = max(0, b.left-n)
	return n, err
}
