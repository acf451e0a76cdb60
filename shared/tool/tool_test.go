package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/tool"
)

type input struct {
	A int    `json:"a"`
	B string `json:"b,omitempty"`
}

// counted is a function of a tool that counts its runs and returns them.
type counted struct{ runs atomic.Int64 }

func (c *counted) tool(name string, effect bdk.Effect) bdk.NamedTool {
	return named(name, bdk.ToolSpec{Effect: effect}, func(context.Context, input) (any, error) { return c.runs.Add(1), nil })
}

func named[In any](name string, spec bdk.ToolSpec, run func(context.Context, In) (any, error)) bdk.NamedTool {
	spec.Description = "Does " + name + "."
	return bdk.NamedTool{Name: name, Source: name + ".go", Tool: bdk.DefineTool(spec,
		func(ctx context.Context, _ *bdk.Call, in In) (any, error) { return run(ctx, in) })}
}

// reads is a tool that runs the given function.
func reads(name string, timeout time.Duration, run func(context.Context) (any, error)) bdk.NamedTool {
	return named(name, bdk.ToolSpec{Effect: bdk.Read, Timeout: timeout}, func(ctx context.Context, _ struct{}) (any, error) { return run(ctx) })
}

func newSet(t testing.TB, claims kv.Driver, tools ...bdk.NamedTool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(tools, tool.Options{Claims: kv.New(claims, kv.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readText returns what an outcome says, which must be a text.
func readText(t testing.TB, out tool.Outcome) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(out.Output, &s); err != nil {
		t.Fatalf("output %.100s is no JSON string: %v", out.Output, err)
	}
	return s
}

func wantFault(t testing.TB, out tool.Outcome, says ...string) {
	t.Helper()
	if !out.IsError || out.Stubbed {
		t.Errorf("outcome = %+v; want an error", out)
	}
	for _, s := range says {
		if got := readText(t, out); !strings.Contains(got, s) {
			t.Errorf("the model reads %.300q; want it to say %q", got, s)
		}
	}
}

func TestUnknownTool(t *testing.T) {
	t.Parallel()
	var c counted
	s := newSet(t, memkv.New(), c.tool("sub", bdk.Read), c.tool("add", bdk.Read))
	for _, name := range []string{"sum", "", "ADD", "add\x00", "add\xff"} {
		wantFault(t, s.Run(t.Context(), &bdk.Call{ID: "1"}, name, json.RawMessage(`{}`), false), "there is no tool", "add, sub")
	}
	wantFault(t, newSet(t, memkv.New()).Run(t.Context(), &bdk.Call{ID: "1"}, "add", json.RawMessage(`{}`), false), "has no tools")
}

// A refused input names what is wrong, runs nothing and claims nothing.
func TestRefusedInput(t *testing.T) {
	t.Parallel()
	var c counted
	s := newSet(t, memkv.New(), c.tool("add", bdk.Write))
	for args, says := range map[string]string{
		`{"a":"x"}`: "a: must be", `{}`: "a: required", `{"a":1,"z":2}`: `"z"`, `[]`: "JSON object", ``: "JSON", `{"a":1`: "JSON",
	} {
		wantFault(t, s.Run(t.Context(), &bdk.Call{ID: "1"}, "add", json.RawMessage(args), false), "add was refused", "not run", says)
	}
	if out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "add", json.RawMessage(`{"a":1}`), false); out.IsError || c.runs.Load() != 1 {
		t.Errorf("outcome = %+v after %d runs; want one run and no claim left by refused inputs", out, c.runs.Load())
	}
}

func TestReadRunsAgainAndWriteDoesNot(t *testing.T) {
	t.Parallel()
	claims, call := memkv.New(), &bdk.Call{ID: "call_1"}
	var read, write counted
	for range 3 {
		// A new set over the same claims is what a new process has.
		s := newSet(t, claims, read.tool("look", bdk.Read), write.tool("add", nil))
		if out := s.Run(t.Context(), call, "look", json.RawMessage(`{"a":1}`), false); out.IsError {
			t.Errorf("look: %s", out.Output)
		}
		s.Run(t.Context(), call, "add", json.RawMessage(`{"a":1}`), false)
	}
	s := newSet(t, claims, write.tool("add", bdk.Write))
	wantFault(t, s.Run(t.Context(), call, "add", json.RawMessage(`{"a":1}`), false), "outcome unknown", "not run again")
	if out := s.Run(t.Context(), &bdk.Call{ID: "call_2"}, "add", json.RawMessage(`{"a":1}`), false); string(out.Output) != "2" {
		t.Errorf("another call: %+v", out)
	}
	if read.runs.Load() != 3 || write.runs.Load() != 2 {
		t.Errorf("read ran %d times, write %d; want 3 and once for each id", read.runs.Load(), write.runs.Load())
	}
}

func TestOneOfManyConcurrentWritesRuns(t *testing.T) {
	t.Parallel()
	var c counted
	claims := memkv.New()
	var unknown atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		s := newSet(t, claims, c.tool("add", bdk.Write))
		wg.Go(func() {
			if out := s.Run(t.Context(), &bdk.Call{ID: "same"}, "add", json.RawMessage(`{"a":1}`), false); out.IsError {
				unknown.Add(1)
			}
		})
	}
	wg.Wait()
	if c.runs.Load() != 1 || unknown.Load() != 49 {
		t.Errorf("ran %d times, %d unknown; want 1 and 49", c.runs.Load(), unknown.Load())
	}
}

// broken is a store that is out of order.
type broken struct{ kv.Driver }

func (broken) Create(context.Context, kv.Entry, time.Time) error { return errors.New("disk full") }

func TestWriteThatCannotBeClaimedDoesNotRun(t *testing.T) {
	t.Parallel()
	var c counted
	s := newSet(t, broken{memkv.New()}, c.tool("add", bdk.Write), c.tool("look", bdk.Read))
	wantFault(t, s.Run(t.Context(), &bdk.Call{ID: "1"}, "add", json.RawMessage(`{"a":1}`), false), "not run", "disk full")
	if out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "look", json.RawMessage(`{"a":1}`), false); out.IsError || c.runs.Load() != 1 {
		t.Errorf("outcome = %+v after %d runs; want that only the read ran", out, c.runs.Load())
	}
}

