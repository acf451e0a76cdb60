package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
)

const page = `
rules:
  - when: {message: "^tool"}
    calls: [{tool: add, args: {a: 2, b: 3}}]
  - when: {toolResult: add}
    text: "five"
  - when: {step: 3}
    error: {kind: throttled, message: "slow down"}
    times: 2
  - text: "ok"
    chunks: ["o", "k"]
    reasoning: "hm"
    delay: 50ms
    chunkDelay: 10ms
    usage: {inputTokens: 10, outputTokens: 2}
`

func load(t testing.TB, script string) *scripted.Model {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s, clock.Fixed{})
}

func user(text string) model.Message { return model.Message{Role: model.User, Text: text} }

func assistant(text string) model.Message { return model.Message{Role: model.Assistant, Text: text} }

func results(tools ...string) model.Message {
	m := model.Message{Role: model.Results}
	for i, tool := range tools {
		m.Results = append(m.Results, model.Result{CallID: fmt.Sprint(i), Name: tool, Output: "12345"})
	}
	return m
}

func request(step int, messages ...model.Message) *model.Request {
	return &model.Request{SessionID: "s", Step: step, Messages: messages}
}

// ask returns the text of the answer, the calls as name(args), or the error.
func ask(t testing.TB, m model.Model, req *model.Request) string {
	t.Helper()
	a, err := model.Collect(model.ProviderScripted, m.Stream(t.Context(), req))
	if err != nil {
		return a.Message.Text + "!" + err.Error()
	}
	out := a.Message.Text
	for _, c := range a.Message.Calls {
		out += fmt.Sprintf(" %s=%s(%s)", c.ID, c.Name, c.Args)
	}
	return strings.TrimSpace(out)
}

func TestTheExampleOfTheDesignEndsWithFive(t *testing.T) {
	t.Parallel()
	m := load(t, page)
	if got, want := ask(t, m, request(1, user("tool please"))), `call_1_0=add({"a":2,"b":3})`; got != want {
		t.Errorf("step 1: got %s, want %s", got, want)
	}
	if got := ask(t, m, request(2, user("tool please"), assistant(""), results("add"))); got != "five" {
		t.Errorf("step 2: got %s, want five", got)
	}
}

