package gateway

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
)

// Lazy returns the handler that open makes when the first request comes. What it needs may be out of reach: then the request
// is answered with the error, and the next one tries again.
func Lazy(open func(context.Context) (http.Handler, error), log *slog.Logger) http.Handler {
	var mu sync.Mutex
	var opened http.Handler // nil before it was
	get := func(ctx context.Context) (http.Handler, error) {
		mu.Lock()
		defer mu.Unlock()
		if opened != nil {
			return opened, nil
		}
		h, err := open(ctx)
		if err == nil {
			opened = h
		}
		return h, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := get(r.Context())
		if err != nil {
			log.ErrorContext(r.Context(), "the API cannot be opened", slog.Any("error", err))
			res := refusal(err, nil)
			maps.Copy(w.Header(), res.MultiValueHeaders)
			w.WriteHeader(res.StatusCode)
			_, _ = w.Write([]byte(res.Body)) // it is kept, or the reader is gone
			return
		}
		h.ServeHTTP(w, r)
	})
}
