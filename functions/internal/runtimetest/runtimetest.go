// Package runtimetest is the Lambda Runtime API for tests: it runs a function in processes of its own and shows its answers
// while they are written.
package runtimetest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Answer is what a function answers.
type Answer struct {
	ContentType string
	Body        io.Reader // ends with an error where the function's did
	Failed      bool      // Body is the function's error, in JSON
}

// API is a Runtime API with one function. It is safe for concurrent use.
type API struct {
	server *httptest.Server
	events chan *invocation

	mu      sync.Mutex
	running map[string]*invocation
	count   int
}

type invocation struct {
	id     string
	event  []byte
	end    time.Time
	answer chan Answer
}

// Start runs the command, with more environment variables, as a process of the function until the test has ended.
func Start(tb testing.TB, cmd *exec.Cmd) *API {
	tb.Helper()
	a := &API{events: make(chan *invocation), running: make(map[string]*invocation)}
	mux := http.NewServeMux()
	const base = "/2018-06-01/runtime/invocation/"
	mux.HandleFunc("GET "+base+"next", a.next)
	mux.HandleFunc("POST "+base+"{id}/response", a.response)
	mux.HandleFunc("POST "+base+"{id}/error", a.response)
	a.server = httptest.NewServer(mux)
	var log bytes.Buffer
	cmd.Env = append(cmd.Env, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(a.server.URL, "http://"))
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // gone already is as good
		_ = cmd.Wait()         // it is killed
		a.server.CloseClientConnections()
		a.server.Close()
		if tb.Failed() {
			tb.Logf("the function printed:\n%s", log.String())
		}
	})
	return a
}

// Invoke passes an event to the function and returns its answer when that begins. The invocation may take as long as the limit says.
func (a *API) Invoke(tb testing.TB, event []byte, limit time.Duration) Answer {
	tb.Helper()
	a.mu.Lock()
	a.count++
	i := &invocation{id: fmt.Sprint("invocation-", a.count), event: event, end: time.Now().Add(limit), answer: make(chan Answer, 1)}
	a.running[i.id] = i
	a.mu.Unlock()
	timeout := time.After(limit)
	select {
	case a.events <- i:
	case <-timeout:
		tb.Fatal("no process asks for an event")
	}
	select {
	case answer := <-i.answer:
		return answer
	case <-timeout:
		tb.Fatal("the function does not answer in time")
	}
	return Answer{}
}

func (a *API) next(w http.ResponseWriter, r *http.Request) {
	select {
	case i := <-a.events:
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.end.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:test")
		_, _ = w.Write(i.event) // a process that is gone is seen by the one that waits for the answer
	case <-r.Context().Done():
	}
}

func (a *API) response(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	i := a.running[r.PathValue("id")]
	delete(a.running, r.PathValue("id"))
	a.mu.Unlock()
	if i == nil {
		http.Error(w, "no such invocation", http.StatusBadRequest)
		return
	}
	read, write := io.Pipe()
	i.answer <- Answer{ContentType: r.Header.Get("Content-Type"), Body: read, Failed: strings.HasSuffix(r.URL.Path, "/error")}
	_, err := io.Copy(write, r.Body)
	if err == nil && r.Trailer.Get("Lambda-Runtime-Function-Error-Type") != "" {
		text, _ := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body")) // shown as it is
		err = errors.New(string(text))
	}
	_ = write.CloseWithError(err) // never fails
	w.WriteHeader(http.StatusAccepted)
}
