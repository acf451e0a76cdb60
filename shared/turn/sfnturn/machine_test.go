package sfnturn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/turn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn/sfntest"
)

// Payloads are ids and nothing that grows, whatever the functions answer: the machine cannot mend a state with too much data.
func TestFunctionsAreToldIDsOnly(t *testing.T) {
	t.Parallel()
	step := `{"execution":"` + strings.Replace(sfntest.Machine, ":stateMachine:", ":execution:", 1) + `:t","sessionId":"s","turnId":"t"}`
	for name, tc := range map[string]struct {
		answers []string // of the step function, in order
		want    []string // what the functions are called with
	}{
		"many steps": {
			answers: []string{`{"outcome":"continue","calls":[],"more":"` + strings.Repeat("x", 1000) + `"}`, `{"outcome":"await","calls":["c1"]}`, `{"outcome":"done","calls":[]}`},
			want: []string{
				step, step, `{"callId":"c1","sessionId":"s","token":"token-1","turnId":"t"}`, step,
			},
		},
		"no answer": {
			answers: []string{`null`, `null`},
			want: []string{
				step,
				`{"error":{"Cause":"the step function returned an outcome that the state machine does not know","Error":"UnknownOutcome"},"sessionId":"s","turnId":"t"}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				var tokens []string
				functions := map[string]sfntest.Function{
					stepARN: func(_ context.Context, in json.RawMessage) (any, error) {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, string(in))
						answer := tc.answers[0]
						tc.answers = tc.answers[1:]
						return json.RawMessage(answer), nil
					},
					awaitARN: func(_ context.Context, in json.RawMessage) (any, error) {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, string(in))
						var a sfnturn.AwaitInput
						err := json.Unmarshal(in, &a)
						tokens = append(tokens, a.Token)
						return nil, err
					},
				}
				server, err := sfntest.New(definition(), functions, sfntest.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer server.Close()
				client := sfnturn.NewClient(server.Config())
				if err := sfnturn.New(client, sfntest.Machine, nil).Start(t.Context(), turn.Ref{SessionID: "s", TurnID: "t"}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				mu.Lock()
				waiting := tokens
				mu.Unlock()
				for _, token := range waiting {
					if _, err := client.SendTaskSuccess(t.Context(), &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")}); err != nil {
						t.Error(err)
					}
				}
				if x, err := server.Wait(t.Context(), "t"); err != nil || x.Status != "SUCCEEDED" {
					t.Errorf("%+v, %v; want SUCCEEDED", x, err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What every state machine that runs for long needs, by its definition.
func TestDefinition(t *testing.T) {
	t.Parallel()
	var m map[string]any
	if err := json.Unmarshal([]byte(sfnturn.Definition), &m); err != nil {
		t.Fatal(err)
	}
	if got := m["TimeoutSeconds"]; got != float64(30*24*60*60) {
		t.Errorf("the machine may run for %v s; want 30 days", got)
	}
	kinds := map[string]int{}
	var walk func(where string, v any)
	walk = func(where string, v any) {
		if list, ok := v.([]any); ok {
			for i, inner := range list {
				walk(fmt.Sprintf("%s[%d]", where, i), inner)
			}
		}
		o, _ := v.(map[string]any)
		for name, inner := range o {
			walk(where+"."+name, inner)
		}
		needs := map[string][]string{"Task": {"TimeoutSeconds", "Retry"}, "Choice": {"Default"}}
		kind, _ := o["Type"].(string)
		if o["ErrorEquals"] != nil && o["Next"] == nil {
			kind = "retrier"
			if o["JitterStrategy"] != "FULL" || o["IntervalSeconds"] != 1.0 || o["MaxDelaySeconds"] == nil || o["MaxAttempts"] == nil {
				t.Errorf("%s: %v; want full jitter, a first pause of 1 s, a longest pause and a number of attempts", where, o)
			}
		}
		kinds[kind]++
		for _, field := range needs[kind] {
			if o[field] == nil {
				t.Errorf("%s has no %s", where, field)
			}
		}
		if n, ok := o["MaxConcurrency"].(float64); kind == "Map" && (!ok || n < 1 || n > 40) { // more are not done at once inline
			t.Errorf("%s does %v at once; want at most 40", where, n)
		}
	}
	walk("$", m)
	if kinds["Task"] != 3 || kinds["Choice"] != 1 || kinds["Map"] != 1 || kinds["retrier"] != 5 {
		t.Errorf("looked at %v; want 3 tasks, a choice, a map and 5 retriers", kinds)
	}
}

func definition() string {
	return strings.NewReplacer("${StepFunctionArn}", stepARN, "${AwaitFunctionArn}", awaitARN).Replace(sfnturn.Definition)
}
