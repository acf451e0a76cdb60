package bdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type input struct {
	Name string     `json:"name" jsonschema:"whose"`
	N    int64      `json:"n,omitempty"`
	At   *time.Time `json:"at"`
}

// echo is the function of a tool that returns its input.
func echo[In any](_ context.Context, _ *bdk.Call, in In) (In, error) { return in, nil }

func define[In any](spec bdk.ToolSpec) bdk.Tool {
	if spec.Description == "" {
		spec.Description = "Return the input."
	}
	return bdk.DefineTool(spec, echo[In])
}

func TestTypedInputIsCheckedAndDecoded(t *testing.T) {
	t.Parallel()
	tool := define[input](bdk.ToolSpec{})
	const schema = `{"type":"object","properties":{"name":{"type":"string","description":"whose"},"n":{"type":"integer"},` +
		`"at":{"type":["null","string"],"format":"date-time"}},"required":["name"],"additionalProperties":false}`
	if got := string(tool.InputSchema()); got != schema {
		t.Errorf("the schema is %s\nwant %s", got, schema)
	}
	raw := json.RawMessage(`{"name":"a","n":9007199254740993}`)
	if err := tool.CheckInput(raw); err != nil {
		t.Error(err)
	}
	got, err := tool.Run(t.Context(), &bdk.Call{}, raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(input{Name: "a", N: 1<<53 + 1}), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckInputNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	typed, raw := define[input](bdk.ToolSpec{}), define[json.RawMessage](bdk.ToolSpec{})
	for name, test := range map[string]struct {
		tool        bdk.Tool
		input, want string // want "": accepted
	}{
		"missing field":            {typed, `{}`, `name: required, but missing`},
		"unknown field":            {typed, `{"name":"a","nome":"b"}`, `unknown property "nome"; did you mean "name"?`},
		"wrong type":               {typed, `{"name":1}`, `name: must be a string, but is 1`},
		"number that does not fit": {typed, `{"name":"a","n":1e30}`, `n: must be a number that fits int64, written without a decimal point or exponent, but is 1e30`},
		"no time":                  {typed, `{"name":"a","at":"noon"}`, `at: must be a date and time with a time zone, such as 2030-01-31T15:04:05Z, but is "noon"`},
		"several faults":           {typed, `{"n":"1"}`, "name: required, but missing\nn: must be an integer, but is a string"},
		"key twice":                {typed, `{"name":"a","name":"b"}`, `the key "name" appears twice: send it once`},
		"malformed":                {typed, `{"name":?}`, `the input is not valid JSON: byte 9: invalid character '?' looking for beginning of value`},
		"array":                    {typed, `[]`, `the input must be a JSON object, but is an array`},
		"nothing":                  {typed, ``, `the input is empty: send a JSON object, {} if there is nothing to say`},

		"raw takes any object": {raw, `{"a":[1,{"b":null}]}`, ``},
		"raw, truncated":       {raw, `{"a":`, `the input is not valid JSON: it breaks off after 5 bytes`},
		"raw, string":          {raw, `"a"`, `the input must be a JSON object, but is a string`},
		"raw, key twice":       {raw, `{"a":1,"a":2}`, `the key "a" appears twice: send it once`},
		"raw, huge number":     {raw, `{"a":1e400}`, `a: the number 1e400 is too large`},
		"raw, deep":            {raw, `{"a":` + strings.Repeat("[", 70), `a[0][0]… the input is nested more than 64 levels deep`},
		"empty tool":           {bdk.Tool{}, `{}`, `the tool is empty: define it with bdk.DefineTool`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := test.tool.CheckInput(json.RawMessage(test.input)); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type (
	args     json.RawMessage
	argsOf   []byte
	settings map[string]string
)

func TestRawInputArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	const sent = ` {"n": 1e3, "s":"\u0061"}`
	given := json.RawMessage(`{"type": "object", "required": ["gone"]}`)
	for name, test := range map[string]struct {
		tool   bdk.Tool
		want   any
		schema string
	}{
		"json.RawMessage":     {define[json.RawMessage](bdk.ToolSpec{}), json.RawMessage(sent), `{"type":"object"}`},
		"with a schema":       {define[json.RawMessage](bdk.ToolSpec{InputSchema: given}), json.RawMessage(sent), string(given)},
		"a type of that type": {define[args](bdk.ToolSpec{}), args(sent), `{"type":"object"}`},
		"a type of bytes":     {define[argsOf](bdk.ToolSpec{}), argsOf(sent), `{"type":"object"}`},
		"bytes":               {define[[]byte](bdk.ToolSpec{}), []byte(sent), `{"type":"object"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(test.tool.InputSchema()); got != test.schema {
				t.Errorf("the schema is %s, want %s", got, test.schema)
			}
			input := json.RawMessage(sent)
			if err := test.tool.CheckInput(input); err != nil {
				t.Errorf("checking: %v", err)
			}
			got, err := test.tool.Run(t.Context(), &bdk.Call{}, input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRawInputIsTheFunctionsToChange(t *testing.T) {
	t.Parallel()
	tool := bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(_ context.Context, _ *bdk.Call, in json.RawMessage) (string, error) {
		in[0] = 'x'
		return "", nil
	})
	sent := json.RawMessage(`{}`)
	if _, err := tool.Run(t.Context(), nil, sent); err != nil || string(sent) != `{}` {
		t.Errorf("what was sent is now %s, %v", sent, err)
	}
}

func TestGivenSchemaOfTypedInputWins(t *testing.T) {
	t.Parallel()
	tool := define[settings](bdk.ToolSpec{InputSchema: json.RawMessage(`{"type":"object", "properties":{"color":{"enum":["red","blue"]}}}`)})
	if got, want := string(tool.InputSchema()), `{"type":"object","properties":{"color":{"enum":["red","blue"]}}}`; got != want {
		t.Errorf("the schema is %s, want %s", got, want)
	}
	err := tool.CheckInput(json.RawMessage(`{"color":"green"}`))
	if want := `color: must be one of "red", "blue", but is "green"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = tool.CheckInput(json.RawMessage(`{"other":1}`)) // the schema allows it, the type does not
	if want := `must be what a string reads, but is a JSON number`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestErrSaysWhatIsWrongWithADefinition(t *testing.T) {
	t.Parallel()
	var none func(context.Context, *bdk.Call, input) (string, error)
	spec := bdk.ToolSpec{Description: "d"}
	for name, test := range map[string]struct {
		tool bdk.Tool
		want string // "": nothing
	}{
		"nothing":          {define[input](spec), ""},
		"pointer input":    {define[*input](spec), ""},
		"empty input":      {define[struct{}](spec), ""},
		"zero tool":        {bdk.Tool{}, "the tool is empty: define it with bdk.DefineTool"},
		"no function":      {bdk.DefineTool(spec, none), "the function of the tool is nil"},
		"no description":   {bdk.DefineTool(bdk.ToolSpec{Description: " \n"}, echo[input]), "the tool has no Description: tell the model what it does and when to use it"},
		"string input":     {define[string](spec), `the input: the schema is not of a JSON object: use a struct, or a schema with "type": "object"`},
		"list input":       {define[[]string](spec), `the input: the schema is not of a JSON object: use a struct, or a schema with "type": "object"`},
		"channel input":    {define[struct{ C chan int }](spec), `type chan int is unsupported`},
		"recursive input":  {define[tree](spec), `the type contains itself`},
		"broken schema":    {define[input](bdk.ToolSpec{InputSchema: json.RawMessage(`{"type":`)}), `the input: reading the schema: the input is not valid JSON: it breaks off after 8 bytes`},
		"schema of a list": {define[json.RawMessage](bdk.ToolSpec{InputSchema: json.RawMessage(`{"type":"array"}`)}), `the input: the schema is not of a JSON object`},
		"output schema":    {define[input](bdk.ToolSpec{OutputSchema: json.RawMessage(`{"type":"string"}`)}), `the OutputSchema: the schema is not of a JSON object`},
		"odd effect":       {define[input](bdk.ToolSpec{Effect: bdk.EffectKind("reed")}), `the Effect "reed" is neither bdk.Read nor bdk.Write`},
		"negative timeout": {define[input](bdk.ToolSpec{Timeout: -time.Second}), `the Timeout is -1s: leave it out for 10 minutes`},
		"negative wait": {
			define[input](bdk.ToolSpec{NeedsApproval: bdk.Always, ApprovalTimeout: -1}),
			`the ApprovalTimeout is -1ns: leave it out for 7 days`,
		},
		"negative parallel": {define[input](bdk.ToolSpec{MaxParallel: -1}), `MaxParallel is -1: leave it out for no bound`},
		"odd approval":      {define[input](bdk.ToolSpec{NeedsApproval: bdk.ApprovalKind("never")}), `NeedsApproval is "never", which is not bdk.Always`},
		"approvers of nothing": {
			define[input](bdk.ToolSpec{Approvers: []string{"bearer:ops"}}),
			`there are Approvers or an ApprovalTimeout, but no call would wait: set NeedsApproval`,
		},
		"a wait for nothing":  {define[input](bdk.ToolSpec{ApprovalTimeout: time.Hour}), `but no call would wait`},
		"a month of waiting":  {define[input](bdk.ToolSpec{NeedsApproval: bdk.Always, ApprovalTimeout: 30 * 24 * time.Hour}), ``},
		"empty time argument": {define[input](bdk.ToolSpec{TimeArgs: []string{"at", ""}}), `a name in TimeArgs is empty`},
		"time argument twice": {define[input](bdk.ToolSpec{TimeArgs: []string{"at", "n", "at"}}), `"at" is in TimeArgs twice`},
		"script": {
			bdk.DefineScript[input](bdk.ToolSpec{Description: "d", Timeout: 10 * time.Minute, NeedsApproval: bdk.Always}, "#!/bin/sh\n"), ``,
		},
		"script without interpreter": {bdk.DefineScript[input](spec, "echo a"), `the script does not begin with #!/ and its interpreter`},
		"no script":                  {bdk.DefineScript[input](spec, ""), `the script does not begin with #!/ and its interpreter`},
		"script that takes long":     {bdk.DefineScript[input](bdk.ToolSpec{Description: "d", Timeout: 11 * time.Minute}, "#!/bin/sh"), `the Timeout is 11m0s: a script has 10m0s at most`},
		"all mistakes of a script": {
			bdk.DefineScript[string](bdk.ToolSpec{}, ""),
			"the input: the schema is not of a JSON object: use a struct, or a schema with \"type\": \"object\"\n" +
				"the tool has no Description: tell the model what it does and when to use it\nthe script does not begin with",
		},
		"all mistakes at once": {
			bdk.DefineTool(bdk.ToolSpec{Timeout: -1}, echo[string]),
			"the input: the schema is not of a JSON object: use a struct, or a schema with \"type\": \"object\"\n" +
				"the tool has no Description: tell the model what it does and when to use it\nthe Timeout is -1ns: leave it out for 10 minutes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.tool.Err()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %s", err, test.want)
			}
			if _, err := test.tool.Run(t.Context(), &bdk.Call{}, json.RawMessage(`{}`)); err == nil {
				t.Error("the tool runs all the same")
			}
			if got := test.tool.EffectOf(json.RawMessage(`{}`)); got != bdk.Write {
				t.Errorf("its effect is %s, want write", got)
			}
		})
	}
}

type tree struct{ Children []tree }

func TestApproversArePrincipals(t *testing.T) {
	t.Parallel()
	for who, ok := range map[string]bool{
		bdk.SessionOwner: true, bdk.Anybody: true, "local": true, "anonymous": true, "bearer:ops": true, "iam:arn:aws:iam::1:role/x": true,
		"jwt:https://issuer.example|sub": true, "": false, " ": false, "ops": false, "bearer:": false, ":ops": false, "Owner": false,
		"bearer:ops ": false, "bearer: ops": false, "bearer:a\n": false,
	} {
		tool := define[input](bdk.ToolSpec{NeedsApproval: bdk.Always, Approvers: []string{"bearer:boss", who}})
		want := fmt.Sprintf("%q in Approvers is no principal: write bearer:ops or the like, bdk.SessionOwner or bdk.Anybody", who)
		if err := tool.Err(); (err == nil) != ok || err != nil && err.Error() != want {
			t.Errorf("%q: got %v", who, err)
		}
	}
}

func TestSpecHasTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	got := define[input](bdk.ToolSpec{Title: "t"}).Spec()
	want := bdk.ToolSpec{
		Description: "Return the input.", Title: "t", Effect: bdk.Write, Timeout: 10 * time.Minute,
		Approvers: []string{bdk.SessionOwner}, ApprovalTimeout: 7 * 24 * time.Hour,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	given := bdk.ToolSpec{
		Description: "d", Effect: bdk.Read, Timeout: time.Second, OutputSchema: json.RawMessage(`{"type":"object"}`),
		NeedsApproval: bdk.Always, Approvers: []string{bdk.Anybody, "bearer:ops"}, ApprovalTimeout: time.Hour, MaxParallel: 2, TimeArgs: []string{"at"},
	}
	if diff := cmp.Diff(given, define[input](given).Spec()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	byName := bdk.EffectOf(func(in input) bdk.EffectKind {
		if in.Name == "panic" {
			panic("no")
		}
		return bdk.EffectKind(in.Name)
	})
	for name, test := range map[string]struct {
		effect bdk.Effect
		input  string
		want   bdk.EffectKind
	}{
		"none":                     {nil, `{"name":"a"}`, bdk.Write},
		"read":                     {bdk.Read, `{"name":"a"}`, bdk.Read},
		"write":                    {bdk.Write, `{"name":"a"}`, bdk.Write},
		"of the input: read":       {byName, `{"name":"read"}`, bdk.Read},
		"of the input: write":      {byName, `{"name":"write"}`, bdk.Write},
		"of the input: nonsense":   {byName, `{"name":"reed"}`, bdk.Write},
		"of the input: a panic":    {byName, `{"name":"panic"}`, bdk.Write},
		"of an input that differs": {byName, `{"name":7}`, bdk.Write},
		"no function":              {bdk.EffectOf[input](nil), `{"name":"read"}`, bdk.Write},
		"unknown":                  {bdk.EffectKind("reed"), `{"name":"a"}`, bdk.Write},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := define[input](bdk.ToolSpec{Effect: test.effect})
			if got := tool.EffectOf(json.RawMessage(test.input)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	byName := bdk.ApproveWhen(func(in input) bool {
		if in.Name == "panic" {
			panic("no")
		}
		return in.Name == "prod"
	})
	for name, test := range map[string]struct {
		approval bdk.Approval
		input    string
		want     bool
	}{
		"none":                     {nil, `{"name":"a"}`, false},
		"always":                   {bdk.Always, `{"name":"a"}`, true},
		"of the input: yes":        {byName, `{"name":"prod"}`, true},
		"of the input: no":         {byName, `{"name":"dev"}`, false},
		"of the input: a panic":    {byName, `{"name":"panic"}`, true},
		"of an input that differs": {byName, `{"name":7}`, true},
		"no function":              {bdk.ApproveWhen[input](nil), `{"name":"dev"}`, true},
		"of raw input":             {bdk.ApproveWhen(func(in json.RawMessage) bool { return string(in) != `{"name":"a"}` }), `{"name":"a"}`, false},
		"of bytes":                 {bdk.ApproveWhen(func(in args) bool { return string(in) != `{"name":"a"}` }), `{"name":"a"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := define[input](bdk.ToolSpec{NeedsApproval: test.approval})
			if got := tool.NeedsApproval(json.RawMessage(test.input)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestDryRunAnswer(t *testing.T) {
	t.Parallel()
	type answer struct{ Name string }
	byName := bdk.DryRunOf(func(in input) answer { return answer{in.Name} })
	for name, test := range map[string]struct {
		dryRun bdk.DryRun
		input  string
		want   any // nil: an error
	}{
		"none":                     {nil, `{"name":"a"}`, "Operation acknowledged."},
		"of the input":             {byName, `{"name":"a"}`, answer{"a"}},
		"of an input that differs": {byName, `{"name":7}`, nil},
		"of raw input":             {bdk.DryRunOf(func(in json.RawMessage) string { return string(in) }), `{"name":"a"}`, `{"name":"a"}`},
		"of bytes":                 {bdk.DryRunOf(func(in args) string { return string(in) }), `{"name":"a"}`, `{"name":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := define[input](bdk.ToolSpec{DryRunResult: test.dryRun}).DryRunAnswer(json.RawMessage(test.input))
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != (test.want == nil) {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestScriptIsCheckedLikeAnyToolAndRunsInNoProcessOfTheHost(t *testing.T) {
	t.Parallel()
	const text = "#!/bin/sh\ncat\n"
	spec := bdk.ToolSpec{Description: "d", Effect: bdk.Read}
	typed, raw := bdk.DefineScript[input](spec, text), bdk.DefineScript[json.RawMessage](spec, text)
	for name, test := range map[string]struct {
		tool   bdk.Tool
		schema json.RawMessage
		fault  string // of {"name":1}
	}{
		"typed": {typed, define[input](spec).InputSchema(), "name: must be a string, but is 1"},
		"raw":   {raw, json.RawMessage(`{"type":"object"}`), ""},
	} {
		if err := test.tool.Err(); err != nil {
			t.Fatal(err)
		}
		if got := test.tool.Script(); got != text {
			t.Errorf("%s: the script is %q", name, got)
		}
		if diff := cmp.Diff(test.schema, test.tool.InputSchema()); diff != "" {
			t.Errorf("%s: the schema (-want +got):\n%s", name, diff)
		}
		fault := ""
		if err := test.tool.CheckInput(json.RawMessage(`{"name":1}`)); err != nil {
			fault = err.Error()
		}
		if fault != test.fault {
			t.Errorf("%s: the input is refused with %q, want %q", name, fault, test.fault)
		}
		if _, err := test.tool.Run(t.Context(), nil, json.RawMessage(`{"name":"a"}`)); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
	if got := define[input](spec).Script(); got != "" {
		t.Errorf("a server tool has the script %q", got)
	}
}

func TestRunPassesCallResultAndErrorOn(t *testing.T) {
	t.Parallel()
	fault := errors.New("no")
	tool := bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(_ context.Context, call *bdk.Call, _ struct{}) (string, error) {
		return "from " + call.ID, fault
	})
	for _, call := range []*bdk.Call{nil, {ID: "call_1"}} {
		want := "from "
		if call != nil {
			want += call.ID
		}
		if got, err := tool.Run(t.Context(), call, json.RawMessage(`{}`)); got != want || !errors.Is(err, fault) {
			t.Errorf("got %v, %v; want %s and the function's error", got, err, want)
		}
	}
}

func TestRunDoesNotCallTheFunctionWithInputThatDoesNotFit(t *testing.T) {
	t.Parallel()
	tool := bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(context.Context, *bdk.Call, input) (string, error) {
		t.Error("the function was called")
		return "", nil
	})
	if _, err := tool.Run(t.Context(), nil, json.RawMessage(`{"n":"x"}`)); err == nil {
		t.Error("got nil, want an error")
	}
}

func TestZeroCallIsUsable(t *testing.T) {
	t.Parallel()
	var call bdk.Call
	call.Log().Info("nobody hears this")
	if call.Now().IsZero() {
		t.Error("Now = the zero time")
	}
}
