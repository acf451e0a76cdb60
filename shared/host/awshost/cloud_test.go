package awshost_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/host/awshost"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/tables"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
)

// script plays the model: the number in a message is how many tools it calls at once.
const script = `
rules:
  - when: {toolResult: note}
    text: "noted"
  - when: {toolResult: add}
    text: "added"
  - when: {message: "^three"}
    calls: [{tool: add, args: {a: 1}}, {tool: add, args: {a: 2}}, {tool: note}]
  - when: {message: "^gated"}
    calls: [{tool: sign}]
  - when: {message: "^one"}
    calls: [{tool: add, args: {a: 1}}]
  - when: {message: "^note"}
    calls: [{tool: note}]
  - text: "ok"
`

// cloud is a deployment of an agent: DynamoDB in an emulator, Step Functions in this process with the real state machine, a
// secret. It has no S3: none of these turns may need it.
type cloud struct {
	t        *testing.T
	dynamo   string
	tables   tables.Names
	machine  *sfntest.Server
	secret   string
	model    string
	clock    clock.Clock
	ttl      time.Duration // SessionTTL of the agent
	hooks    []bdk.NamedHook
	add      func(ctx context.Context) // what the tool add does besides adding, if set
	starting error                     // what StartExecution ends with, if set

	// step is the function that the state machine calls; by default one process that serves all calls
	step func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error)

	// await is the function that the state machine parks calls with; by default another process
	await func(ctx context.Context, in sfnturn.AwaitInput) error

	mu    sync.Mutex
	sent  []string       // bodies of messages in queues
	lose  bool           // the queues take every second message only
	notes map[string]int // runs of the tools note and sign, by call id
}

func newCloud(t *testing.T, dynamo *dynamotest.Emulator) *cloud {
	t.Helper()
	c := &cloud{
		t: t, dynamo: dynamo.Addr(), tables: dynamo.Tables(t), notes: map[string]int{},
		secret: `{"bearer:ann":"ann-secret","bearer:bob":"bob-secret"}`, model: filepath.Join(t.TempDir(), "model.yaml"),
	}
	if err := os.WriteFile(c.model, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	definition := strings.NewReplacer("${StepFunctionArn}", "step", "${AwaitFunctionArn}", "await").Replace(sfnturn.Definition)
	machine, err := sfntest.New(definition, map[string]sfntest.Function{
		"step": sfntest.Handle(func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) { return c.step(ctx, in) }),
		"await": sfntest.Handle(func(ctx context.Context, in sfnturn.AwaitInput) (struct{}, error) {
			return struct{}{}, c.await(ctx, in)
		}),
	}, sfntest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(machine.Close)
	c.machine = machine
	worker := c.function(&wire{cloud: c})
	c.await = c.function(&wire{cloud: c}).Await
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		return step(ctx, worker, in)
	}
	return c
}

// step is what the step function does.
func step(ctx context.Context, h *awshost.Host, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
	if in.Error != nil {
		return sfnturn.StepOutput{Outcome: turn.Done}, h.Fail(ctx, in.Ref, in.Error.Message())
	}
	out, err := h.Step(ctx, in.Ref)
	if err != nil || out != turn.Await {
		return sfnturn.StepOutput{Outcome: out}, err
	}
	calls, err := h.Parked(ctx, in.Ref)
	if len(calls) == 0 {
		out = turn.Continue
	}
	return sfnturn.StepOutput{Outcome: out, Calls: calls}, err
}

// function returns the host of a function whose requests go over w.
func (c *cloud) function(w *wire) *awshost.Host {
	c.t.Helper()
	return c.functionWith(w, nil)
}