func TestDryRunStubsWritesOnly(t *testing.T) {
	t.Parallel()
	var c counted
	byInput := bdk.EffectOf(func(in input) bdk.EffectKind {
		if in.B == "peek" {
			return bdk.Read
		}
		return bdk.Write
	})
	s := newSet(t, broken{memkv.New()}, c.tool("add", byInput))
	call := &bdk.Call{ID: "1", Session: bdk.SessionInfo{DryRun: true}}
	want := tool.Outcome{Output: json.RawMessage(`"Operation acknowledged."`), Stubbed: true}
	if d := cmp.Diff(want, s.Run(t.Context(), call, "add", json.RawMessage(`{"a":1}`), false)); d != "" {
		t.Error(d)
	}
	wantFault(t, s.Run(t.Context(), call, "add", json.RawMessage(`{"a":"1"}`), false), "not run")
	if out := s.Run(t.Context(), call, "add", json.RawMessage(`{"a":1,"b":"peek"}`), false); out.Stubbed || string(out.Output) != "1" {
		t.Errorf("a read = %+v; want it run", out)
	}
}

// The effect may depend on the input; a predicate that panics or answers nonsense makes a write.
func TestEffectOfDecides(t *testing.T) {
	t.Parallel()
	effect := bdk.EffectOf(func(in input) bdk.EffectKind {
		if in.B == "panic" {
			panic("no idea")
		}
		return bdk.EffectKind(in.B)
	})
	for b, runs := range map[string]int64{"read": 2, "write": 1, "panic": 1, "nonsense": 1, "": 1} {
		var c counted
		s := newSet(t, memkv.New(), c.tool("add", effect))
		for range 2 {
			s.Run(t.Context(), &bdk.Call{ID: "1"}, "add", json.RawMessage(fmt.Sprintf(`{"a":1,"b":%q}`, b)), false)
		}
		if c.runs.Load() != runs {
			t.Errorf("effect %q ran %d times for one id; want %d", b, c.runs.Load(), runs)
		}
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, memkv.New(),
			reads("obeys", time.Second, func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }),
			reads("saves", time.Second, func(ctx context.Context) (any, error) { <-ctx.Done(); time.Sleep(time.Second); return "half", nil }),
			reads("ignores", time.Second, func(context.Context) (any, error) { time.Sleep(time.Hour); return "late", nil }),
			reads("defaults", 0, func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }),
		)
		defer time.Sleep(time.Hour) // the one that ignores everybody ends, and must not block on its result
		run := func(name string, took time.Duration) tool.Outcome {
			begin := time.Now()
			out := s.Run(t.Context(), &bdk.Call{ID: "1"}, name, json.RawMessage(`{}`), false)
			if got := time.Since(begin); got != took {
				t.Errorf("%s took %s; want %s", name, got, took)
			}
			return out
		}
		wantFault(t, run("obeys", time.Second), "time of 1s", "deadline exceeded")
		wantFault(t, run("ignores", 3*time.Second), "within 1s", "unknown")
		wantFault(t, run("defaults", 10*time.Minute), "time of 10m0s")
		if out := run("saves", 2*time.Second); out.IsError || string(out.Output) != `"half"` {
			t.Errorf("a result in the grace time = %+v; want it taken", out)
		}
	})
}

