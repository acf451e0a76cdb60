package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/functions/gateway"
	"github.com/bdk-lambda/bdk/functions/internal/runtimetest"
)

// TestMain is the function when a Runtime API is there.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		os.Exit(m.Run())
	}
	lambda.Start(gateway.Streamed(function(), gateway.Options{Stage: "workshop"}))
}

// function asks the test, at the URL in the query, before it goes on.
func function() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/workshop/pieces", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush()
		for piece := range 3 {
			ask(r, piece)
			fmt.Fprintf(w, "piece %d\n", piece)
		}
		ask(r, 3)
		if r.URL.Query().Has("panic") {
			panic("boom")
		}
	})
	mux.HandleFunc("/workshop/panic", func(http.ResponseWriter, *http.Request) { panic("boom") })
	mux.HandleFunc("/workshop/wait", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		http.Error(w, "time is over", http.StatusServiceUnavailable)
	})
	return mux
}

func ask(r *http.Request, piece int) {
	res, err := http.Get(fmt.Sprintf("%s/%d", r.URL.Query().Get("gate"), piece))
	if err != nil {
		panic(err)
	}
	res.Body.Close()
}

// gate is where the function asks whether to go on: it may when the test says so.
type gate struct {
	url  string
	open chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{open: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-g.open:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	g.url = s.URL
	return g
}

func start(t *testing.T, concurrency int) *runtimetest.API {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{fmt.Sprint("AWS_LAMBDA_MAX_CONCURRENCY=", concurrency)}
	return runtimetest.Start(t, cmd)
}

// invoke returns the status of an answer, and what comes behind it.
func invoke(t *testing.T, api *runtimetest.API, path string, query map[string]string, limit time.Duration) (int, *bufio.Reader) {
	t.Helper()
	event, err := json.Marshal(events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: path, QueryStringParameters: query})
	if err != nil {
		t.Fatal(err)
	}
	a := api.Invoke(t, event, limit)
	if a.Failed || a.ContentType != "application/vnd.awslambda.http-integration-response" {
		t.Fatalf("got %+v", a)
	}
	rest := bufio.NewReader(a.Body)
	prelude, err := rest.ReadBytes(0)
	if err != nil {
		t.Fatal(err)
	}
	var head struct{ StatusCode int }
	if err := json.Unmarshal(prelude[:len(prelude)-1], &head); err != nil {
		t.Fatal(err)
	}
	if n, err := rest.Discard(7); err != nil {
		t.Fatalf("%d NUL bytes: %v", n+1, err)
	}
	return head.StatusCode, rest
}

const limit = 30 * time.Second

// TestPiecesArriveAsTheyAreWritten: the function writes a piece only when the test has read the one before.
func TestPiecesArriveAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	api, g := start(t, 1), newGate(t)
	for range 2 { // the process is used again
		status, rest := invoke(t, api, "/pieces", map[string]string{"gate": g.url}, limit)
		if status != http.StatusAccepted {
			t.Errorf("got %d", status)
		}
		for piece := range 3 {
			g.open <- struct{}{}
			if line, err := rest.ReadString('\n'); line != fmt.Sprintf("piece %d\n", piece) {
				t.Fatalf("got %q, %v", line, err)
			}
		}
		g.open <- struct{}{}
		if more, err := io.ReadAll(rest); len(more) > 0 || err != nil {
			t.Errorf("behind the answer is %q, %v", more, err)
		}
	}
}

// TestStreamsAtOnce: invocations in one process do not wait for one another.
func TestStreamsAtOnce(t *testing.T) {
	t.Parallel()
	api := start(t, 4)
	var gates []*gate
	var rests []*bufio.Reader
	for range 4 {
		g := newGate(t)
		_, rest := invoke(t, api, "/pieces", map[string]string{"gate": g.url}, limit)
		gates, rests = append(gates, g), append(rests, rest)
	}
	for piece := range 3 {
		for i := range gates {
			gates[i].open <- struct{}{}
			if line, err := rests[i].ReadString('\n'); line != fmt.Sprintf("piece %d\n", piece) {
				t.Fatalf("got %q, %v", line, err)
			}
		}
	}
	for i, g := range gates {
		close(g.open)
		if _, err := io.ReadAll(rests[i]); err != nil {
			t.Error(err)
		}
	}
}

// TestPanicsDoNotEndTheProcess: the Runtime API is told of an answer that breaks off, in its trailers; the next event is answered.
func TestPanicsDoNotEndTheProcess(t *testing.T) {
	t.Parallel()
	api, g := start(t, 1), newGate(t)
	close(g.open)
	status, rest := invoke(t, api, "/panic", nil, limit)
	if body, err := io.ReadAll(rest); status != 500 || err != nil || !strings.Contains(string(body), `"error":"internal"`) {
		t.Errorf("got %d %q, %v", status, body, err)
	}
	status, rest = invoke(t, api, "/pieces", map[string]string{"gate": g.url, "panic": "1"}, limit)
	body, err := io.ReadAll(rest)
	if status != 202 || string(body) != "piece 0\npiece 1\npiece 2\n" || err == nil || !strings.Contains(err.Error(), "could not be completed") {
		t.Errorf("got %d %q, error %v", status, body, err)
	}
	status, rest = invoke(t, api, "/pieces", map[string]string{"gate": g.url}, limit)
	if body, err := io.ReadAll(rest); status != 202 || len(body) != 24 || err != nil {
		t.Errorf("afterwards: got %d %q, %v", status, body, err)
	}
}

// TestTimeIsOver: a handler learns before the invocation's deadline that its time is over.
func TestTimeIsOver(t *testing.T) {
	t.Parallel()
	status, rest := invoke(t, start(t, 1), "/wait", nil, 1500*time.Millisecond)
	if body, err := io.ReadAll(rest); status != 503 || err != nil {
		t.Errorf("got %d %q, %v", status, body, err)
	}
}
