package sfntest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
)

// echo answers with its event. fault fails with the error of its event's name. slow takes an hour.
func functions(more map[string]sfntest.Function) map[string]sfntest.Function {
	all := map[string]sfntest.Function{
		"echo": sfntest.Handle(func(_ context.Context, in any) (any, error) { return in, nil }),
		"fault": sfntest.Handle(func(_ context.Context, in struct{ Name string }) (any, error) {
			return nil, &sfntest.Fault{Name: in.Name, Cause: "as told"}
		}),
		"error": sfntest.Handle(func(context.Context, any) (any, error) { return nil, errors.New("boom") }),
		"panic": sfntest.Handle(func(context.Context, any) (any, error) { panic("boom") }),
		"large": sfntest.Handle(func(context.Context, any) (any, error) { return strings.Repeat("x", 300_000), nil }),
		"slow":  sfntest.Handle(func(context.Context, any) (any, error) { time.Sleep(time.Hour); return "late", nil }),
	}
	maps.Copy(all, more)
	return all
}

// output has a machine of the given states run, from A on, and returns what its last state, a Task of the function out, gets.
func output(t *testing.T, states, input string) (string, sfntest.Execution) {
	t.Helper()
	got := "nothing"
	s, err := sfntest.New(`{"StartAt": "A", "States": {`+states+`, "Out": {"Type": "Task", "Resource": "out", "End": true}}}`,
		functions(map[string]sfntest.Function{"out": func(_ context.Context, in json.RawMessage) (any, error) {
			got = string(in)
			return nil, nil
		}}), sfntest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = sfn.NewFromConfig(s.Config()).StartExecution(t.Context(), &sfn.StartExecutionInput{
		StateMachineArn: aws.String(sfntest.Machine), Name: aws.String("x"), Input: &input,
	})
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Wait(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	return got, x
}

func TestStates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		states, input string
		want          string // what the state Out gets; else the execution fails with wantError
		wantError     string
		took          time.Duration
		transitions   int // 0: whatever
	}{
		"task takes its input":  {states: `"A": {"Type": "Task", "Resource": "echo", "Next": "Out"}`, input: `{"a":1}`, want: `{"a":1}`, transitions: 2},
		"parameters":            {states: `"A": {"Type": "Task", "Resource": "echo", "Parameters": {"b.$": "$.a[1]", "c": {"d.$": "$$.Execution.Name"}, "e": 5}, "Next": "Out"}`, input: `{"a":[1,2]}`, want: `{"b":2,"c":{"d":"x"},"e":5}`},
		"parameters of nothing": {states: `"A": {"Type": "Task", "Resource": "echo", "Parameters": {"b.$": "$.a"}, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Out"}], "Next": "Out"}`, input: `{}`, wantError: "States.Runtime"},
		"result path":           {states: `"A": {"Type": "Task", "Resource": "echo", "Parameters": {"x": 1}, "ResultPath": "$.b.c", "Next": "Out"}`, input: `{"a":1}`, want: `{"a":1,"b":{"c":{"x":1}}}`},
		"result path null":      {states: `"A": {"Type": "Task", "Resource": "echo", "Parameters": {"x": 1}, "ResultPath": null, "Next": "Out"}`, input: `{"a":1}`, want: `{"a":1}`},
		"result path $":         {states: `"A": {"Type": "Task", "Resource": "echo", "Parameters": {"x": 1}, "ResultPath": "$", "Next": "Out"}`, input: `{"a":1}`, want: `{"x":1}`},
		"result path in a text": {states: `"A": {"Type": "Task", "Resource": "echo", "ResultPath": "$.a.b", "Next": "Out"}`, input: `{"a":"text"}`, wantError: "States.ResultPathMatchFailure"},
		"result selector":       {states: `"A": {"Type": "Task", "Resource": "echo", "ResultSelector": {"y.$": "$.x"}, "ResultPath": "$.r", "Next": "Out"}`, input: `{"x":1}`, want: `{"r":{"y":1},"x":1}`},
		"pass":                  {states: `"A": {"Type": "Pass", "Result": {"x": 1}, "ResultPath": "$.b", "Next": "Out"}`, input: `{"a":1}`, want: `{"a":1,"b":{"x":1}}`},
		"pass without result":   {states: `"A": {"Type": "Pass", "Next": "Out"}`, input: `{"a":1}`, want: `{"a":1}`},
		"fail":                  {states: `"A": {"Type": "Fail", "Error": "E", "Cause": "C"}`, input: `{}`, wantError: "E"},

		"choice":                   {states: `"A": {"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEquals": "y", "Next": "B"}, {"Variable": "$.a", "StringEquals": "x", "Next": "Out"}], "Default": "B"}, "B": {"Type": "Fail", "Error": "B"}`, input: `{"a":"x"}`, want: `{"a":"x"}`},
		"choice by default":        {states: `"A": {"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEquals": "y", "Next": "B"}], "Default": "Out"}, "B": {"Type": "Fail", "Error": "B"}`, input: `{"a":5}`, want: `{"a":5}`},
		"choice without default":   {states: `"A": {"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEquals": "y", "Next": "Out"}]}`, input: `{"a":"x"}`, wantError: "States.NoChoiceMatched"},
		"choice of nothing":        {states: `"A": {"Type": "Choice", "Choices": [{"Variable": "$.b", "StringEquals": "y", "Next": "Out"}], "Default": "Out"}`, input: `{"a":"x"}`, wantError: "States.Runtime"},
		"choice of what is absent": {states: `"A": {"Type": "Choice", "Choices": [{"And": [{"Not": {"Variable": "$.b", "IsPresent": true}}, {"Variable": "$.a[0]", "IsPresent": true}], "Next": "Out"}], "Default": "B"}, "B": {"Type": "Fail", "Error": "B"}`, input: `{"a":["x"]}`, want: `{"a":["x"]}`},
		"null is present":          {states: `"A": {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsPresent": true, "Next": "Out"}], "Default": "B"}, "B": {"Type": "Fail", "Error": "B"}`, input: `{"a":null}`, want: `{"a":null}`},

		"retry by default":             {states: `"A": {"Type": "Task", "Resource": "error", "Retry": [{"ErrorEquals": ["States.ALL"]}], "Next": "Out"}`, input: `{}`, wantError: "errorString", took: 7 * time.Second, transitions: 4},
		"retry with a longest delay":   {states: `"A": {"Type": "Task", "Resource": "error", "Retry": [{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 2, "BackoffRate": 3, "MaxDelaySeconds": 7, "MaxAttempts": 4, "JitterStrategy": "FULL"}], "Next": "Out"}`, input: `{}`, wantError: "errorString", took: 22 * time.Second, transitions: 5},
		"retry of another error":       {states: `"A": {"Type": "Task", "Resource": "fault", "Retry": [{"ErrorEquals": ["X"]}], "Next": "Out"}`, input: `{"Name":"Y"}`, wantError: "Y", transitions: 1},
		"the first retrier counts":     {states: `"A": {"Type": "Task", "Resource": "fault", "Retry": [{"ErrorEquals": ["X"], "MaxAttempts": 1}, {"ErrorEquals": ["States.ALL"], "MaxAttempts": 9}], "Next": "Out"}`, input: `{"Name":"X"}`, wantError: "X", took: time.Second, transitions: 2},
		"no retry":                     {states: `"A": {"Type": "Task", "Resource": "error", "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 0}], "Next": "Out"}`, input: `{}`, wantError: "errorString", transitions: 1},
		"catch":                        {states: `"A": {"Type": "Task", "Resource": "error", "Catch": [{"ErrorEquals": ["X"], "Next": "A"}, {"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "Out"}], "Next": "A"}`, input: `{"a":1}`, want: `{"a":1,"e":{"Cause":"{\"errorMessage\":\"boom\",\"errorType\":\"errorString\"}","Error":"errorString"}}`},
		"catch and drop":               {states: `"A": {"Type": "Task", "Resource": "error", "Catch": [{"ErrorEquals": ["States.TaskFailed"], "ResultPath": null, "Next": "Out"}], "Next": "A"}`, input: `{"a":1}`, want: `{"a":1}`},
		"panic":                        {states: `"A": {"Type": "Task", "Resource": "panic", "Next": "Out"}`, input: `{}`, wantError: "string"},
		"timeout":                      {states: `"A": {"Type": "Task", "Resource": "slow", "TimeoutSeconds": 10, "Catch": [{"ErrorEquals": ["States.Timeout"], "ResultPath": null, "Next": "Out"}], "Next": "A"}`, input: `{"a":1}`, want: `{"a":1}`, took: 10 * time.Second},
		"timeout is no failed task":    {states: `"A": {"Type": "Task", "Resource": "slow", "TimeoutSeconds": 10, "Catch": [{"ErrorEquals": ["States.TaskFailed"], "Next": "Out"}], "Next": "A"}`, input: `{}`, wantError: "States.Timeout", took: 10 * time.Second},
		"too much data is not caught":  {states: `"A": {"Type": "Task", "Resource": "large", "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Out"}], "Next": "A"}`, input: `{}`, wantError: "States.DataLimitExceeded"},
		"token that nobody sends back": {states: `"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": {"FunctionName": "echo", "Payload": {"t.$": "$$.Task.Token"}}, "TimeoutSeconds": 60, "Next": "Out"}`, input: `{}`, wantError: "States.Timeout", took: time.Minute},

		"map":                  {states: `"A": {"Type": "Map", "ItemsPath": "$.l", "ItemSelector": {"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value", "k.$": "$.k"}, "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Task", "Resource": "echo", "End": true}}}, "ResultPath": "$.l", "Next": "Out"}`, input: `{"k":7,"l":["a","b"]}`, want: `{"k":7,"l":[{"i":0,"k":7,"v":"a"},{"i":1,"k":7,"v":"b"}]}`},
		"map of items":         {states: `"A": {"Type": "Map", "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "I", "States": {"I": {"Type": "Pass", "End": true}}}, "Next": "Out"}`, input: `[1,2]`, want: `[1,2]`},
		"map of nothing":       {states: `"A": {"Type": "Map", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": true}}}, "Next": "Out"}`, input: `[]`, want: `[]`, transitions: 2},
		"map of no list":       {states: `"A": {"Type": "Map", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": true}}}, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Out"}], "Next": "Out"}`, input: `5`, wantError: "States.Runtime"},
		"map at most two":      {states: `"A": {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Task", "Resource": "slow", "ResultPath": null, "End": true}}}, "Next": "Out"}`, input: `[1,2,3,4,5]`, want: `[1,2,3,4,5]`, took: 3 * time.Hour},
		"map with one failure": {states: `"A": {"Type": "Map", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Choice", "Choices": [{"Variable": "$.Name", "StringEquals": "slow", "Next": "S"}], "Default": "F"}, "S": {"Type": "Task", "Resource": "slow", "End": true}, "F": {"Type": "Task", "Resource": "fault", "End": true}}}, "Catch": [{"ErrorEquals": ["X"], "ResultPath": null, "Next": "Out"}], "Next": "A"}`, input: `[{"Name":"slow"},{"Name":"X"}]`, want: `[{"Name":"slow"},{"Name":"X"}]`, took: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Hour) // for functions that nobody waits for
				begin := time.Now()
				got, x := output(t, tc.states, tc.input)
				status := "SUCCEEDED"
				if tc.wantError != "" {
					status, tc.want = "FAILED", "nothing"
				}
				if got != tc.want || x.Status != status || x.Error != tc.wantError {
					t.Errorf("%s after %+v; want %s and error %q", got, x, tc.want, tc.wantError)
				}
				if took := x.Ended.Sub(begin); took != tc.took {
					t.Errorf("it took %s; want %s", took, tc.took)
				}
				if tc.transitions > 0 && len(x.Transitions) != tc.transitions {
					t.Errorf("transitions %v; want %d", x.Transitions, tc.transitions)
				}
			})
		})
	}
}

func TestTimeLimitOfAMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := sfntest.New(`{"StartAt": "A", "TimeoutSeconds": 60, "States": {"A": {"Type": "Task", "Resource": "slow", "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "A"}], "End": true}}}`, functions(nil), sfntest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start(t, s)
		if x, err := s.Wait(t.Context(), "x"); err != nil || x.Status != "TIMED_OUT" || x.Error != "States.Timeout" {
			t.Errorf("%+v, %v; want TIMED_OUT", x, err)
		}
	})
}

func start(t *testing.T, s *sfntest.Server) *sfn.Client {
	t.Helper()
	client := sfn.NewFromConfig(s.Config())
	_, err := client.StartExecution(t.Context(), &sfn.StartExecutionInput{
		StateMachineArn: aws.String(sfntest.Machine), Name: aws.String("x"), Input: aws.String("{}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// What the interpreter does not do is refused, never skipped.
func TestRefusedDefinitions(t *testing.T) {
	t.Parallel()
	machine := func(a string) string { return `{"StartAt": "A", "States": {"A": ` + a + `}}` }
	for name, tc := range map[string]struct{ definition, want string }{
		"no JSON":                   {`{`, "unexpected EOF"},
		"placeholder":               {machine(`{"Type": "Task", "Resource": "${X}", "End": true}`), "placeholders"},
		"field of the machine":      {`{"StartAt": "A", "QueryLanguage": "JSONata", "States": {"A": {"Type": "Succeed"}}}`, "QueryLanguage"},
		"field of a state":          {machine(`{"Type": "Task", "Resource": "echo", "OutputPath": "$.x", "End": true}`), "OutputPath"},
		"field of another state":    {machine(`{"Type": "Pass", "Resource": "echo", "End": true}`), "Resource"},
		"field of a retrier":        {machine(`{"Type": "Task", "Resource": "echo", "Retry": [{"ErrorEquals": ["X"], "Jitter": 1}], "End": true}`), "Jitter"},
		"heartbeat":                 {machine(`{"Type": "Task", "Resource": "echo", "HeartbeatSeconds": 5, "End": true}`), "HeartbeatSeconds"},
		"type":                      {machine(`{"Type": "Wait", "Seconds": 5, "End": true}`), `type "Wait"`},
		"distributed map":           {machine(`{"Type": "Map", "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED"}, "StartAt": "I", "States": {"I": {"Type": "Succeed"}}}, "End": true}`), "DISTRIBUTED"},
		"inside of a map":           {machine(`{"Type": "Map", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Wait"}}}, "End": true}`), `type "Wait"`},
		"function":                  {machine(`{"Type": "Task", "Resource": "nobody", "End": true}`), "nobody"},
		"integration":               {machine(`{"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": true}`), "sqs"},
		"function that waits":       {machine(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": {"FunctionName": "nobody", "Payload": {}}, "End": true}`), "nobody"},
		"parameter of one":          {machine(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": {"FunctionName": "echo", "InvocationType": "Event"}, "End": true}`), "InvocationType"},
		"intrinsic function":        {machine(`{"Type": "Task", "Resource": "echo", "Parameters": {"x.$": "States.UUID()"}, "End": true}`), "States.UUID"},
		"path with a filter":        {machine(`{"Type": "Task", "Resource": "echo", "Parameters": {"x.$": "$.a[?(@.b)]"}, "End": true}`), "not known"},
		"list in parameters":        {machine(`{"Type": "Task", "Resource": "echo", "Parameters": {"x": [1]}, "End": true}`), "list"},
		"comparison":                {machine(`{"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": 1, "Next": "A"}]}`), "NumericEquals"},
		"rule with two comparisons": {machine(`{"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEquals": "x", "IsPresent": true, "Next": "A"}]}`), "one test"},
		"rule that leads nowhere":   {machine(`{"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEquals": "x"}]}`), "one test"},
		"state that does not exist": {machine(`{"Type": "Pass", "Next": "B"}`), `"B"`},
		"catcher to no state":       {machine(`{"Type": "Task", "Resource": "echo", "Catch": [{"ErrorEquals": ["X"], "Next": "B"}], "End": true}`), `"B"`},
		"start at no state":         {`{"StartAt": "B", "States": {"A": {"Type": "Succeed"}}}`, `"B"`},
		"neither next nor end":      {machine(`{"Type": "Pass"}`), "Next or End"},
		"both next and end":         {machine(`{"Type": "Pass", "Next": "A", "End": true}`), "Next or End"},
		"all errors beside another": {machine(`{"Type": "Task", "Resource": "echo", "Retry": [{"ErrorEquals": ["States.ALL", "X"]}], "End": true}`), "alone"},
		"all errors not last":       {machine(`{"Type": "Task", "Resource": "echo", "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["X"]}], "End": true}`), "last"},
		"no errors":                 {machine(`{"Type": "Task", "Resource": "echo", "Catch": [{"ErrorEquals": [], "Next": "A"}], "End": true}`), "empty"},
		"jitter":                    {machine(`{"Type": "Task", "Resource": "echo", "Retry": [{"ErrorEquals": ["X"], "JitterStrategy": "SOME"}], "End": true}`), "SOME"},
		"interval":                  {machine(`{"Type": "Task", "Resource": "echo", "Retry": [{"ErrorEquals": ["X"], "IntervalSeconds": 0}], "End": true}`), "bounds"},
		"result to the context":     {machine(`{"Type": "Task", "Resource": "echo", "ResultPath": "$$.x", "End": true}`), "context"},
	} {
		s, err := sfntest.New(tc.definition, functions(nil), sfntest.Options{})
		if err == nil {
			s.Close()
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: refused with %q; want it to say %q", name, err, tc.want)
		}
	}
}

func FuzzDefinition(f *testing.F) {
	f.Add(`{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "echo", "Parameters": {"x.$": "$.a[0]"}, "ResultPath": null, "Retry": [{"ErrorEquals": ["States.ALL"]}], "End": true}}}`)
	f.Add(`{"StartAt": "A", "States": {"A": {"Type": "Map", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Succeed"}}}, "End": true}}}`)
	f.Add(`{"StartAt": "A", "States": {"A": {"Type": "Choice", "Choices": [{"Not": {"Variable": "$.a", "IsPresent": true}, "Next": "A"}], "Default": "A"}}}`)
	f.Fuzz(func(t *testing.T, definition string) {
		s, err := sfntest.New(definition, functions(nil), sfntest.Options{})
		if (s == nil) != (err != nil) {
			t.Fatalf("New = %v, %v", s, err)
		}
		if s != nil {
			s.Close()
		}
	})
}

// The same over the network, with the client of the service.
func TestProtocol(t *testing.T) {
	t.Parallel()
	tokens, release := make(chan string, 1), make(chan struct{})
	s, err := sfntest.New(`{"StartAt": "A", "States": {
		"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": {"FunctionName": "park", "Payload": {"token.$": "$$.Task.Token"}},
			"Catch": [{"ErrorEquals": ["Denied"], "Next": "B"}], "End": true},
		"B": {"Type": "Task", "Resource": "hold", "Next": "C"},
		"C": {"Type": "Fail", "Error": "E", "Cause": "C"}}}`,
		map[string]sfntest.Function{
			"park": sfntest.Handle(func(_ context.Context, in struct{ Token string }) (any, error) { tokens <- in.Token; return nil, nil }),
			"hold": sfntest.Handle(func(context.Context, any) (any, error) { <-release; return nil, nil }),
		}, sfntest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	web := httptest.NewServer(s)
	defer web.Close()
	cfg := s.Config()
	cfg.BaseEndpoint, cfg.HTTPClient = &web.URL, web.Client()
	client, ctx := sfn.NewFromConfig(cfg), t.Context()
	startAs := func(name, input string) (string, error) {
		out, err := client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String(sfntest.Machine), Name: &name, Input: &input})
		if err != nil {
			return "", err
		}
		return *out.ExecutionArn, nil
	}
	fails := func(want string, err error) {
		t.Helper()
		api, ok := errors.AsType[smithy.APIError](err)
		if !ok || api.ErrorCode() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	arn, err := startAs("x", `{"a":1}`)
	if err != nil || arn != "arn:aws:states:us-east-1:000000000000:execution:turns:x" {
		t.Fatalf("started %q, %v", arn, err)
	}
	if again, err := startAs("x", `{"a":1}`); err != nil || again != arn {
		t.Errorf("started again as %q, %v; want %q", again, err, arn)
	}
	_, err = startAs("x", `{"a":2}`)
	fails("ExecutionAlreadyExists", err)
	_, err = startAs("a name", `{}`)
	fails("InvalidName", err)
	_, err = startAs("y", `{`)
	fails("InvalidExecutionInput", err)
	_, err = client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String("arn:aws:states:us-east-1:000000000000:stateMachine:other")})
	fails("StateMachineDoesNotExist", err)
	_, err = client.ListStateMachines(ctx, nil)
	fails("UnknownOperationException", err)
	_, err = client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: aws.String(arn + "x")})
	fails("ExecutionDoesNotExist", err)
	_, err = client.RedriveExecution(ctx, &sfn.RedriveExecutionInput{ExecutionArn: &arn})
	fails("ExecutionNotRedrivable", err)

	token := <-tokens
	_, err = client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{")})
	fails("InvalidOutput", err)
	_, err = client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: aws.String("forged"), Output: aws.String("{}")})
	fails("InvalidToken", err)
	if _, err := client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{TaskToken: &token, Error: aws.String("Denied")}); err != nil {
		t.Error(err)
	}
	_, err = client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")})
	fails("TaskTimedOut", err)

	describe := func() string {
		x, err := client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(x.Status, " ", aws.ToString(x.Error), " ", aws.ToString(x.Cause), " ", *x.Input, " ", aws.ToInt32(x.RedriveCount), " ", x.StopDate != nil)
	}
	if got := describe(); got != `RUNNING   {"a":1} 0 false` {
		t.Errorf("described as %q", got)
	}
	if _, err := client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: &arn, Error: aws.String("S"), Cause: aws.String("T")}); err != nil {
		t.Error(err)
	}
	if got := describe(); got != `ABORTED S T {"a":1} 0 true` {
		t.Errorf("described as %q", got)
	}
	if _, err := client.RedriveExecution(ctx, &sfn.RedriveExecutionInput{ExecutionArn: &arn}); err != nil {
		t.Error(err)
	}
	close(release)
	// stopped may be in A still, or in B: a stop does not wait
	select {
	case token = <-tokens:
		if _, err := client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{TaskToken: &token, Error: aws.String("Denied")}); err != nil {
			t.Error(err)
		}
	case <-wait(ctx, s):
	}
	if x, err := s.Wait(ctx, "x"); err != nil || x.Status != "FAILED" || x.Error != "E" {
		t.Errorf("%+v, %v; want FAILED", x, err)
	}
	if got := describe(); got != `FAILED E C {"a":1} 1 true` {
		t.Errorf("described as %q", got)
	}
	_, err = startAs("x", `{"a":1}`)
	fails("ExecutionAlreadyExists", err)
}

func wait(ctx context.Context, s *sfntest.Server) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Wait(ctx, "x")
	}()
	return done
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	s, err := sfntest.New(`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}`, nil, sfntest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for body, want := range map[string]string{
		`{"name":"x","stateMachineArn":"` + sfntest.Machine + `","input":"{}","traceHeader":"x"}`: "traceHeader",
		`[`: "SerializationException",
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("X-Amz-Target", "AWSStepFunctions.StartExecution")
		s.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s; want it to say %q", body, w.Code, w.Body, want)
		}
	}
	if diff := cmp.Diff(sfntest.Execution{}, s.Execution("x")); diff != "" {
		t.Errorf("an execution that was refused (-want +got):\n%s", diff)
	}
	if _, err := s.Wait(t.Context(), "x"); err == nil {
		t.Error("waited for an execution that does not exist")
	}
}