// A tool whose turn ends is left alone after the grace time, and one that has not begun does not begin.
func TestEndOfTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counted
		hang := reads("hang", 0, func(context.Context) (any, error) { time.Sleep(time.Hour); return 1, nil })
		claims := memkv.New()
		s := newSet(t, claims, hang, c.tool("add", bdk.Write), c.tool("look", bdk.Read))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("stopped by the user"))
		defer cancel()
		defer time.Sleep(time.Hour) // the one that hangs ends, and must not block on its result
		begin := time.Now()
		s.Run(ctx, &bdk.Call{ID: "1"}, "hang", json.RawMessage(`{}`), false)
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("Run took %s; want the second of the turn and two of grace", took)
		}
		wantFault(t, s.Run(ctx, &bdk.Call{ID: "2"}, "add", json.RawMessage(`{"a":1}`), false), "stopped by the user")
		wantFault(t, s.Run(ctx, &bdk.Call{ID: "2"}, "look", json.RawMessage(`{"a":1}`), false), "not run")
		if c.runs.Load() != 0 {
			t.Errorf("%d tools ran after the end", c.runs.Load())
		}
		if out := s.Run(t.Context(), &bdk.Call{ID: "2"}, "add", json.RawMessage(`{"a":1}`), false); out.IsError {
			t.Errorf("a write that never began was claimed: %s", out.Output)
		}
	})
}

// sour is a value that cannot be encoded, in the way it is told to.
type sour struct{ how func() ([]byte, error) }

func (s sour) MarshalJSON() ([]byte, error) { return s.how() }

// nothing is an error whose nil pointer cannot be asked for its text.
type nothing struct{ text string }

func (n *nothing) Error() string { return n.text }

func TestToolsThatMisbehave(t *testing.T) {
	t.Parallel()
	type ring struct{ Next *ring }
	loop := &ring{}
	loop.Next = loop
	for name, tc := range map[string]struct {
		run  func() (any, error)
		says string
	}{
		"fails":         {func() (any, error) { return "partial", errors.New("no such branch") }, "no such branch"},
		"panics":        {func() (any, error) { panic("boom") }, "panicked: boom"},
		"nil error":     {func() (any, error) { return nil, (*nothing)(nil) }, "panicked"},
		"leaves":        {func() (any, error) { runtime.Goexit(); return nil, nil }, "without a result"},
		"func":          {func() (any, error) { return func() {}, nil }, "ran, but its result cannot be encoded"},
		"not a number":  {func() (any, error) { return math.NaN(), nil }, "cannot be encoded"},
		"ring":          {func() (any, error) { return loop, nil }, "cannot be encoded"},
		"broken JSON":   {func() (any, error) { return json.RawMessage(`{"a":`), nil }, "cannot be encoded"},
		"sour":          {func() (any, error) { return sour{func() ([]byte, error) { return nil, errors.New("sour") }}, nil }, "sour"},
		"sour panic":    {func() (any, error) { return sour{func() ([]byte, error) { panic("very sour") }}, nil }, "very sour"},
		"much":          {func() (any, error) { return strings.Repeat("x", 9<<20), nil }, "ran, but its result has 94371"},
		"much error":    {func() (any, error) { return nil, errors.New("begin" + strings.Repeat("é", 9<<20)) }, "begin"},
		"no text error": {func() (any, error) { return nil, errors.New("\xff\x00") }, "\uFFFD\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSet(t, memkv.New(), reads("odd", 0, func(context.Context) (any, error) { return tc.run() }))
			out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "odd", json.RawMessage(`{}`), false)
			wantFault(t, out, tc.says)
			if len(out.Output) > 100_000 {
				t.Errorf("the error has %d bytes", len(out.Output))
			}
		})
	}
}