func (c *cloud) functionWith(w *wire, more map[string]string) *awshost.Host {
	c.t.Helper()
	env := map[string]string{
		deploy.EnvSessions: c.tables.Sessions, deploy.EnvEvents: c.tables.Events, deploy.EnvControl: c.tables.Control,
		deploy.EnvBucket: "bucket", deploy.EnvMachine: sfntest.Machine, deploy.EnvModel: "scripted:" + c.model,
		deploy.EnvSecret: "arn:aws:secretsmanager:us-east-1:000000000000:secret:s",
	}
	maps.Copy(env, more)
	h, err := awshost.Open(c.t.Context(), c.project(), awshost.Options{
		Getenv: func(name string) string { return env[name] },
		Stdout: io.Discard,
		Clock:  c.clock,
		Config: &aws.Config{
			Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
			BaseEndpoint: aws.String("http://" + c.dynamo), HTTPClient: &http.Client{Transport: w},
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}

func (c *cloud) project() bdk.Project {
	type sum struct {
		A int `json:"a"`
	}
	add := bdk.DefineTool(bdk.ToolSpec{Description: "Add.", Effect: bdk.Read}, func(ctx context.Context, _ *bdk.Call, in sum) (int, error) {
		if c.add != nil {
			c.add(ctx)
		}
		return in.A + 1, nil
	})
	note := bdk.DefineTool(bdk.ToolSpec{Description: "Note.", Effect: bdk.Write}, func(_ context.Context, call *bdk.Call, _ struct{}) (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.notes[call.ID]++
		return "noted", nil
	})
	sign := bdk.DefineTool(bdk.ToolSpec{Description: "Sign.", NeedsApproval: bdk.Always}, func(ctx context.Context, call *bdk.Call, _ struct{}) (string, error) {
		_, err := note.Run(ctx, call, []byte(`{}`))
		return "signed", err
	})
	return bdk.Project{Slug: "workshop", Agent: bdk.Agent{SessionTTL: c.ttl}, Hooks: c.hooks, Instructions: "Work.", Tools: []bdk.NamedTool{{Name: "add", Tool: add}, {Name: "note", Tool: note}, {Name: "sign", Tool: sign}}}
}

// wire takes the requests of one process to the services and counts those to each of their operations.
type wire struct {
	*cloud

	secrets string // the secret as this process reads it; "" for that of the cloud

	mu    sync.Mutex
	calls map[string]int

	// around is called with the number of each request, from 1, before it is sent and after; false loses the request, or its answer
	around func(n int, sent bool) bool
	n      int
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	operation := r.Header.Get("X-Amz-Target")
	w.mu.Lock()
	if w.calls == nil {
		w.calls = map[string]int{}
	}
	w.calls[operation]++
	w.n++
	n := w.n
	w.mu.Unlock()
	if w.around != nil && !w.around(n, false) {
		return nil, errGone
	}
	res, err := w.send(r, operation)
	if w.around != nil && !w.around(n, true) {
		return nil, errGone
	}
	return res, err
}

var errGone = fmt.Errorf("the process is gone: %w", context.Canceled)

func (w *wire) send(r *http.Request, operation string) (*http.Response, error) {
	service, name, _ := strings.Cut(operation, ".")
	switch service {
	case "DynamoDB_20120810":
		return http.DefaultTransport.RoundTrip(r)
	case "AWSStepFunctions":
		if w.starting != nil && name == "StartExecution" {
			return nil, w.starting
		}
		return w.machine.Config().HTTPClient.Do(r)
	case "AmazonSQS":
		return w.queue(r, name)
	case "secretsmanager":
		body := fmt.Appendf(nil, `{"SecretString":%q}`, cmp.Or(w.secrets, w.secret))
		rec := httptest.NewRecorder()
		if raw, _ := io.ReadAll(r.Body); bytes.Contains(raw, []byte("AWSPREVIOUS")) {
			rec.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
			rec.WriteHeader(http.StatusBadRequest)
			body = []byte(`{"Message":"Secrets Manager can't find the specified secret value for staging label: AWSPREVIOUS"}`)
		}
		_, _ = rec.Write(body)
		return rec.Result(), nil
	}
	return nil, fmt.Errorf("no service answers %s %s %q", r.Method, r.URL.Path, operation)
}

// queue answers for SQS.
func (w *wire) queue(r *http.Request, operation string) (*http.Response, error) {
	var in struct {
		Queue   string `json:"QueueName"`
		Entries []struct {
			ID   string `json:"Id"`
			Body string `json:"MessageBody"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	taken, lost := []map[string]any{}, []map[string]any{}
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	for i, e := range in.Entries {
		if w.lose && i%2 == 1 {
			lost = append(lost, map[string]any{"Id": e.ID, "Code": "InternalError", "Message": "try again", "SenderFault": false})
			continue
		}
		w.sent = append(w.sent, e.Body)
		sum := md5.Sum([]byte(e.Body))
		taken = append(taken, map[string]any{"Id": e.ID, "MessageId": e.ID, "MD5OfMessageBody": hex.EncodeToString(sum[:])})
	}
	out := map[string]any{"Successful": taken, "Failed": lost}
	if operation == "GetQueueUrl" {
		out = map[string]any{"QueueUrl": "https://sqs.us-east-1.amazonaws.com/000000000000/" + in.Queue}
	}
	rec := httptest.NewRecorder()
	if err := json.NewEncoder(rec).Encode(out); err != nil {
		return nil, err
	}
	return rec.Result(), nil
}

// counts returns the requests to each operation.
func (w *wire) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	named := map[string]int{}
	for operation, n := range w.calls {
		_, name, _ := strings.Cut(operation, ".")
		named[name] += n
	}
	return named
}

// reset forgets what was counted.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = nil
}

// client calls the API in a function of its own.
type client struct {
	t   *testing.T
	api http.Handler
}

func (c *cloud) client(w *wire) *client {
	c.t.Helper()
	api, err := c.function(w).API(c.t.Context(), false)
	if err != nil {
		c.t.Fatal(err)
	}
	return &client{c.t, api}
}

// do sends a request of ann and returns the answer.
func (c *client) do(method, path, body string) (int, map[string]any) {
	c.t.Helper()
	r := httptest.NewRequest(method, "/workshop"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer ann-secret")
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	c.api.ServeHTTP(rec, r)
	var answer map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil {
		c.t.Fatalf("%s %s: %s", method, path, rec.Body)
	}
	return rec.Code, answer
}

// start starts a session with a message and returns its id and its token.
func (c *client) start(message string) (id, token string) {
	c.t.Helper()
	code, answer := c.do("POST", "/v1/session", fmt.Sprintf(`{"message":%q}`, message))
	id, _ = answer["sessionId"].(string)
	token, _ = answer["continuationToken"].(string)
	if code != http.StatusAccepted || id == "" {
		c.t.Fatalf("got %d %v", code, answer)
	}
	return id, token
}

// events returns the log of a session.
func (c *client) events(id string) []map[string]any {
	c.t.Helper()
	_, answer := c.do("GET", "/v1/session/"+id+"/events?format=json", "")
	list, _ := answer["events"].([]any)
	events := make([]map[string]any, len(list))
	for i, e := range list {
		events[i], _ = e.(map[string]any)
	}
	return events
}

// waiting returns the call of a session that waits for approval.
func (c *client) waiting(id string) string {
	c.t.Helper()
	_, answer := c.do("GET", "/v1/session/"+id+"/approvals", "")
	list, _ := answer["approvals"].([]any)
	if len(list) != 1 {
		c.t.Fatalf("one call should wait: %v", answer)
	}
	call, _ := list[0].(map[string]any)
	callID, _ := call["callId"].(string)
	return callID
}

// ended waits until a session has had n turns and waits, and returns its events.
func (c *client) ended(id string, n int) []map[string]any {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		events := c.events(id)
		waiting := 0
		for _, e := range events {
			if e["type"] == "session.waiting" {
				waiting++
			}
		}
		if waiting >= n {
			return events
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("session %s does not end its turn: %v", id, events)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
