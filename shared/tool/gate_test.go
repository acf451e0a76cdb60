package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/tool"
)

// counts makes a tool that counts its runs.
func (c *counted) counts(name string, spec bdk.ToolSpec) bdk.NamedTool {
	return named(name, spec, func(context.Context, input) (any, error) { return c.runs.Add(1), nil })
}

var asOf = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// What a call is refused for, or a dry run answers, comes before a person is asked.
func TestGate(t *testing.T) {
	t.Parallel()
	var c counted
	always := bdk.ToolSpec{NeedsApproval: bdk.Always}
	sometimes := bdk.ToolSpec{NeedsApproval: bdk.ApproveWhen(func(in input) bool {
		if in.A < 0 {
			panic("no idea")
		}
		return in.A > 9
	})}
	gatedRead := bdk.ToolSpec{NeedsApproval: bdk.Always, Effect: bdk.Read, TimeArgs: []string{"b"}}
	script := bdk.NamedTool{Name: "script", Tool: bdk.DefineScript[input](bdk.ToolSpec{Description: "d", NeedsApproval: bdk.Always}, "#!/bin/sh")}
	tools := []bdk.NamedTool{
		c.counts("free", bdk.ToolSpec{}), c.counts("always", always), c.counts("sometimes", sometimes), c.counts("read", gatedRead), script,
	}
	s, err := tool.NewSet(tools, tool.Options{Claims: kv.New(broken{memkv.New()}, kv.Options{}), Scripts: &runner{}})
	if err != nil {
		t.Fatal(err)
	}
	live, dry, frozen := bdk.SessionInfo{}, bdk.SessionInfo{DryRun: true}, bdk.SessionInfo{AsOf: asOf}
	stub := "Operation acknowledged. (stubbed: true)"
	for name, test := range map[string]struct {
		session    bdk.SessionInfo
		tool, args string
		ask        bool
		done       string // what the outcome says; "": there is none
	}{
		"no approval":                          {live, "free", `{"a":1}`, false, ""},
		"always":                               {live, "always", `{"a":1}`, true, ""},
		"depends: no":                          {live, "sometimes", `{"a":9}`, false, ""},
		"depends: yes":                         {live, "sometimes", `{"a":10}`, true, ""},
		"depends: a panic":                     {live, "sometimes", `{"a":-1}`, true, ""},
		"a script":                             {live, "script", `{"a":1}`, true, ""},
		"no such tool":                         {live, "sum", `{}`, false, "there is no tool"},
		"refused input":                        {live, "always", `{"a":"1"}`, false, "a: must be an integer"},
		"a dry run of a write":                 {dry, "always", `{"a":1}`, false, stub},
		"a dry run of a script":                {dry, "script", `{"a":1}`, false, stub},
		"a dry run of a read":                  {dry, "read", `{"a":1}`, true, ""},
		"a dry run of a refused input":         {dry, "always", `{}`, false, "a: required"},
		"a frozen session":                     {frozen, "read", `{"a":1,"b":"2026-01-02T15:04:05Z"}`, true, ""},
		"a frozen session, a time that is not": {frozen, "read", `{"a":1,"b":"now"}`, false, `"b" is "now", which is no such time`},
	} {
		call := &bdk.Call{ID: "1", Session: test.session, Workspace: &files{}}
		ask, done := s.Gate(call, test.tool, json.RawMessage(test.args))
		if ask != test.ask || (done != nil) != (test.done != "") {
			t.Errorf("%s: asks %t with the outcome %+v", name, ask, done)
		}
		if done == nil {
			continue
		}
		if got := fmt.Sprintf("%s (stubbed: %t)", readText(t, *done), done.Stubbed); !strings.Contains(got, test.done) {
			t.Errorf("%s: outcome %s; want %s", name, got, test.done)
		}
		if d := cmp.Diff(*done, s.Run(t.Context(), call, test.tool, json.RawMessage(test.args), false)); d != "" {
			t.Errorf("%s: Run does not come to the same (-gate +run):\n%s", name, d)
		}
	}
	if c.runs.Load() != 0 {
		t.Errorf("%d tools ran", c.runs.Load())
	}
}

