package awshost_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
)

// TestRequests fixes the requests to AWS of a turn; BENCHMARKS.md prices them. Nothing is scanned, and nothing is in S3.
func TestRequests(t *testing.T) {
	t.Parallel()
	dynamo := dynamotest.Start(t)
	for message, want := range map[string]map[string]int{
		"hello":       {"GetItem": 1, "PutItem": 2, "Query": 2, "TransactWriteItems": 1},
		"one tool":    {"GetItem": 1, "PutItem": 3, "Query": 2, "TransactWriteItems": 2},
		"three tools": {"GetItem": 1, "PutItem": 6, "Query": 2, "TransactWriteItems": 2}, // one of them writes: its claim
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, dynamo)
			accept, run := &wire{cloud: c}, &wire{cloud: c}
			worker := c.function(run)
			c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
				return step(ctx, worker, in)
			}
			ann, reader := c.client(accept), c.client(&wire{cloud: c})
			accept.reset()
			id, token := ann.start(message)
			if d := cmp.Diff(map[string]int{"TransactWriteItems": 1, "StartExecution": 1}, accept.counts()); d != "" {
				t.Errorf("a new session:\n%s", d)
			}
			events := reader.ended(id, 1)
			if d := cmp.Diff(want, run.counts()); d != "" {
				t.Errorf("its turn:\n%s", d)
			}
			x, err := c.machine.Wait(t.Context(), turnOf(events))
			if d := cmp.Diff([]string{"Step", "Route", "Done"}, x.Transitions); err != nil || d != "" {
				t.Errorf("its states: %v\n%s", err, d)
			}
			accept.reset()
			if code, answer := ann.do("POST", "/v1/session/"+id, fmt.Sprintf(`{"message":"hello","continuationToken":%q}`, token)); code != http.StatusAccepted {
				t.Fatalf("got %d %v", code, answer)
			}
			if d := cmp.Diff(map[string]int{"GetItem": 2, "TransactWriteItems": 1, "StartExecution": 1}, accept.counts()); d != "" {
				t.Errorf("a follow-up:\n%s", d)
			}
			reader.ended(id, 2)
		})
	}
}

// TestSessionTTL: a session is seen until some time after its last turn.
func TestSessionTTL(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	c.ttl = time.Hour
	worker := c.function(&wire{cloud: c})
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		return step(ctx, worker, in)
	}
	ann := c.client(&wire{cloud: c})
	id, _ := ann.start("hello")
	ann.ended(id, 1)
	for after, want := range map[time.Duration]int{59 * time.Minute: http.StatusOK, 61 * time.Minute: http.StatusNotFound} {
		c.clock = clock.Fixed(time.Now().Add(after))
		if code, answer := c.client(&wire{cloud: c}).do("GET", "/v1/session/"+id+"/cost", ""); code != want {
			t.Errorf("after %s: got %d %v, want %d", after, code, answer, want)
		}
	}
}

// TestRequestsOfAnApproval fixes what it costs that a turn waits for a person, besides the turn itself.
func TestRequestsOfAnApproval(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	run, park, decide := &wire{cloud: c}, &wire{cloud: c}, &wire{cloud: c}
	worker := c.function(run)
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		return step(ctx, worker, in)
	}
	parker, parked := c.function(park), make(chan error, 1)
	c.await = func(ctx context.Context, in sfnturn.AwaitInput) error {
		err := parker.Await(ctx, in)
		parked <- err
		return err
	}
	reader, ann := c.client(&wire{cloud: c}), c.client(decide)
	id, _ := reader.start("gated")
	if err := <-parked; err != nil {
		t.Fatal(err)
	}
	callID := reader.waiting(id)
	if d := cmp.Diff(map[string]int{"GetItem": 2, "PutItem": 1, "Query": 2, "TransactWriteItems": 2, "UpdateItem": 1}, run.counts()); d != "" {
		t.Errorf("until it waits:\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"GetItem": 1, "PutItem": 1}, park.counts()); d != "" {
		t.Errorf("parking it:\n%s", d)
	}
	run.reset()
	decide.reset()
	if code, answer := ann.do("POST", "/v1/session/"+id+"/approvals/"+callID, `{"decision":"approve"}`); code != http.StatusOK {
		t.Fatalf("got %d %v", code, answer)
	}
	if d := cmp.Diff(map[string]int{"GetItem": 4, "Query": 1, "TransactWriteItems": 1, "SendTaskSuccess": 1}, decide.counts()); d != "" {
		t.Errorf("deciding:\n%s", d)
	}
	events := reader.ended(id, 1)
	if d := cmp.Diff(map[string]int{"GetItem": 1, "PutItem": 3, "Query": 2, "TransactWriteItems": 1}, run.counts()); d != "" {
		t.Errorf("going on:\n%s", d)
	}
	x, err := c.machine.Wait(t.Context(), turnOf(events))
	if d := cmp.Diff([]string{"Step", "Route", "Await", "Park", "Step", "Route", "Done"}, x.Transitions); err != nil || d != "" {
		t.Errorf("its states: %v\n%s", err, d)
	}
}

