package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
)

// parking returns an agent with a session of ann in which two calls wait, the second also for bob, and the path of its approvals.
func parking(t *testing.T) (c client, path string) {
	t.Helper()
	agent := newAgent("demo")
	acc, _ := agent.begin(t, "ann", session.Chat)
	until := time.Date(2026, 3, 11, 13, 0, 0, 0, time.FixedZone("", 3600))
	agent.waiting = []parked{
		{engine.Approval{CallID: "call_1", ToolName: "promote", Args: json.RawMessage(`{"n": 1.0}`), ExpiresAt: until}, acc.SessionID, ""},
		{engine.Approval{CallID: "a/b c", ToolName: "publish", Args: json.RawMessage(`{}`), ParentCallID: "call_0", ExpiresAt: until}, acc.SessionID, "bob"},
	}
	return newClient(t, httpapi.Options{}, agent), "/demo/v1/session/" + acc.SessionID + "/approvals"
}

func TestApprovalsAreListed(t *testing.T) {
	t.Parallel()
	c, path := parking(t)
	one := `{"callId":"call_1","toolName":"promote","args":{"n":1.0},"expiresAt":"2026-03-11T12:00:00Z"}`
	two := `{"callId":"a/b c","toolName":"publish","args":{},"parentCallId":"call_0","expiresAt":"2026-03-11T12:00:00Z"}`
	for caller, want := range map[string]string{"ann": one + "," + two, "bob": two} {
		if diff := cmp.Diff(`{"ok":true,"approvals":[`+want+"]}\n", c.do("GET", path, "", "X-Caller", caller).raw); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", caller, diff)
		}
	}
	refused(t, c.do("GET", path, "", "X-Caller", "eve"), 403, "forbidden")
	refused(t, c.do("GET", path+"?all=1", ""), 400, "invalid_request")
	c.do("POST", path+"/call_1", `{"decision":"approve"}`)
	c.do("POST", path+"/a%2Fb%20c", `{"decision":"deny"}`)
	if a := c.do("GET", path, ""); a.raw != `{"ok":true,"approvals":[]}`+"\n" {
		t.Errorf("when all is decided: got %s", a.raw)
	}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	c, path := parking(t)
	decide := func(call, decision, caller string) answer {
		return c.do("POST", path+"/"+call, `{"decision":"`+decision+`","note":"by `+caller+`"}`, "X-Caller", caller)
	}
	refused(t, decide("call_9", "approve", "ann"), 404, "not_found")
	refused(t, decide("call_1", "approve", "bob"), 403, "forbidden")
	refused(t, decide("a%2Fb%20c", "approve", "eve"), 403, "forbidden")
	for _, step := range []struct{ call, decision, caller, want string }{
		{"call_1", "approve", "ann", `{"ok":true,"callId":"call_1","decision":"approve","by":"ann","note":"by ann","repeated":false}`},
		{"call_1", "approve", "ann", `{"ok":true,"callId":"call_1","decision":"approve","by":"ann","note":"by ann","repeated":true}`},
		{"a%2Fb%20c", "deny", "bob", `{"ok":true,"callId":"a/b c","decision":"deny","by":"bob","note":"by bob","repeated":false}`},
		{"a%2Fb%20c", "deny", "ann", `{"ok":true,"callId":"a/b c","decision":"deny","by":"bob","note":"by bob","repeated":true}`},
	} {
		a := decide(step.call, step.decision, step.caller)
		if diff := cmp.Diff(step.want+"\n", a.raw); a.status != 200 || diff != "" {
			t.Errorf("%s by %s: got %d (-want +got):\n%s", step.call, step.caller, a.status, diff)
		}
	}
	refused(t, decide("call_1", "deny", "ann"), 409, "already_decided")
	refused(t, decide("a%2Fb%20c", "approve", "bob"), 409, "already_decided")
}

// TestOneOfManyDecisionsIsTheFirst: of the same decision many times at once one is the first, and all are answered alike.
func TestOneOfManyDecisionsIsTheFirst(t *testing.T) {
	t.Parallel()
	c, path := parking(t)
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			a := c.do("POST", path+"/call_1", `{"decision":"approve"}`)
			mu.Lock()
			defer mu.Unlock()
			got[fmt.Sprint(a.status, a.body["repeated"])]++
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"200 false": 1, "200 true": 49}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecisionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c, path := parking(t)
	for name, body := range map[string]string{
		"none": "", "nothing": `{}`, "null": `{"decision":null}`, "a boolean": `{"decision":true}`, "another word": `{"decision":"approved"}`, "upper case": `{"decision":"Approve"}`,
		"an unknown field": `{"decision":"approve","reason":"x"}`, "somebody else": `{"decision":"approve","by":"bob"}`, "another call": `{"decision":"approve","callId":"a/b c"}`,
		"twice": `{"decision":"approve","decision":"deny"}`, "a note that is no text": `{"decision":"deny","note":7}`, "a note of null": `{"decision":"deny","note":null}`,
		"NUL": `{"decision":"deny","note":"a\u0000"}`, "an array": `["approve"]`, "a key in other case": `{"Decision":"approve"}`,
	} {
		if a := c.do("POST", path+"/call_1", body); a.status != 400 || a.text("error") != "invalid_request" {
			t.Errorf("%s: got %d %s", name, a.status, a.raw)
		}
	}
	for _, id := range []string{strings.Repeat("a", 257), "%00", "%1b"} {
		refused(t, c.do("POST", path+"/"+id, `{"decision":"approve"}`), 404, "not_found")
	}
	refused(t, c.do("POST", path+"/call_1?x=1", `{"decision":"approve"}`), 400, "invalid_request")
	refused(t, c.do("POST", path+"/call_1", `{"decision":"deny","note":"`+strings.Repeat("ü", 2<<10)+`."}`), 413, "payload_too_large")
	if a := c.do("POST", path+"/call_1", `{"decision":"deny","note":"`+strings.Repeat("ü", 2<<10)+`"}`); a.status != 200 || a.body["repeated"] != false {
		t.Errorf("a note of 4 KiB: got %d %s", a.status, a.raw)
	}
}