// A string is a JSON string, whatever is in it; anything else is its JSON.
func TestResultsAreRecordedAsTheyAre(t *testing.T) {
	t.Parallel()
	text := "a\x00b\n\"<&>\u2028 你好"
	for name, tc := range map[string]struct {
		result any
		want   string
	}{
		"number":      {12, `12`},
		"huge number": {json.Number("1e400"), `1e400`},
		"nil":         {nil, `null`},
		"map":         {map[string]int{"a": 1}, `{"a":1}`},
		"raw":         {json.RawMessage(`{ "a" : 9007199254740993 }`), `{"a":9007199254740993}`},
		"empty text":  {"", `""`},
	} {
		s := newSet(t, memkv.New(), reads("get", 0, func(context.Context) (any, error) { return tc.result, nil }))
		if out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "get", json.RawMessage(`{}`), false); out.IsError || string(out.Output) != tc.want {
			t.Errorf("%s = %+v; want %s", name, out, tc.want)
		}
	}
	s := newSet(t, memkv.New(), reads("get", 0, func(context.Context) (any, error) { return text, nil }))
	if out := s.Run(t.Context(), &bdk.Call{ID: "1"}, "get", json.RawMessage(`{}`), false); out.IsError || readText(t, out) != text {
		t.Errorf("text = %+v; want %q", out, text)
	}
}

func TestOfferIsInNameOrder(t *testing.T) {
	t.Parallel()
	var c counted
	s := newSet(t, memkv.New(), c.tool("sub", nil), c.tool("Zap", nil), c.tool("add", nil))
	want := []string{"Zap", "add", "sub"}
	for range 20 {
		offer := s.Offer()
		var names []string
		for _, o := range offer {
			names = append(names, o.Name)
		}
		if d := cmp.Diff(want, names); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(model.Tool{Name: "add", Description: "Does add.", InputSchema: offer[2].InputSchema}, offer[1]); d != "" {
			t.Error(d)
		}
	}
}

func TestNewSetReportsAllMistakes(t *testing.T) {
	t.Parallel()
	var c counted
	bad := bdk.NamedTool{Name: "bad", Source: "tools/bad.go", Tool: bdk.DefineTool[input, string](bdk.ToolSpec{}, nil)}
	empty := bdk.NamedTool{Name: "empty", Source: "tools/empty.go"}
	twin := c.tool("add", nil)
	twin.Source = "tools/twin.go"
	s, err := tool.NewSet([]bdk.NamedTool{c.tool("add", nil), bad, empty, twin}, tool.Options{Claims: kv.New(memkv.New(), kv.Options{})})
	if s != nil || err == nil {
		t.Fatalf("NewSet = %v, %v; want no set and an error", s, err)
	}
	for _, says := range []string{"tools/bad.go", "Description", "function of the tool is nil", "tools/empty.go", "tools/twin.go", "add.go"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("error %q does not name %q", err, says)
		}
	}
}

// A read that ends its process each time it runs is given up, so that the other sessions of the host can live.
func TestReadThatIsCutOffAgainAndAgainIsGivenUp(t *testing.T) {
	t.Parallel()
	c, claims := &counted{}, memkv.New()
	for life := range 5 {
		out := newSet(t, claims, c.tool("look", bdk.Read)).Run(t.Context(), &bdk.Call{ID: "1"}, "look", json.RawMessage(`{"a":1}`), life > 0)
		if gaveUp := life > 2; out.IsError != gaveUp {
			t.Errorf("life %d: %s", life+1, out.Output)
		}
	}
	if n := c.runs.Load(); n != 3 {
		t.Errorf("it ran %d times; want 3", n)
	}
}
