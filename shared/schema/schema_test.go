package schema_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/schema"
)

type base struct {
	ID string `json:"id"`
}

type point struct{ X, Y int }

type everything struct {
	base
	Text     string            `json:"text" jsonschema:"what it says"`
	Note     string            `json:"note,omitempty"`
	Zero     int               `json:"zero,omitzero"`
	Pointer  *int              `json:"pointer"`
	Flag     bool              `json:"flag"`
	Small    int8              `json:"small"`
	Real     float64           `json:"real"`
	List     []string          `json:"list"`
	Pair     [2]int            `json:"pair"`
	Map      map[string]point  `json:"map"`
	Nested   point             `json:"nested"`
	Nestling *struct{ A *int } `json:"nestling"`
	At       time.Time         `json:"at"`
	AtMaybe  *time.Time        `json:"atMaybe"`
	Wait     time.Duration     `json:"wait"`
	Raw      json.RawMessage   `json:"raw"`
	Bytes    []byte            `json:"bytes"`
	Number   json.Number       `json:"number"`
	Big      big.Int           `json:"big"`
	Address  netip.Addr        `json:"address"`
	Any      any               `json:"any"`
	Skipped  string            `json:"-"`
	hidden   string
	Untagged string
}

func TestSchemaIsInferredFromTheType(t *testing.T) {
	t.Parallel()
	_ = everything{}.hidden
	point := `{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false}`
	want := map[string]string{
		"id":       `{"type":"string"}`,
		"text":     `{"type":"string","description":"what it says"}`,
		"note":     `{"type":"string"}`,
		"zero":     `{"type":"integer"}`,
		"pointer":  `{"type":["null","integer"]}`,
		"flag":     `{"type":"boolean"}`,
		"small":    `{"type":"integer","minimum":-128,"maximum":127}`,
		"real":     `{"type":"number"}`,
		"list":     `{"type":["null","array"],"items":{"type":"string"}}`,
		"pair":     `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2}`,
		"map":      `{"type":"object","additionalProperties":` + point + `}`,
		"nested":   point,
		"nestling": `{"type":["null","object"],"properties":{"A":{"type":["null","integer"]}},"additionalProperties":false}`,
		"at":       `{"type":"string","format":"date-time"}`,
		"atMaybe":  `{"type":["null","string"],"format":"date-time"}`,
		"wait":     `{"type":"integer","description":"in nanoseconds"}`,
		"raw":      `{"type":["null","boolean","object","array","number","string"]}`,
		"bytes":    `{"type":["null","string"],"contentEncoding":"base64"}`,
		"number":   `{"type":"number"}`,
		"big":      `{"type":"integer"}`,
		"address":  `{"type":"string"}`,
		"any":      `true`,
		"Untagged": `{"type":"string"}`,
	}
	optional := []string{"note", "zero", "pointer", "nestling", "atMaybe"}

	var got struct {
		Type                 string
		Properties           map[string]json.RawMessage
		Required             []string
		AdditionalProperties bool
	}
	s := infer[everything](t)
	unmarshal(t, s.JSON(), &got)
	for name, raw := range got.Properties {
		var g, w any
		unmarshal(t, raw, &g)
		unmarshal(t, []byte(want[name]), &w)
		if diff := cmp.Diff(w, g); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(got.Properties) != len(want) || got.Type != "object" || got.AdditionalProperties {
		t.Errorf("got %s", s.JSON())
	}
	for _, name := range optional {
		if strings.Contains(strings.Join(got.Required, " ")+" ", name+" ") {
			t.Errorf("%s is required: %v", name, got.Required)
		}
	}
	if len(got.Required) != len(want)-len(optional) {
		t.Errorf("%d fields are required, want all but %v: %v", len(got.Required), optional, got.Required)
	}
}

func TestPropertiesKeepTheOrderOfTheFields(t *testing.T) {
	t.Parallel()
	type in struct {
		Z int `json:"z"`
		A int `json:"a"`
		M int `json:"m"`
	}
	const want = `{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"},"m":{"type":"integer"}},"required":["z","a","m"],"additionalProperties":false}`
	if got := string(infer[in](t).JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestInputTypes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		s    func(json.RawMessage) (*schema.Schema, error)
		want string // of the schema, or of the error if it is no JSON
	}{
		"struct without fields": {schema.For[struct{}], `{"type":"object","properties":{},"additionalProperties":false}`},
		"pointer to a struct":   {schema.For[**point], `{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false}`},
		"map":                   {schema.For[map[string]int], `{"type":"object","additionalProperties":{"type":"integer"}}`},
		"map of anything":       {schema.For[map[string]any], `{"type":"object","additionalProperties":true}`},

		"string":                {schema.For[string], `the schema is not of a JSON object: use a struct`},
		"slice":                 {schema.For[[]string], `the schema is not of a JSON object`},
		"anything":              {schema.For[any], `the schema is not of a JSON object`},
		"time":                  {schema.For[time.Time], `the schema is not of a JSON object`},
		"map by number":         {schema.For[map[int]string], `unsupported map key type int`},
		"function":              {schema.For[struct{ F func() }], `type func() is unsupported`},
		"channel below":         {schema.For[struct{ L []struct{ C chan int } }], `type chan int is unsupported`},
		"type in itself":        {schema.For[node], `the type contains itself; give the schema, where $ref can say so: `},
		"types in each other":   {schema.For[struct{ A map[string]*even }], `the type contains itself`},
		"number as a string":    {schema.For[stringy], `field N: the option string of its json tag is not supported`},
		"embedded with a name":  {schema.For[embedsNamed], `field Base: an embedded field must be a struct without a json name`},
		"embedded slice":        {schema.For[embedsSlice], `field Strings: an embedded field must be a struct`},
		"embedded by a pointer": {schema.For[struct{ *Base }], `{"type":"object","properties":{"A":{"type":"integer"}},"required":["A"],"additionalProperties":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := test.s(nil)
			switch {
			case test.want[0] == '{' && err != nil:
				t.Error(err)
			case test.want[0] == '{' && string(s.JSON()) != test.want:
				t.Errorf("got  %s\nwant %s", s.JSON(), test.want)
			case test.want[0] != '{' && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

type (
	node    struct{ Next *node }
	even    struct{ Odd []odd }
	odd     struct{ Even *even }
	stringy struct {
		N int `json:"n,string"`
	}
	Base        struct{ A int }
	Strings     []string
	embedsNamed struct {
		Base `json:"base"`
	}
	embedsSlice struct{ Strings }
)

func TestGivenSchemas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ raw, want string }{
		"kept as it is": {
			` {"type": "object", "x-mine": 1, "properties": {"z": true, "a": {"default": 1}}}`,
			`{"type":"object","x-mine":1,"properties":{"z":true,"a":{"default":1}}}`,
		},
		"may contain itself":   {`{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"type":"object","properties":{"next":{"$ref":"#"}}}`},
		"draft 7":              {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`},
		"no JSON":              {`{"type"`, `reading the schema: the input is not valid JSON`},
		"array":                {`[]`, `reading the schema: the input must be a JSON object, but is an array`},
		"key twice":            {`{"type":"object","type":"object"}`, `reading the schema: the key "type" appears twice`},
		"no type":              {`{"properties":{}}`, `the schema is not of a JSON object`},
		"another type":         {`{"type":"array"}`, `the schema is not of a JSON object`},
		"several types":        {`{"type":["object","null"]}`, `the schema is not of a JSON object`},
		"wrong keyword":        {`{"type":"object","required":"a"}`, `reading the schema: json: cannot unmarshal string`},
		"bad pattern":          {`{"type":"object","properties":{"a":{"pattern":"("}}}`, `resolving the schema: `},
		"null below":           {`{"type":"object","properties":{"a":null}}`, `resolving the schema: `},
		"ref to nothing":       {`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}}`, `resolving the schema: `},
		"ref elsewhere":        {`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`, `resolving the schema: `},
		"ref to itself":        {`{"type":"object","$ref":"#"}`, `reading the schema: $ref "#" leads back to itself`},
		"refs to each other":   {`{"type":"object","properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[true,{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, `leads back to itself`},
		"loop in other case":   {`{"type":"object","AllOf":[{"$ref":"#/allOf/0"}]}`, `leads back to itself`},
		"unknown draft":        {`{"$schema":"https://example.com/schema","type":"object"}`, `resolving the schema: cannot validate version https://example.com/schema`},
		"unknown type of type": {`{"type":7}`, `reading the schema: `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Parse([]byte(test.raw))
			if check := schema.CheckObject([]byte(test.raw)); (check == nil) != (err == nil) {
				t.Errorf("CheckObject says %v, Parse %v", check, err)
			}
			switch {
			case test.want[0] == '{' && err != nil:
				t.Error(err)
			case test.want[0] == '{' && string(s.JSON()) != test.want:
				t.Errorf("got  %s\nwant %s", s.JSON(), test.want)
			case test.want[0] != '{' && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestValidateNamesTheFieldAndTheRemedy(t *testing.T) {
	t.Parallel()
	type item struct {
		B []int `json:"b"`
	}
	type in struct {
		PRURL string         `json:"prUrl"`
		Count int            `json:"count,omitempty"`
		A     map[string]int `json:"a,omitempty"`
		Items []item         `json:"items,omitempty"`
	}
	inferred := string(infer[in](t).JSON())
	const keywords = `{"type":"object","properties":{
		"enum":{"enum":["low","high",3,null]},"const":{"const":{"a":1}},"multiple":{"multipleOf":5},
		"min":{"minimum":1},"max":{"maximum":9},"over":{"exclusiveMinimum":0},"under":{"exclusiveMaximum":1},
		"short":{"minLength":2},"long":{"maxLength":3},"pattern":{"pattern":"^[a-z]+$"},
		"few":{"minItems":1},"many":{"maxItems":1},"unique":{"uniqueItems":true},
		"fewp":{"minProperties":1},"manyp":{"maxProperties":1},
		"gone":false,"tuple":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}},
		"both":{"allOf":[{"type":"string"},{"minLength":2}]},
		"either":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}]},"one":{"oneOf":[{"minimum":0},{"multipleOf":2}]},
		"ref":{"$ref":"#/$defs/n"},"not":{"not":{"type":"string"}}},
		"patternProperties":{"^x-":{"type":"boolean"}},
		"$defs":{"n":{"type":"integer","minimum":0}}}`
	for name, test := range map[string]struct {
		schema, input string
		want          []string
	}{
		"missing":             {inferred, `{}`, []string{`prUrl: required, but missing`}},
		"other case":          {inferred, `{"prurl":"x"}`, []string{`prUrl: required, but missing`, `unknown property "prurl"; did you mean "prUrl"?`}},
		"other style":         {inferred, `{"pr_url":"x"}`, []string{`prUrl: required, but missing`, `unknown property "pr_url"; did you mean "prUrl"?`}},
		"slip":                {inferred, `{"prUrl":"x","cuont":1}`, []string{`unknown property "cuont"; did you mean "count"?`}},
		"unknown":             {inferred, `{"prUrl":"x","force":true}`, []string{`unknown property "force"; the properties are a, count, items, prUrl`}},
		"wrong type":          {inferred, `{"prUrl":["x"]}`, []string{`prUrl: must be a string, but is an array`}},
		"number for a string": {inferred, `{"prUrl":42}`, []string{`prUrl: must be a string, but is 42`}},
		"fraction":            {inferred, `{"prUrl":"x","count":1.5}`, []string{`count: must be an integer, but is 1.5`}},
		"string for a number": {inferred, `{"prUrl":"x","count":"1"}`, []string{`count: must be an integer, but is a string`}},
		"null, optional":      {inferred, `{"prUrl":"x","count":null}`, []string{`count: must be an integer, but is null: leave it out instead`}},
		"null, required":      {inferred, `{"prUrl":null}`, []string{`prUrl: must be a string, but is null`}},
		"below an array":      {inferred, `{"prUrl":"x","items":[{"b":[1]},{"b":[1,2,"x"]},{}]}`, []string{`items[1].b[2]: must be an integer, but is a string`, `items[2].b: required, but missing`}},
		"below a map":         {inferred, `{"prUrl":"x","a":{"odd key":true,"ok":1}}`, []string{`a["odd key"]: must be an integer, but is a boolean`}},
		"unknown below":       {inferred, `{"prUrl":"x","items":[{"b":[],"c":1}]}`, []string{`items[0]: unknown property "c"; the properties are b`}},
		"object or null":      {inferred, `{"prUrl":"x","items":{}}`, []string{`items: must be an array or null, but is an object`}},
		"the whole":           {inferred, `[]`, []string{`must be an object, but is an array`}},
		"no properties":       {string(infer[struct{}](t).JSON()), `{"a":1}`, []string{`unknown property "a"; there are none: leave it out`}},

		"enum":              {keywords, `{"enum":"medium"}`, []string{`enum: must be one of "low", "high", 3, null, but is "medium"`}},
		"const":             {keywords, `{"const":{"a":2}}`, []string{`const: must be {"a":1}, but is {"a":2}`}},
		"multipleOf":        {keywords, `{"multiple":6}`, []string{`multiple: must be a multiple of 5, but is 6`}},
		"bounds":            {keywords, `{"min":0,"max":10,"over":0,"under":1}`, []string{`max: must be at most 9, but is 10`, `min: must be at least 1, but is 0`, `over: must be greater than 0, but is 0`, `under: must be less than 1, but is 1`}},
		"length":            {keywords, `{"short":"é","long":"abcd"}`, []string{`long: must have at most 3 characters, but has 4`, `short: must have at least 2 characters, but has 1`}},
		"pattern":           {keywords, `{"pattern":"<A>"}`, []string{`pattern: must match the regular expression ^[a-z]+$, but is "<A>"`}},
		"items":             {keywords, `{"few":[],"many":[1,2],"unique":[1,2,1]}`, []string{`few: must have at least 1 items, but has 0`, `many: must have at most 1 items, but has 2`, `unique: must not have the same item twice`}},
		"properties":        {keywords, `{"fewp":{},"manyp":{"a":1,"b":2}}`, []string{`fewp: must have at least 1 properties, but has 0`, `manyp: must have at most 1 properties, but has 2`}},
		"false":             {keywords, `{"gone":1}`, []string{`unknown property "gone"; did you mean "one"?`}},
		"prefixItems":       {keywords, `{"tuple":["a",1,"b"]}`, []string{`tuple[2]: must be an integer, but is a string`}},
		"allOf":             {keywords, `{"both":"a"}`, []string{`both: must have at least 2 characters, but has 1`}},
		"anyOf":             {keywords, `{"either":-1}`, []string{`either: must match one of the schemas [{"type":"string"},{"$ref":"#/$defs/n"}]`}},
		"anyOf holds":       {keywords, `{"either":1,"one":"x"}`, []string{`one: must match exactly one of the schemas [{"minimum":0},{"multipleOf":2}]`}},
		"ref":               {keywords, `{"ref":-1}`, []string{`ref: must be at least 0, but is -1`}},
		"patternProperties": {keywords, `{"x-a":1}`, []string{`x-a: must be a boolean, but is 1`}},
		"words of last resort": {
			keywords, `{"not":"x"}`,
			[]string{`the input does not match its schema: not: validated against <anonymous schema>`},
		},
		"draft 7 ref": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n","minLength":9}}}`,
			`{"a":"x"}`,
			[]string{`a: must be an integer, but is a string`},
		},
		"recursion": {
			`{"type":"object","properties":{"next":{"$ref":"#"},"n":{"type":"integer"}}}`, `{"next":{"next":{"n":"x"}}}`,
			[]string{`next.next.n: must be an integer, but is a string`},
		},
		"many faults": {
			`{"type":"object","additionalProperties":{"type":"null"}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1}`,
			append(strings.Split("a b c d e f g h i j", " "), "and 2 more"),
		},
		"long value": {keywords, `{"enum":"` + strings.Repeat("x", 1000) + `"}`, []string{`enum: must be one of "low", "high", 3, null, but is "` + strings.Repeat("x", 59) + "…"}},
		"no JSON":    {keywords, `{`, []string{`the input is not valid JSON: it breaks off after 1 bytes`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Parse([]byte(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			err = s.Validate([]byte(test.input))
			if err == nil {
				t.Fatal("got nil, want an error")
			}
			got := strings.Split(err.Error(), "\n")
			if name == "many faults" {
				for i := range got {
					got[i], _, _ = strings.Cut(got[i], ":")
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The race detector watches: words are made from parts of the schema that all share.
func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s, err := schema.Parse([]byte(`{"type":"object","properties":{"a":{"anyOf":[{"pattern":"x"},{"$ref":"#/$defs/n"}]}},"$defs":{"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := s.Validate([]byte(`{"a":"b"}`)); err == nil || !strings.HasPrefix(err.Error(), "a: must match one of") {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
}

func TestDecodeKeepsLargeIntegersAndNamesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	type in struct {
		N     int64                       `json:"n,omitempty"`
		U     uint64                      `json:"u,omitempty"`
		At    *time.Time                  `json:"at"`
		Below struct{ Times []time.Time } `json:"below,omitzero"`
		Raw   json.RawMessage             `json:"raw,omitempty"`
		Addr  netip.Addr                  `json:"addr,omitzero"`
		F     float32                     `json:"f,omitempty"`
	}
	s := infer[in](t)
	good := `{"n":9007199254740993,"u":18446744073709551615,"at":"2030-01-02T03:04:05+01:00","raw":{"n":9007199254740993},"addr":"::1"}`
	got, err := schema.Decode[in](s, []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2030, 1, 2, 2, 4, 5, 0, time.UTC)
	want := in{N: 1<<53 + 1, U: 1<<64 - 1, At: &at, Raw: json.RawMessage(`{"n":9007199254740993}`), Addr: netip.IPv6Loopback()}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for input, want := range map[string]string{
		`{"n":1.0}`:                   `n: must be a number that fits int64, written without a decimal point or exponent, but is 1.0`,
		`{"n":1e300}`:                 `n: must be a number that fits int64, written without a decimal point or exponent, but is 1e300`,
		`{"n":9223372036854775808}`:   `n: must be a number that fits int64, written without a decimal point or exponent, but is 9223372036854775808`,
		`{"f":1e39}`:                  `f: must be a number that fits float32, but is 1e39`,
		`{"at":"tomorrow"}`:           `at: must be a date and time with a time zone, such as 2030-01-31T15:04:05Z, but is "tomorrow"`,
		`{"at":"2030-13-02T00:00Z"}`:  `at: must be a date and time with a time zone, such as 2030-01-31T15:04:05Z, but is "2030-13-02T00:00Z"`,
		`{"below":{"Times":["now"]}}`: `below.Times[0]: must be a date and time with a time zone, such as 2030-01-31T15:04:05Z, but is "now"`,
		`{"addr":"here"}`:             `reading the input: ParseAddr("here"): unable to parse IP`,
	} {
		if err := s.Validate([]byte(input)); err != nil {
			t.Errorf("%s: %v", input, err)
		}
		if _, err := schema.Decode[in](s, []byte(input)); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", input, err, want)
		}
	}
}

func TestDecodeUnderALaxerGivenSchemaNamesTheField(t *testing.T) {
	t.Parallel()
	s, err := schema.For[struct{ A []string }]([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `A: must be what a string reads, but is a JSON bool`
	if _, err := schema.Decode[struct{ A []string }](s, []byte(`{"A":[true]}`)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Whatever the schema and the input are, the words agree with the verdict, and say something.
func FuzzValidate(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":1},"b":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"enum":[1,"x"]}}}`, `{"b":2,"c":[]}`},
		{`{"type":"object","patternProperties":{"^a":{"pattern":"b+"}},"anyOf":[{"required":["x"]},{"minProperties":2}]}`, `{"ab":"c"}`},
		{`{"type":"object","properties":{"next":{"$ref":"#"}},"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"next":{"next":3}}`},
		{`{"type":"object","allOf":[{"$ref":"#/allOf/1"},{"not":{"required":["a"]}}],"unevaluatedProperties":false}`, `{"a":1}`},
		{`{"type":"object","$ref":"#"}`, `{}`},
		{`{"type":"object","properties":{"a":{"items":[{"type":"string"}],"uniqueItems":true,"multipleOf":0}}}`, `{"a":[1,1]}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, rawSchema, input []byte) {
		s, err := schema.Parse(rawSchema)
		if err != nil || schema.Object(input) != nil || strings.Contains(string(rawSchema), "Anchor") || strings.Contains(string(rawSchema), "$id") {
			return
		}
		if err := s.Validate(input); err != nil && (strings.TrimSpace(err.Error()) == "" || len(err.Error()) > 20_000) {
			t.Errorf("%s with %s: a poor error: %q", rawSchema, input, err)
		}
		again, err := schema.Parse(s.JSON())
		if err != nil {
			t.Fatalf("%s: its own JSON is refused: %v", rawSchema, err)
		}
		if (again.Validate(input) == nil) != (s.Validate(input) == nil) {
			t.Errorf("%s: its own JSON judges %s otherwise", rawSchema, input)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"a","text":"x","flag":true,"small":1,"real":1,"list":[],"pair":[1,2],"map":{},"nested":{"X":1,"Y":2},"at":"2030-01-02T03:04:05Z","wait":1,"raw":1,"bytes":"AA==","number":1,"big":1,"address":"::1","any":1,"Untagged":""}`))
	f.Add([]byte(`{"at":"x"}`))
	s := infer[everything](f)
	f.Fuzz(func(t *testing.T, input []byte) {
		if schema.Object(input) != nil || s.Validate(input) != nil {
			return
		}
		if _, err := schema.Decode[everything](s, input); err != nil && err.Error() == "" {
			t.Errorf("%s: an error without words", input)
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	s, err := schema.For[struct {
		PRURL  string   `json:"prUrl"`
		Reason string   `json:"reason"`
		Labels []string `json:"labels,omitempty"`
	}](nil)
	if err != nil {
		b.Fatal(err)
	}
	raw := []byte(`{"prUrl":"https://example.com/acme/checkout/pull/42","reason":"Small and tested.","labels":["a","b"]}`)
	for b.Loop() {
		if err := s.Validate(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func infer[T any](t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.For[T](nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unmarshal(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}
