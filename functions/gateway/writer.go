package gateway

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// writer is the ResponseWriter of both modes: what net/http does with status, headers and body, over something that takes an
// answer in two parts. As any ResponseWriter it is used by one goroutine at a time.
type writer struct {
	header http.Header // what the handler sees
	status int         // 0 until it is fixed
	fixed  http.Header // the headers when it was
	head   bool        // nobody wants the body

	begun bool
	start func(status int, header http.Header) // takes the first part; called once
	body  io.Writer                            // takes the second part
}

var _ http.Flusher = (*writer)(nil)

func newWriter(method string, body io.Writer, start func(int, http.Header)) *writer {
	return &writer{header: make(http.Header), head: method == http.MethodHead, start: start, body: body}
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter]. Informational answers and all calls but the first are ignored; a status that is none is 500.
func (w *writer) WriteHeader(status int) {
	if w.status != 0 || status >= 100 && status < 200 {
		return
	}
	if status < 100 || status > 999 {
		status = http.StatusInternalServerError
	}
	w.status, w.fixed = status, passedOn(w.header)
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if !w.begun && len(p) > 0 && w.fixed.Get("Content-Type") == "" && w.fixed.Get("Content-Encoding") == "" {
		w.fixed.Set("Content-Type", http.DetectContentType(p))
	}
	w.begin()
	if w.head {
		return len(p), nil
	}
	return w.body.Write(p)
}

// Flush implements [http.Flusher]: what was written has left already, but status and headers may not have.
func (w *writer) Flush() { w.begin() }

// begin lets status and headers leave, unless they have.
func (w *writer) begin() {
	w.WriteHeader(http.StatusOK)
	if !w.begun {
		w.begun = true
		w.start(w.status, w.fixed)
	}
}

// passedOn returns a copy of headers without those that API Gateway makes by itself, and without trailers.
func passedOn(h http.Header) http.Header {
	c := h.Clone()
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Trailer", "Upgrade", "Content-Length"} {
		delete(c, name)
	}
	maps.DeleteFunc(c, func(name string, _ []string) bool { return strings.HasPrefix(name, http.TrailerPrefix) })
	for _, name := range h.Values("Trailer") {
		for one := range strings.SplitSeq(name, ",") {
			c.Del(strings.TrimSpace(one))
		}
	}
	for name, values := range c {
		c[name] = slices.DeleteFunc(values, func(v string) bool { return strings.ContainsAny(v, "\r\n\x00") })
	}
	return c
}