func TestRulesAreChosen(t *testing.T) {
	t.Parallel()
	const script = `
rules:
  - {when: {message: "^a$"}, text: alone}
  - {when: {message: "^a$", toolResult: x}, text: with result}
  - {when: {message: "^a$", step: 3}, text: with step}
  - {when: {toolResult: y}, text: result}
  - {when: {step: 4}, text: step}
  - {when: {message: "^b", toolResult: z, step: 9}, text: all three}
`
	m := load(t, script)
	tests := map[string]struct {
		req  *model.Request
		want string
	}{
		"message alone, newest":                   {request(1, user("b"), user("a")), "alone"},
		"message alone, results follow":           {request(2, user("a"), assistant(""), results("q")), `!invalid: no rule of the script matches step 2 after results of q, newest user message "a": add a rule for it, or a last rule without when`},
		"message and result":                      {request(2, user("a"), assistant(""), results("q", "x")), "with result"},
		"message and step after results":          {request(3, user("a"), assistant(""), results("q")), "with step"},
		"message of an earlier turn is not asked": {request(3, user("a"), assistant(""), user("c")), `!invalid: no rule of the script matches step 3, newest user message "c": add a rule for it, or a last rule without when`},
		"second of two results":                   {request(2, user("n"), assistant(""), results("q", "y")), "result"},
		"results of an earlier step do not count": {request(4, user("n"), assistant(""), results("y"), assistant(""), results("q")), "step"},
		"all conditions are needed":               {request(9, user("bb"), assistant(""), results("z")), "all three"},
		"no messages":                             {request(1), `!invalid: no rule of the script matches step 1, newest user message "": add a rule for it, or a last rule without when`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, m, tc.req); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestFailuresAreToldFromOtherResults(t *testing.T) {
	t.Parallel()
	m := load(t, `
rules:
  - {when: {message: b, toolFailed: x}, text: failed and b}
  - {when: {toolFailed: x}, text: failed}
  - {when: {toolResult: x}, text: result}
  - {text: other}
`)
	failed := results("q", "x")
	failed.Results[1].IsError = true
	another := results("x", "q")
	another.Results[1].IsError = true
	for want, req := range map[string]*model.Request{
		"failed":       request(2, user("a"), assistant(""), failed),
		"failed and b": request(2, user("b"), assistant(""), failed),
		"result":       request(2, user("a"), assistant(""), another),
		"other":        request(3, user("b"), assistant(""), failed, assistant(""), results("q")),
	} {
		if got := ask(t, m, req); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestARuleWithTimesAppliesThatOftenPerSession(t *testing.T) {
	t.Parallel()
	m := load(t, "rules:\n  - {text: x, times: 2}\n  - {text: y, times: 1}\n  - {text: z}\n")
	for session := range 2 {
		got := ""
		for range 5 {
			got += ask(t, m, &model.Request{SessionID: fmt.Sprint(session), Messages: []model.Message{user("hi")}})
		}
		if got != "xxyzz" {
			t.Errorf("session %d: got %s, want xxyzz", session, got)
		}
	}
}

func TestUsesOfForgottenSessionsCountAnew(t *testing.T) {
	t.Parallel()
	m := load(t, "rules:\n  - {text: x, times: 1}\n  - {text: z}\n")
	turn := func(session int) string {
		return ask(t, m, &model.Request{SessionID: fmt.Sprint(session), Messages: []model.Message{user("hi")}})
	}
	for i := range 10_000 {
		turn(i)
	}
	if got := turn(0); got != "z" {
		t.Errorf("the session used last 10,000 sessions ago answers %s, want z", got)
	}
	turn(10_000) // forgets session 1, not 0, which was used a moment ago
	if got := turn(0) + turn(1); got != "zx" {
		t.Errorf("got %s, want zx", got)
	}
}

func TestDeltasOfAnAnswer(t *testing.T) {
	t.Parallel()
	m := load(t, `
rules:
  - chunks: ["a", !!binary "5L0=", !!binary oA==, "\x41"]
    reasoning: hm
    calls: [{tool: add, rawArgs: '{"a":'}, {tool: now}, {tool: one, args: {}}]
`)
	var got []model.Delta
	for d, err := range m.Stream(t.Context(), request(7, user("x"))) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	want := []model.Delta{
		{Reasoning: "hm"},
		{Text: "a"},
		{Text: "\xe4\xbd"},
		{Text: "\xa0"},
		{Text: "A"},
		{Call: &model.CallDelta{Index: 0, ID: "call_7_0", Name: "add", Args: `{"a":`}},
		{Call: &model.CallDelta{Index: 1, ID: "call_7_1", Name: "now"}},
		{Call: &model.CallDelta{Index: 2, ID: "call_7_2", Name: "one", Args: `{}`}},
		{Finish: model.FinishToolCalls, Usage: &model.Usage{InputTokens: 1, OutputTokens: 6}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

func TestUsageIsTheGivenOneOrAnEstimate(t *testing.T) {
	t.Parallel()
	m := load(t, "rules:\n  - {when: {step: 1}, text: '123456789'}\n  - {text: x, usage: {inputTokens: 7, cacheReadTokens: 5}}\n")
	req := &model.Request{Instructions: "1234", Step: 1, Messages: []model.Message{user("ignored"), results("a", "b")}}
	a, err := model.Collect("", m.Stream(t.Context(), req))
	if want := (model.Usage{InputTokens: 4, OutputTokens: 3}); err != nil || a.Usage != want {
		t.Errorf("estimate: got %+v, %v, want %+v", a.Usage, err, want)
	}
	req.Step = 2
	a, err = model.Collect("", m.Stream(t.Context(), req))
	if want := (model.Usage{InputTokens: 7, CacheReadTokens: 5}); err != nil || a.Usage != want {
		t.Errorf("given: got %+v, %v, want %+v", a.Usage, err, want)
	}
}

func TestErrorsComeAsModelErrors(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.Kind{
		model.Throttled, model.Overloaded, model.Unavailable, model.Invalid, model.ContextLength, model.Denied,
	} {
		m := load(t, fmt.Sprintf("rules:\n  - {text: half, error: {kind: %s, message: why}}\n", kind))
		a, err := model.Collect("", m.Stream(t.Context(), request(1, user("x"))))
		if model.KindOf(err) != kind || a.Message.Text != "half" || !strings.HasSuffix(err.Error(), "why") {
			t.Errorf("%s: got %+v, %v", kind, a, err)
		}
	}
	m := load(t, "rules:\n  - error: {kind: throttled, retryAfter: 3s}\n")
	_, err := model.Collect("", m.Stream(t.Context(), request(1, user("x"))))
	var fault *model.Error
	if !errors.As(err, &fault) || fault.RetryAfter != 3*time.Second {
		t.Errorf("got %v, want to be told to wait 3s", err)
	}
}

func TestDelaysAreWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := scripted.Parse([]byte("rules:\n  - {chunks: [a, b, c], reasoning: r, delay: 50ms, chunkDelay: 10ms}\n"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var got []string
		for d := range scripted.New(s, clock.System{}).Stream(t.Context(), request(1, user("x"))) {
			got = append(got, fmt.Sprint(d.Reasoning+d.Text+string(d.Finish), time.Since(start).Milliseconds()))
		}
		want := []string{"r 50", "a 50", "b 60", "c 70", "stop 70"}
		for i := range want {
			want[i] = strings.Replace(want[i], " ", "", 1)
			got[i] = strings.ReplaceAll(got[i], " ", "")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pieces and times (-want +got):\n%s", diff)
		}
	})
}

func TestADelayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"rules:\n  - {text: x, delay: 1h}\n",
		"rules:\n  - {chunks: [x, y], chunkDelay: 1h}\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := scripted.Parse([]byte(script))
			if err != nil {
				t.Fatal(err)
			}
			cause := errors.New("stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			start := time.Now()
			_, err = model.Collect("", scripted.New(s, clock.System{}).Stream(ctx, request(1, user("x"))))
			if !errors.Is(err, cause) || time.Since(start) != time.Second {
				t.Errorf("got %v after %v, want the cause after 1s", err, time.Since(start))
			}
		})
	}
}

func TestAnEndedContextGetsNoAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := model.Collect("", load(t, "rules: [{text: x}]").Stream(ctx, request(1, user("x"))))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestTheConsumerMayBreakOffAtEveryDelta(t *testing.T) {
	t.Parallel()
	m := load(t, "rules: [{chunks: [a, b], reasoning: r, calls: [{tool: t}]}]")
	for most := 1; most <= 5; most++ {
		n := 0
		for range m.Stream(t.Context(), request(1, user("x"))) {
			if n++; n == most {
				break
			}
		}
		if n != most {
			t.Errorf("got %d deltas, want %d", n, most)
		}
	}
}

func TestNamesOfToolsAreFound(t *testing.T) {
	t.Parallel()
	s, err := scripted.Parse([]byte(`rules:
  - when: {toolResult: add, toolFailed: sub}
    calls: [{tool: add}, {args: {}, tool: mul}]
  - text: ok
  - calls:
      - tool: add
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []scripted.Name{
		{Tool: "add", Line: 2, Column: 24},
		{Tool: "sub", Line: 2, Column: 41},
		{Tool: "add", Line: 3, Column: 20, InCall: true},
		{Tool: "mul", Line: 3, Column: 43, InCall: true},
		{Tool: "add", Line: 6, Column: 15, InCall: true},
	}
	if diff := cmp.Diff(want, s.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestMistakesAreAllNamedWithTheirPlaceAndRemedy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ script, want string }{
		"unknown field": {
			"rules:\n  - txt: x\n",
			"2:5: unknown field \"txt\": remove it or mend its spelling; a rule has when {message, toolResult, toolFailed, step}, times, text, chunks, reasoning, calls [{tool, args, rawArgs}], error {kind, message, retryAfter}, delay, chunkDelay, usage",
		},
		"broken YAML":    {"rules:\n  - text: [\n", "2:11: sequence end token ']' not found: mend the YAML here"},
		"key twice":      {"rules:\n  - text: x\n    text: y\n", "3:5: mapping key \"text\" already defined at [2:5]: mend the YAML here"},
		"empty file":     {"", "1:1: rules: there are no rules: add at least one, for example - text: ok"},
		"two documents":  {"rules: [{text: x}]\n---\nrules: [{text: y}]\n", "1:8: rules: the file holds several YAML documents: keep one, without a second ---"},
		"empty rule":     {"rules:\n  - when: {step: 1}\n", "2:5: rules[0]: answers nothing: give it text, chunks, calls or error"},
		"pieces differ":  {"rules:\n  - {text: ab, chunks: [a]}\n", "2:24: rules[0].chunks: do not add up to text: change one of them, or leave text out"},
		"error, calls":   {"rules:\n  - error: {kind: invalid}\n    calls: [{tool: x}]\n", "2:12: rules[0].error: stands beside calls: an answer that fails has no calls, make two rules of it"},
		"args twice":     {"rules:\n  - calls: [{tool: x, args: {}, rawArgs: ''}]\n", "2:42: rules[0].calls[0].rawArgs: stands beside args: keep one of them"},
		"bad base64":     {"rules:\n  - chunks: [!!binary x]\n", "2:22: !!binary needs base64 with its padding: mend the YAML here"},
		"retryAfter":     {"rules:\n  - error: {kind: denied, retryAfter: 1s}\n", "2:39: rules[0].error.retryAfter: goes with throttled, overloaded and unavailable only: remove it"},
		"infinite":       {"rules:\n  - calls: [{tool: x, args: {a: .inf}}]\n", "2:29: rules[0].calls[0].args: json: unsupported value: +Inf: write it as rawArgs"},
		"negative usage": {"rules:\n  - {text: x, usage: {inputTokens: -1}}\n", "2:22: rules[0].usage: has a negative count: tokens are 0 or more"},
		"several": {
			"rules:\n  - when: {message: '(', step: 0, toolResult: '', toolFailed: ''}\n    times: 0\n    delay: 50\n    calls: [{args: {}}]\n    chunkDelay: -1s\n  - error: {kind: angry}\n",
			"4:12: rules[0].delay: \"50\" is no duration: write a number with its unit, such as 50ms or 2s\n" +
				"6:17: rules[0].chunkDelay: \"-1s\" is no duration: write a number with its unit, such as 50ms or 2s\n" +
				"2:21: rules[0].when.message: error parsing regexp: missing closing ): `(`: mend the pattern, in the syntax of Go's package regexp\n" +
				"2:47: rules[0].when.toolResult: is empty: name the tool\n" +
				"2:63: rules[0].when.toolFailed: is empty: name the tool\n" +
				"2:32: rules[0].when.step: must be at least 1: the first model call of a turn is 1\n" +
				"3:12: rules[0].times: must be at least 1: remove the rule instead\n" +
				"5:13: rules[0].calls[0]: names no tool: add tool\n" +
				"7:19: rules[1].error.kind: \"angry\" is no kind: use throttled, overloaded, unavailable, invalid, context_length or denied",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scripted.Parse([]byte(tc.script))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if _, err := scripted.Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if err := os.WriteFile(path, []byte("rules: 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scripted.Load(path); err == nil || !strings.Contains(err.Error(), path+": 1:8: ") {
		t.Errorf("got %v, want the path and the place", err)
	}
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scripted.Load(path); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(page))
	f.Add([]byte("rules: [{chunks: [!!binary 8J8=, ~, 1]}]"))
	f.Add([]byte("rules: &a [*a]"))
	f.Add([]byte("rules:\n - <<: *x\n"))
	f.Add([]byte("rules: [{calls: [{tool: x, args: &a {b: *a}}]}]"))
	f.Add([]byte("rules: [{calls: [{tool: x, args: {a: {1: [.nan]}}}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scripted.Parse(data)
		if err != nil {
			if !strings.Contains(err.Error(), ":") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		stream := scripted.New(s, clock.Fixed{}).Stream(t.Context(), request(1, user("x")))
		a, err := model.Collect("", stream)
		if err != nil && model.KindOf(err) == "" {
			t.Errorf("not a model error: %v", err)
		}
		if err == nil && len(a.Message.Calls) > 0 != (a.Finish == model.FinishToolCalls) {
			t.Errorf("finish %s with %d calls", a.Finish, len(a.Message.Calls))
		}
	})
}

func BenchmarkStreamAfterALongHistory(b *testing.B) {
	m := load(b, page)
	messages := make([]model.Message, 0, 2801)
	for range 1400 {
		messages = append(messages, user("hi"), assistant("ok"))
	}
	req := request(1, append(messages, user("hi"))...)
	req.Tools = []model.Tool{{Name: "add", InputSchema: json.RawMessage(`{}`)}}
	b.ReportAllocs()
	for b.Loop() {
		for range m.Stream(b.Context(), req) {
		}
	}
}