// turnOf returns the turn of the newest message.
func turnOf(events []map[string]any) string {
	var id string
	for _, e := range events {
		if e["type"] == "message.received" {
			id, _ = e["turnId"].(string)
		}
	}
	return id
}

// TestDiesAtEveryRequest: the process that works on a turn ends before or after each of its requests; the state machine
// calls another one. Whatever the moment, the turn ends once and the tool that writes runs at most once.
func TestDiesAtEveryRequest(t *testing.T) {
	t.Parallel()
	dynamo := dynamotest.Start(t)
	for _, message := range []string{"three tools", "gated"} {
		for n := 1; n <= 16; n++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%t", message, n, after), func(t *testing.T) {
					t.Parallel()
					diesAt(t, newCloud(t, dynamo), message, n, after)
				})
			}
		}
	}
}

func diesAt(t *testing.T, c *cloud, message string, at int, after bool) {
	t.Helper()
	ann := c.client(&wire{cloud: c})
	parker := c.function(&wire{cloud: c})
	c.await = func(ctx context.Context, in sfnturn.AwaitInput) error {
		err := parker.Await(ctx, in)
		if code, answer := ann.do("POST", "/v1/session/"+in.SessionID+"/approvals/"+in.CallID, `{"decision":"approve"}`); code != http.StatusOK {
			t.Errorf("approving: %d %v", code, answer)
		}
		return err
	}
	var die context.CancelFunc // of the step that runs
	dead := false
	dying := c.function(&wire{cloud: c, around: func(n int, sent bool) bool {
		if n > at || n == at && sent == after {
			dead = true
			die()
			return false
		}
		return true
	}})
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		if dead {
			return step(ctx, c.function(&wire{cloud: c}), in)
		}
		ctx, die = context.WithCancel(ctx)
		defer die()
		out, err := step(ctx, dying, in)
		if dead {
			return out, &sfntest.Fault{Name: "Runtime.ExitError", Cause: "signal: killed"}
		}
		return out, err
	}
	id, token := ann.start(message)
	events := ann.ended(id, 1)
	ends := 0
	for i, e := range events {
		if e["index"] != float64(i) {
			t.Errorf("event %d has index %v", i, e["index"])
		}
		if e["type"] == "turn.completed" || e["type"] == "turn.failed" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("the turn ended %d times: %v", ends, events)
	}
	for call, runs := range c.notes {
		if runs != 1 {
			t.Errorf("the write %s ran %d times", call, runs)
		}
	}
	if code, answer := ann.do("POST", "/v1/session/"+id, fmt.Sprintf(`{"message":"hello","continuationToken":%q}`, token)); code != http.StatusAccepted {
		t.Errorf("follow-up: got %d %v", code, answer)
	}
	ann.ended(id, 2)
}

// later is a clock that is ahead.
type later struct {
	clock.System

	by time.Duration
}

func (l later) Now() time.Time { return l.System.Now().Add(l.by) }

// TestSweep: a message is accepted though its turn cannot be started; the sweeper starts it half a minute later.
func TestSweep(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	c.starting = errors.New("connection refused")
	ann := c.client(&wire{cloud: c})
	id, _ := ann.start("hello")
	c.starting = nil
	if err := c.function(&wire{cloud: c}).Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if _, answer := ann.do("GET", "/v1/session/"+id+"/events?format=json", ""); contains(fmt.Sprint(answer), "turn.started") {
		t.Error("a turn is taken for lost at once")
	}
	c.clock = later{by: 31 * time.Second}
	if err := c.function(&wire{cloud: c}).Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	ann.ended(id, 1)
}

