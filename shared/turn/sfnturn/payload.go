package sfnturn

import (
	"encoding/json"
	"strings"

	"github.com/bdk-lambda/bdk/shared/turn"
)

// StepInput is what the step function is called with: to work on a turn, or to fail it if Error is there.
type StepInput struct {
	turn.Ref

	Execution string   `json:"execution,omitempty"` // the ARN of what runs the turn, see [WithExecution]
	Error     *Failure `json:"error,omitempty"`
}

// Failure is why the state machine gave up, in its own form.
type Failure struct {
	Error string `json:"Error"`
	Cause string `json:"Cause"` // for a function that returned an error: a JSON object
}

// Message returns what to tell the user: nothing of the causes, which name resources of the account.
func (f Failure) Message() string {
	var returned struct {
		Type string `json:"errorType"`
	}
	_ = json.Unmarshal([]byte(f.Cause), &returned) // of a function only
	kind, why := f.Error+" "+returned.Type, "a fault of the host; its log has the reason"
	switch {
	case strings.Contains(kind, "Timeout") || strings.Contains(kind, "Timedout") || strings.Contains(kind, "TIMED_OUT"):
		why = "a step of it took too long"
	case strings.Contains(kind, "Runtime."):
		why = "the process that worked on it ended several times"
	case strings.Contains(kind, "Lambda.TooManyRequests"):
		why = "the host was too busy for it"
	}
	return "the turn could not be finished: " + why
}

// StepOutput is what the step function answers.
type StepOutput struct {
	Outcome turn.Outcome
	Calls   []string // ids of the calls to wait for, if the outcome is Await
}

// MarshalJSON writes {"outcome": …, "calls": […]}.
func (o StepOutput) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Outcome turn.Outcome `json:"outcome"`
		Calls   []string     `json:"calls"`
	}{o.Outcome, append([]string{}, o.Calls...)})
}

// AwaitInput is what the await function is called with: a call of a turn, and the token that ends the wait for it.
type AwaitInput struct {
	turn.Ref

	CallID string `json:"callId"`
	Token  string `json:"token"` // a secret: whoever has it can resume the turn
}

// input returns what an execution begins with. It is the same whenever it is made: that is how a repeated start is told from
// another one of the same name.
func input(ref turn.Ref) string {
	b, _ := json.Marshal(ref) //nolint:errchkjson // strings only
	return string(b)
}
