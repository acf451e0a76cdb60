package functions_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/functions/internal/memhost"
	"github.com/bdk-lambda/bdk/functions/internal/table"
	"github.com/bdk-lambda/bdk/functions/wake"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

var update = flag.Bool("update", false, "write what is wanted of events")

const eventsDir = "../events"

// cases returns the names of a function's events.
func cases(t *testing.T, function string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(eventsDir, function, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if name := strings.TrimSuffix(filepath.Base(path), ".json"); !strings.HasSuffix(name, ".want") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Errorf("function %s has no events", function)
	}
	return names
}

func read(t *testing.T, function, name string) []byte {
	t.Helper()
	event, err := os.ReadFile(filepath.Join(eventsDir, function, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// TestEvents: in this process, each function answers its events with what is wanted, and logs it.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, f := range deploy.Functions() {
		for _, name := range cases(t, f.Name) {
			t.Run(f.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				event := read(t, f.Name, name)
				strictly(t, f, event)
				var log bytes.Buffer
				h, err := memhost.Open(t.Context(), &log)
				if err != nil {
					t.Fatal(err)
				}
				handler, err := table.Handler(f.Name)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := lambda.NewHandler(handler(h, false)).Invoke(t.Context(), event)
				if err != nil {
					answer = marshal(t, map[string]string{"errorMessage": err.Error()})
				}
				want(t, f, name, answer, log.String())
			})
		}
	}
}

// TestEveryWantHasAnEvent: and every folder a function.
func TestEveryWantHasAnEvent(t *testing.T) {
	t.Parallel()
	functions := map[string]bool{}
	for _, f := range deploy.Functions() {
		functions[f.Name] = true
	}
	err := fs.WalkDir(os.DirFS(eventsDir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, isWant := strings.CutSuffix(path, ".want.json")
		if _, serr := os.Stat(filepath.Join(eventsDir, name+".json")); isWant && serr != nil || !functions[filepath.Dir(path)] {
			t.Errorf("%s belongs to nothing", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// strictly fails for an event that is not of the type of its function's events.
func strictly(t *testing.T, f deploy.Function, event []byte) {
	t.Helper()
	var into any
	switch {
	case f.Kind != deploy.Worker:
		into = new(events.APIGatewayProxyRequest)
	case f.Name == deploy.Step:
		into = new(sfnturn.StepInput)
	case f.Name == deploy.Await:
		into = new(sfnturn.AwaitInput)
	case f.Name == deploy.Exec:
		into = new(lambdaexec.Request)
	case f.Name == deploy.Wake:
		into = new(wake.Event)
	case f.Name == deploy.Sweep && bytes.Contains(event, []byte(`"Records"`)):
		into = new(events.SQSEvent)
	case f.Name == deploy.Sweep:
		into = new(events.EventBridgeEvent)
	case f.Name == deploy.Hook:
		into = new(events.SQSEvent)
	case f.Name == deploy.Purge, f.Name == deploy.Dispatch:
		into = new(events.DynamoDBEvent)
	default:
		t.Fatalf("the test does not know the events of %s", f.Name)
	}
	dec := json.NewDecoder(bytes.NewReader(event))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Errorf("the event: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Error("there is more behind the event")
	}
}

// want compares an answer, and the lines of a log that are JSON, with what is wanted.
func want(t *testing.T, f deploy.Function, name string, answer []byte, log string) {
	t.Helper()
	got := marshal(t, struct {
		Answer any   `json:"answer"`
		Log    []any `json:"log"`
	}{readable(t, f, answer), records(t, log)})
	path := filepath.Join(eventsDir, f.Name, name+".want.json")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(wanted), string(got)); d != "" {
		t.Errorf("-want +got (write it with -update):\n%s", d)
	}
}

// readable returns an answer in a form that people can read.
func readable(t *testing.T, f deploy.Function, answer []byte) any {
	t.Helper()
	if f.Kind == deploy.Worker {
		v := parse(t, answer)
		if m, ok := v.(map[string]any); ok {
			delete(m, "errorType") // a Go type
		}
		return v
	}
	var a struct {
		StatusCode        int         `json:"statusCode"`
		MultiValueHeaders http.Header `json:"multiValueHeaders"`
		Body              any         `json:"body"`
		IsBase64Encoded   bool        `json:"isBase64Encoded,omitempty"`
	}
	head, body, streamed := bytes.Cut(answer, make([]byte, 8))
	if streamed != (f.Kind == deploy.Streamed) {
		t.Errorf("streamed: %t", streamed)
	}
	if err := json.Unmarshal(head, &a); err != nil {
		t.Fatalf("the answer is %q: %v", answer, err)
	}
	text, _ := a.Body.(string)
	if streamed {
		text = string(body)
	}
	a.Body = text
	switch kind := a.MultiValueHeaders.Get("Content-Type"); {
	case kind == "application/json" && text != "":
		a.Body = parse(t, []byte(text))
	case kind == "application/x-ndjson" && text != "":
		a.Body = records(t, text)
	}
	return a
}

// records returns the lines of a text that are JSON objects, without what differs from one run to another.
func records(t *testing.T, text string) []any {
	t.Helper()
	lines := []any{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		v := parse(t, []byte(line))
		if m, ok := v.(map[string]any); ok && m["msg"] == "invocation" {
			delete(m, "request_id")
		}
		lines = append(lines, v)
	}
	return lines
}

func parse(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return v
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
