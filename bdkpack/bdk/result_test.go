package bdk_test

import (
	"encoding/json"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type verdict struct {
	Ready bool   `json:"ready"`
	Why   string `json:"why,omitempty"`
}

const rawVerdict = `{"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}`

func TestResultNamesWhatIsWrongWithAText(t *testing.T) {
	t.Parallel()
	typed, raw := bdk.ResultOf[verdict](), bdk.RawResult(json.RawMessage(rawVerdict))
	for name, test := range map[string]struct {
		result     bdk.ResultSchema
		text, want string // want "": accepted
	}{
		"fits":                  {typed, " {\"ready\":true}\n", ``},
		"missing":               {typed, `{"why":"a"}`, `ready: required, but missing`},
		"unknown":               {typed, `{"ready":true,"wyh":"a"}`, `unknown property "wyh"; the properties are ready, why`},
		"prose":                 {typed, `Ready.`, `the text is not valid JSON: byte 1: invalid character 'R' looking for beginning of value`},
		"prose behind":          {typed, `{"ready":true} Done.`, `the text is not valid JSON: byte 16: invalid character 'D' after top-level value`},
		"nothing":               {typed, ``, `the text is empty: send a JSON object, {} if there is nothing to say`},
		"list":                  {typed, `[]`, `the text must be a JSON object, but is an array`},
		"given, fits":           {raw, `{"ready":false,"more":[1]}`, ``},
		"given, wrong":          {raw, `{"ready":"yes"}`, `ready: must be a boolean, but is a string`},
		"the zero schema":       {bdk.ResultSchema{}, `anything`, ``},
		"a schema with a fault": {bdk.ResultOf[string](), `{}`, bdk.ResultOf[string]().Err().Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := test.result.Check(test.text); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestResultKnowsItsMistakes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result bdk.ResultSchema
		ok     bool
		schema string
	}{
		"none":    {bdk.ResultSchema{}, true, ``},
		"struct":  {bdk.ResultOf[verdict](), true, `{"type":"object","properties":{"ready":{"type":"boolean"},"why":{"type":"string"}},"required":["ready"],"additionalProperties":false}`},
		"given":   {bdk.RawResult(json.RawMessage(rawVerdict)), true, `{"type":"object","properties":{"ready":{"type":"boolean"}},"required":["ready"]}`},
		"text":    {bdk.ResultOf[string](), false, ``},
		"channel": {bdk.ResultOf[struct{ C chan int }](), false, ``},
		"no JSON": {bdk.RawResult(json.RawMessage(`{"type":`)), false, ``},
		"a list":  {bdk.RawResult(json.RawMessage(`{"type":"array"}`)), false, ``},
		"nothing": {bdk.RawResult(nil), false, ``},
	} {
		if err := test.result.Err(); (err == nil) != test.ok {
			t.Errorf("%s: got the error %v", name, err)
		}
		if got := string(test.result.JSON()); got != test.schema {
			t.Errorf("%s: the schema is %s, want %s", name, got, test.schema)
		}
	}
}

func TestEqualResults(t *testing.T) {
	t.Parallel()
	list := []bdk.ResultSchema{{}, bdk.ResultOf[verdict](), bdk.RawResult(json.RawMessage(rawVerdict)), bdk.ResultOf[string]()}
	again := []bdk.ResultSchema{{}, bdk.ResultOf[verdict](), bdk.RawResult(json.RawMessage(rawVerdict)), bdk.ResultOf[string]()}
	for i, a := range list {
		for j, b := range again {
			if a.Equal(b) != (i == j) {
				t.Errorf("Equal(%d, %d) = %t", i, j, a.Equal(b))
			}
		}
	}
}