// TestAgentThatCannotRun: without the key of its model a turn fails and says why.
func TestAgentThatCannotRun(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	for model, why := range map[string]string{
		"anthropic:x":          "set ANTHROPIC_API_KEY in the deployment's secret",
		"scripted:nowhere.yml": "nowhere.yml",
	} {
		c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
			return step(ctx, c.functionWith(&wire{cloud: c}, map[string]string{deploy.EnvModel: model}), in)
		}
		ann := c.client(&wire{cloud: c})
		id, _ := ann.start("hello")
		events := ann.ended(id, 1)
		if text := fmt.Sprint(events); !contains(text, "turn.failed", why) {
			t.Errorf("%s: %s", model, text)
		}
		if _, err := c.machine.Wait(t.Context(), turnOf(events)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeyFromTheSecret: a variable that the function lacks is looked for in the deployment's secret.
func TestKeyFromTheSecret(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Header.Get("Authorization"):
		default:
		}
		http.Error(w, `{"error":{"message":"no","type":"invalid_request_error"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(provider.Close)
	c := newCloud(t, dynamotest.Start(t))
	c.secret = `{"bearer:ann":"ann-secret","OPENAI_API_KEY":"key-of-the-secret"}`
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		return step(ctx, c.functionWith(&wire{cloud: c}, map[string]string{deploy.EnvModel: "openai:x", "OPENAI_BASE_URL": provider.URL}), in)
	}
	ann := c.client(&wire{cloud: c})
	id, _ := ann.start("hello")
	if got := <-asked; got != "Bearer key-of-the-secret" {
		t.Errorf("the provider got %q", got)
	}
	ann.ended(id, 1)
}

// TestGivenUpButAlive: a call of the step function is given up by the state machine and goes on working beside the next one. One of them
// gets ahead; whoever that is, the turn is not left to nobody.
func TestGivenUpButAlive(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	c.add = func(ctx context.Context) { // the first two runs of the tool wait until both were begun
		select {
		case entered <- struct{}{}:
			<-leave
		default:
		}
	}
	calls, alive := 0, make(chan error, 1)
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		calls++
		h := c.function(&wire{cloud: c})
		if calls > 1 {
			return step(ctx, h, in)
		}
		handBack := turn.WithYield(context.WithoutCancel(ctx), func(time.Duration) bool {
			select {
			case <-leave: // the tool has run
				return true
			default:
				return false
			}
		})
		go func() {
			_, err := h.Step(handBack, in.Ref) // done, if it finds that the other call has ended the turn meanwhile
			alive <- err
		}()
		return sfnturn.StepOutput{}, &sfntest.Fault{Name: "Lambda.SdkClientException", Cause: "connection reset"}
	}
	ann := c.client(&wire{cloud: c})
	id, _ := ann.start("one tool")
	for range 2 {
		<-entered
	}
	close(leave)
	ann.ended(id, 1)
	if err := <-alive; err != nil && !errors.Is(err, session.ErrFenced) {
		t.Errorf("the call that nobody waits for: %v", err)
	}
	if text := fmt.Sprint(ann.ended(id, 1)); !contains(text, "turn.completed") {
		t.Errorf("the turn was not completed: %s", text)
	}
}

// TestReplacedKey: a key that was replaced in the secret is used once the secret is read again, and what cannot be read of it does
// not stop turns.
func TestReplacedKey(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		http.Error(w, `{"error":{"message":"no","type":"invalid_request_error"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(provider.Close)
	c := newCloud(t, dynamotest.Start(t))
	now := &later{}
	c.clock = now
	worker := c.functionWith(&wire{cloud: c}, map[string]string{deploy.EnvModel: "openai:x", "OPENAI_BASE_URL": provider.URL})
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		return step(ctx, worker, in)
	}
	for _, tc := range []struct{ secret, want string }{
		{`{"bearer:ann":"ann-secret","OPENAI_API_KEY":"old"}`, "Bearer old"},
		{`{"bearer:ann":"ann-secret","OPENAI_API_KEY":"new"}`, "Bearer new"},
		{`{"broken`, "Bearer new"},
	} {
		c.secret = tc.secret
		now.by += 6 * time.Minute
		ann := c.client(&wire{cloud: c, secrets: `{"bearer:ann":"ann-secret"}`})
		id, _ := ann.start("hello")
		if _, err := c.machine.Wait(t.Context(), turnOf(ann.ended(id, 1))); err != nil {
			t.Fatal(err)
		}
		if got := <-asked; got != tc.want {
			t.Errorf("the provider got %q, want %q", got, tc.want)
		}
	}
}

// TestFaultsAreNotTold: what AWS says of a fault is for the log, not for users.
func TestFaultsAreNotTold(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	ann := c.client(&wire{cloud: c, secrets: c.secret})
	c.secret = ""
	c.step = func(ctx context.Context, in sfnturn.StepInput) (sfnturn.StepOutput, error) {
		return step(ctx, c.functionWith(&wire{cloud: c}, map[string]string{deploy.EnvModel: "openai:x"}), in)
	}
	id, _ := ann.start("hello")
	text := fmt.Sprint(ann.ended(id, 1))
	if !contains(text, "turn.failed", "the deployment's secret cannot be read") || contains(text, "arn:aws") {
		t.Error(text)
	}
}
