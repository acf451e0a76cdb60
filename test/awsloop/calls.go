package awsloop

import (
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// calls passes the requests of functions on to the emulator. It counts them, and refuses what it is told to.
type calls struct {
	mu       sync.Mutex
	emulator *url.URL
	count    map[string]int
	refuse   map[string]int
	proxy    *httputil.ReverseProxy
}

func newCalls() *calls {
	c := &calls{count: map[string]int{}, refuse: map[string]int{}}
	c.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			r.Out.URL.Scheme, r.Out.URL.Host = c.emulator.Scheme, c.emulator.Host
		},
		Transport: &http.Transport{DisableKeepAlives: true}, // the emulator ends a connection in the middle of an answer
	}
	return c
}

func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action := "S3." + r.Method
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		action = target[strings.LastIndex(target, ".")+1:]
	}
	c.mu.Lock()
	c.count[action]++
	refused := c.refuse[action] > 0
	if refused {
		c.refuse[action]--
	}
	c.mu.Unlock()
	if refused {
		http.Error(w, `{"__type":"ServiceUnavailable"}`, http.StatusServiceUnavailable)
		return
	}
	c.proxy.ServeHTTP(w, r)
}

// Calls returns how often functions have called each operation of AWS so far: by its name, S3.GET and the like for S3.
func (l *Loop) Calls() map[string]int {
	l.calls.mu.Lock()
	defer l.calls.mu.Unlock()
	return maps.Clone(l.calls.count)
}

// Refuse answers the next calls that functions make of an operation, named as in [Loop.Calls], with status 503. 0 ends that.
func (l *Loop) Refuse(operation string, times int) {
	l.calls.mu.Lock()
	defer l.calls.mu.Unlock()
	l.calls.refuse[operation] = times
}