// A call that waits has no effect and leaves no claim; once it is approved it runs, once.
func TestCallDoesNotRunBeforeItsApproval(t *testing.T) {
	t.Parallel()
	var c counted
	claims := memkv.New()
	s := newSet(t, claims, c.counts("pay", bdk.ToolSpec{NeedsApproval: bdk.Always, Approvers: []string{"bearer:ops"}, ApprovalTimeout: time.Hour}), c.tool("free", nil))
	call, args := &bdk.Call{ID: "1"}, json.RawMessage(`{"a":1}`)
	for range 3 { // each time the turn is looked at
		if ask, done := s.Gate(call, "pay", args); !ask || done != nil {
			t.Errorf("Gate = %t, %+v; want to ask", ask, done)
		}
	}
	if list, err := claims.List(t.Context(), "", "", 10, time.Now()); c.runs.Load() != 0 || len(list) != 0 || err != nil {
		t.Errorf("%d runs and the claims %v, %v before the approval; want none", c.runs.Load(), list, err)
	}
	if out := s.Run(t.Context(), call, "pay", args, true); out.IsError || c.runs.Load() != 1 {
		t.Errorf("approved: %+v, %d runs", out, c.runs.Load())
	}
	wantFault(t, s.Run(t.Context(), call, "pay", args, true), "outcome unknown")
	got := []any{s.Approvers("pay"), s.ApprovalTimeout("pay"), s.Approvers("free"), s.ApprovalTimeout("free"), s.Approvers("none"), s.ApprovalTimeout("none")}
	want := []any{[]string{"bearer:ops"}, time.Hour, []string{bdk.SessionOwner}, 7 * 24 * time.Hour, []string(nil), time.Duration(0)}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Arguments that are malformed in whatever way never reach a tool, and the model reads why.
func TestMalformedArgumentsRunNothing(t *testing.T) {
	t.Parallel()
	var c counted
	raw := named("raw", bdk.ToolSpec{}, func(context.Context, json.RawMessage) (any, error) { return c.runs.Add(1), nil })
	s := newSet(t, memkv.New(), raw, c.counts("typed", bdk.ToolSpec{}))
	for _, args := range []string{
		`{"a":?}`, `{"a":1`, `{"a":1}}`, `[1]`, `"a"`, `null`, `1`, ``, " ", `{"a":1,"a":2}`, `{"a":1e400}`, "{\"a\":\"\xff\"}", `{a:1}`, `{'a':1}`,
		`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, `{"a":1,"b":"` + strings.Repeat("x", 2<<20) + `"}`,
	} {
		for _, name := range []string{"raw", "typed"} {
			ask, done := s.Gate(&bdk.Call{ID: "1"}, name, json.RawMessage(args))
			if ask || done == nil || !done.IsError {
				t.Errorf("%s(%.40s) passes the gate", name, args)
				continue
			}
			wantFault(t, s.Run(t.Context(), &bdk.Call{ID: "1"}, name, json.RawMessage(args), false), "was refused, the tool was not run")
		}
	}
	if c.runs.Load() != 0 {
		t.Errorf("%d tools ran", c.runs.Load())
	}
}

func TestDryRunAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer  func(input) any
		want    string
		isError bool
		says    string // of an answer that cannot be made
	}{
		"text":            {func(input) any { return "would add" }, `"would add"`, false, ""},
		"JSON":            {func(in input) any { return in }, `{"a":1}`, false, ""},
		"parts":           {func(input) any { return bdk.Output{IsError: true} }, `{"content":[]}`, true, ""},
		"a panic":         {func(input) any { panic("boom") }, "", true, "panicked: boom"},
		"cannot be JSON":  {func(input) any { return func() {} }, "", true, "cannot be encoded"},
		"panics encoding": {func(input) any { return sour{func() ([]byte, error) { panic("very sour") }} }, "", true, "very sour"},
	} {
		var c counted
		s := newSet(t, broken{memkv.New()}, c.counts("add", bdk.ToolSpec{DryRunResult: bdk.DryRunOf(test.answer)}))
		out := s.Run(t.Context(), &bdk.Call{ID: "1", Session: bdk.SessionInfo{DryRun: true}}, "add", json.RawMessage(`{"a":1}`), false)
		switch {
		case c.runs.Load() != 0:
			t.Errorf("%s: the tool ran", name)
		case test.says != "":
			wantFault(t, out, test.says, "not run")
		case !out.Stubbed || out.IsError != test.isError || !strings.HasPrefix(string(out.Output), strings.TrimSuffix(test.want, "}")):
			t.Errorf("%s: outcome = %+v; want %s", name, out, test.want)
		}
	}
}

func TestTimeArgumentsOfAFrozenSession(t *testing.T) {
	t.Parallel()
	spec := bdk.ToolSpec{Effect: bdk.Read, TimeArgs: []string{"since", "until"}}
	run := func(context.Context, json.RawMessage) (any, error) { return "ran", nil }
	typed := func(context.Context, struct {
		Since time.Time  `json:"since"`
		Until *time.Time `json:"until"`
	},
	) (any, error) {
		return "ran", nil
	}
	s := newSet(t, memkv.New(), named("raw", spec, run), named("typed", spec, typed))
	const since = `"since":"2026-01-01T00:00:00Z"`
	send := func(name string) string {
		return fmt.Sprintf(`send %q as an absolute time with a zone, such as 2026-01-02T14:04:05Z, no later than 2026-01-02T15:04:05Z`, name)
	}
	for name, test := range map[string]struct {
		tool, args string
		want       string // "": it runs
	}{
		"bounded":                {"raw", `{` + since + `,"until":"2026-01-02T15:04:05Z"}`, ""},
		"another zone":           {"raw", `{` + since + `,"until":"2026-01-02T16:04:05+01:00"}`, ""},
		"fractions":              {"raw", `{` + since + `,"until":"2026-01-02T15:04:04.999999999Z"}`, ""},
		"typed":                  {"typed", `{` + since + `,"until":"2026-01-02T15:04:05Z"}`, ""},
		"a moment later":         {"raw", `{` + since + `,"until":"2026-01-02T15:04:05.000000001Z"}`, `"until" is 2026-01-02T15:04:05.000000001Z, which is later: ` + send("until")},
		"later in another zone":  {"raw", `{` + since + `,"until":"2026-01-02T15:04:05-01:00"}`, `"until" is 2026-01-02T15:04:05-01:00, which is later: ` + send("until")},
		"missing":                {"raw", `{` + since + `}`, `"until" is missing: ` + send("until")},
		"optional but missing":   {"typed", `{` + since + `}`, `"until" is missing: ` + send("until")},
		"null":                   {"typed", `{` + since + `,"until":null}`, `"until" is null, which is no such time: ` + send("until")},
		"relative":               {"raw", `{` + since + `,"until":"now-1h"}`, `"until" is "now-1h", which is no such time: ` + send("until")},
		"no zone":                {"raw", `{` + since + `,"until":"2026-01-01T00:00:00"}`, `"until" is "2026-01-01T00:00:00", which is no such time: ` + send("until")},
		"a day":                  {"raw", `{` + since + `,"until":"2026-01-01"}`, `"until" is "2026-01-01", which is no such time: ` + send("until")},
		"a space":                {"raw", `{` + since + `,"until":"2026-01-01 00:00:00Z"}`, `"until" is "2026-01-01 00:00:00Z", which is no such time: ` + send("until")},
		"no such day":            {"raw", `{` + since + `,"until":"2025-02-30T00:00:00Z"}`, `"until" is "2025-02-30T00:00:00Z", which is no such time: ` + send("until")},
		"seconds":                {"raw", `{` + since + `,"until":1767366245}`, `"until" is 1767366245, which is no such time: ` + send("until")},
		"a list":                 {"raw", `{` + since + `,"until":["2026-01-01T00:00:00Z"]}`, `"until" is ["2026-01-01T00:00:00Z"], which is no such time: ` + send("until")},
		"another case beside it": {"raw", `{` + since + `,"until":"2026-01-02T15:04:05Z","UNTIL":"2027-01-01T00:00:00Z"}`, `"UNTIL" is not how the argument is written: ` + send("until")},
		"both":                   {"raw", `{"since":"yesterday"}`, `"since" is "yesterday", which is no such time: ` + send("since") + "\n" + `"until" is missing: ` + send("until")},
	} {
		args := json.RawMessage(test.args)
		out := s.Run(t.Context(), &bdk.Call{ID: "1", Session: bdk.SessionInfo{AsOf: asOf}}, test.tool, args, false)
		want := "ran"
		if test.want != "" {
			want = "the input of " + test.tool + " was refused, the tool was not run: this session sees the world as of 2026-01-02T15:04:05Z\n" + test.want
		}
		if d := cmp.Diff(want, readText(t, out)); d != "" || out.IsError != (test.want != "") {
			t.Errorf("%s: error %t (-want +got):\n%s", name, out.IsError, d)
		}
		// Other sessions ignore the declaration.
		if out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "raw", args, false); out.IsError {
			t.Errorf("%s, not frozen: %s", name, out.Output)
		}
	}
}

func TestTimeArgumentsAreInTheSchema(t *testing.T) {
	t.Parallel()
	given := func(schema string) bdk.NamedTool {
		spec := bdk.ToolSpec{TimeArgs: []string{"b"}, InputSchema: json.RawMessage(schema)}
		return named("given", spec, func(context.Context, json.RawMessage) (any, error) { return nil, nil })
	}
	for name, test := range map[string]struct {
		tool bdk.NamedTool
		want string // "": nothing is wrong
	}{
		"none":                   {(&counted{}).counts("t", bdk.ToolSpec{}), ""},
		"inferred":               {(&counted{}).counts("t", bdk.ToolSpec{TimeArgs: []string{"a", "b"}}), ""},
		"inferred, misspelt":     {(&counted{}).counts("t", bdk.ToolSpec{TimeArgs: []string{"b", "B", "c"}}), `the TimeArgs of t (t.go) name "B", which its input schema does not have; the TimeArgs of t (t.go) name "c", which its input schema does not have`},
		"given":                  {given(`{"type":"object","properties":{"b":{"type":"string"}}}`), ""},
		"given, deeper only":     {given(`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}}}`), `name "b"`},
		"given in parts":         {given(`{"type":"object","allOf":[{"properties":{"a":{}}},{"anyOf":[{"properties":{"b":{}}}]}]}`), ""},
		"given by reference":     {given(`{"type":"object","allOf":[{"$ref":"#/$defs/a~1b"}],"$defs":{"a/b":{"properties":{"b":{}}}}}`), ""},
		"a reference to nothing": {given(`{"type":"object","allOf":[{"properties":{"a":{}}}],"$defs":{"x":{"properties":{"b":{}}}}}`), `name "b"`},
		"no schema":              {named("raw", bdk.ToolSpec{TimeArgs: []string{"b"}}, func(context.Context, json.RawMessage) (any, error) { return nil, nil }), `the TimeArgs of raw (raw.go) name "b"`},
	} {
		err := newSet(t, memkv.New(), test.tool).CheckTimeArgs()
		if (err == nil) != (test.want == "") {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && (bdkerr.CodeOf(err) != bdkerr.InvalidRequest || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %q of code %s; want it to say %s", name, err, bdkerr.CodeOf(err), test.want)
		}
	}
}

// An idempotent write that was cut off runs again like a read, and like one not for ever. It is claimed by nobody.
func TestIdempotentWriteThatIsCutOffRunsAgain(t *testing.T) {
	t.Parallel()
	c, claims := &counted{}, memkv.New()
	for life := range 5 {
		s := newSet(t, claims, c.counts("pay", bdk.ToolSpec{Idempotent: true}))
		out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "pay", json.RawMessage(`{"a":1}`), life > 0)
		if gaveUp := life > 2; out.IsError != gaveUp {
			t.Errorf("life %d: %s", life+1, out.Output)
		}
	}
	if n := c.runs.Load(); n != 3 {
		t.Errorf("it ran %d times; want 3", n)
	}
}

// Calls of a tool with a MaxParallel wait for each other, over all sessions; their time begins when they run.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		work := func(context.Context, input) (any, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Minute)
			now.Add(-1)
			return "done", nil
		}
		spec := bdk.ToolSpec{MaxParallel: 2, Timeout: 90 * time.Second}
		s := newSet(t, memkv.New(), named("build", spec, work), reads("free", 0, func(context.Context) (any, error) { return 1, nil }))
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				out := s.Run(t.Context(), &bdk.Call{ID: fmt.Sprint(i)}, "build", json.RawMessage(`{"a":1}`), false)
				if out.IsError {
					t.Errorf("call %d: %s", i, out.Output)
				}
			})
		}
		synctest.Wait()
		if out := s.Run(t.Context(), &bdk.Call{ID: "x"}, "free", json.RawMessage(`{}`), false); out.IsError || time.Since(begin) != 0 {
			t.Errorf("another tool waits too: %+v", out)
		}
		wg.Wait()
		if took := time.Since(begin); took != 3*time.Minute || most.Load() != 2 {
			t.Errorf("6 calls of a minute took %s, %d at once; want 3m, 2 at once", took, most.Load())
		}
	})
}

// A call whose turn ends while it waits was not run, and is not claimed. One that ignores its end keeps others out until it returns.
func TestEndOfTheTurnWhileACallWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		s := newSet(t, memkv.New(), named("deaf", bdk.ToolSpec{MaxParallel: 1, Timeout: time.Second}, func(context.Context, input) (any, error) {
			runs.Add(1)
			time.Sleep(time.Hour)
			return nil, nil
		}))
		run := func(ctx context.Context, id string) tool.Outcome {
			return s.Run(ctx, &bdk.Call{ID: id}, "deaf", json.RawMessage(`{"a":1}`), false)
		}
		begin := time.Now()
		wantFault(t, run(t.Context(), "1"), "unknown")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("stopped by the user"))
		defer cancel()
		wantFault(t, run(ctx, "2"), "not run", "stopped by the user")
		if took := time.Since(begin); runs.Load() != 1 || took != time.Minute+3*time.Second {
			t.Errorf("%d ran after %s; want only the first, and that the second waits no longer than its turn", runs.Load(), took)
		}
		run(t.Context(), "2")
		if took := time.Since(begin); runs.Load() != 2 || took != time.Hour+3*time.Second {
			t.Errorf("the second ran %d times after %s; want once, after the hour of the first", runs.Load()-1, took)
		}
		time.Sleep(time.Hour)
	})
}

// What is refused after it waited makes room for the next.
func TestRefusedCallLeavesItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counted
		s := newSet(t, memkv.New(), c.counts("add", bdk.ToolSpec{MaxParallel: 1}))
		for i := range 3 {
			if out := s.Run(t.Context(), &bdk.Call{ID: "same"}, "add", json.RawMessage(`{"a":1}`), false); out.IsError != (i > 0) {
				t.Errorf("call %d: %s", i, out.Output)
			}
		}
		if out := s.Run(t.Context(), &bdk.Call{ID: "other"}, "add", json.RawMessage(`{"a":1}`), false); out.IsError {
			t.Error(string(out.Output))
		}
	})
}

// All that a set shares between calls is safe to share: run it with the race detector.
func TestParallelCallsOfAllKinds(t *testing.T) {
	t.Parallel()
	var c counted
	r := &runner{result: exec.Result{Stdout: []byte("ok\n")}}
	s, err := tool.NewSet([]bdk.NamedTool{
		c.tool("look", bdk.Read), c.tool("add", bdk.Write),
		c.counts("few", bdk.ToolSpec{MaxParallel: 3}), c.counts("pay", bdk.ToolSpec{Idempotent: true, NeedsApproval: bdk.Always}),
		{Name: "script", Tool: bdk.DefineScript[input](bdk.ToolSpec{Description: "d"}, "#!/bin/sh")},
	}, tool.Options{Claims: kv.New(memkv.New(), kv.Options{}), Scripts: r})
	if err != nil {
		t.Fatal(err)
	}
	const callers = 32
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for _, name := range []string{"look", "add", "few", "pay", "script"} {
				call := &bdk.Call{ID: fmt.Sprint(name, i), Workspace: &files{}}
				s.Gate(call, name, json.RawMessage(`{"a":1}`))
				if out := s.Run(t.Context(), call, name, json.RawMessage(`{"a":1}`), i%2 == 1); out.IsError {
					t.Errorf("%s: %s", name, out.Output)
				}
				s.Offer()
			}
		})
	}
	wg.Wait()
	if n := c.runs.Load(); n != 4*callers {
		t.Errorf("%d runs; want %d", n, 4*callers)
	}
}
