package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// TestEveryRouteHasAFunction: every line of the HTTP route table is answered by the function of its group.
func TestEveryRouteHasAFunction(t *testing.T) {
	t.Parallel()
	functions := map[string]deploy.Function{}
	for _, f := range deploy.Functions() {
		functions[f.Name] = f
	}
	byPath := map[string]string{}
	for _, r := range deploy.Routes() {
		if byPath[r.Path] != "" {
			t.Errorf("%s is routed twice", r.Path)
		}
		byPath[r.Path] = r.Function
		if f := functions[r.Function]; f.Kind != deploy.Buffered && f.Kind != deploy.Streamed {
			t.Errorf("%s goes to %q, which does not answer requests", r.Path, r.Function)
		}
	}
	for _, r := range httpapi.Routes() {
		if path := strings.TrimSuffix(r.Pattern, "{$}"); !r.Host && byPath[path] != map[bool]string{false: string(r.Group)}[r.Dev] { // in development there are more
			t.Errorf("%s goes to %q; want %s", path, byPath[path], r.Group)
		}
	}
}

// TestVariableSegments: API Gateway allows one variable segment at a place.
func TestVariableSegments(t *testing.T) {
	t.Parallel()
	variable := map[string]string{}
	for _, r := range deploy.Routes() {
		for at := range r.Path {
			rest := r.Path[at:]
			if !strings.HasPrefix(rest, "/{") {
				continue
			}
			name, _, _ := strings.Cut(rest[1:], "/")
			if old := variable[r.Path[:at]]; old != "" && old != name {
				t.Errorf("below %q are both %s and %s", r.Path[:at], old, name)
			}
			variable[r.Path[:at]] = name
		}
	}
	for _, prefix := range []string{"", "/v1", "/v1/session/{id}"} {
		if variable[prefix] != "{proxy+}" {
			t.Errorf("unknown paths below %q are not answered", prefix)
		}
	}
}

// TestTimeouts: API Gateway waits 29 s for an answer, 15 min for the end of one that is streamed.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	limits := map[deploy.Kind]int{deploy.Buffered: 29, deploy.Streamed: 900, deploy.Worker: 900}
	for _, f := range deploy.Functions() {
		if most, ok := limits[f.Kind]; !ok || f.Seconds <= 0 || f.Seconds > most || f.Memory < 128 {
			t.Errorf("%+v", f)
		}
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"": nil, "*": {"*"}, "https://a.example": {"https://a.example"}, "https://a.example, http://b.example:81": {"https://a.example", "http://b.example:81"},
	} {
		got, err := deploy.Origins(list)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%q: %v\n%s", list, err, d)
		}
	}
	for _, bad := range []string{" ", ",", "https://a.example,", "*,*", "a.example", "https://a.example;https://b.example"} {
		if got, err := deploy.Origins(bad); err == nil {
			t.Errorf("%q: got %q", bad, got)
		}
	}
}

// manifest returns one as packing writes it.
func manifest() deploy.Manifest {
	return deploy.Manifest{
		Version: deploy.Version, Slug: "a", Architecture: "arm64", Archive: "bootstrap.zip", SHA256: strings.Repeat("0a", 32),
		Functions: deploy.Functions(), Routes: deploy.Routes(), Schedules: deploy.Schedules(),
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(manifest())
	if err != nil {
		t.Fatal(err)
	}
	got, err := deploy.Decode(data)
	if d := cmp.Diff(manifest(), got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	for _, bad := range []string{"", "[]", "{}", `{"version":2}`, `{"version":1}`} {
		if _, err := deploy.Decode([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestCheck: what packing does not write is refused, but for other memory of functions.
func TestCheck(t *testing.T) {
	t.Parallel()
	function := func(name string, change func(*deploy.Function)) func(*deploy.Manifest) {
		return func(m *deploy.Manifest) {
			for i := range m.Functions {
				if m.Functions[i].Name == name {
					change(&m.Functions[i])
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*deploy.Manifest)
		want   string // part of the error
	}{
		"as packed":              {change: func(*deploy.Manifest) {}},
		"more memory":            {change: function(deploy.Step, func(f *deploy.Function) { f.Memory = 10240 })},
		"a folder below":         {change: func(m *deploy.Manifest) { m.Archive = "zip/bootstrap.zip" }},
		"another version":        {func(m *deploy.Manifest) { m.Version = 2 }, "version 2"},
		"nobody":                 {func(m *deploy.Manifest) { m.Slug = "" }, "names no agent"},
		"a strange machine":      {func(m *deploy.Manifest) { m.Architecture = "mips" }, `"mips"`},
		"no archive":             {func(m *deploy.Manifest) { m.Archive = "" }, "not in its folder"},
		"an archive above":       {func(m *deploy.Manifest) { m.Archive = "../../etc/passwd" }, `the archive "../../etc/passwd", which is not in its folder`},
		"an archive elsewhere":   {func(m *deploy.Manifest) { m.Archive = "/etc/passwd" }, "not in its folder"},
		"no sum":                 {func(m *deploy.Manifest) { m.SHA256 = "" }, "SHA-256"},
		"a short sum":            {func(m *deploy.Manifest) { m.SHA256 = "0a" }, "SHA-256"},
		"a sum that is text":     {func(m *deploy.Manifest) { m.SHA256 = strings.Repeat("xy", 32) }, "SHA-256"},
		"no time for a step":     {function(deploy.Step, func(f *deploy.Function) { f.Seconds = 50 }), "the function step as a worker one with 50 s, its code is for a worker one with 900 s"},
		"a stream that is whole": {function(deploy.Stream, func(f *deploy.Function) { f.Kind = deploy.Buffered }), "the function stream as a buffered one"},
		"too little memory":      {function(deploy.Sweep, func(f *deploy.Function) { f.Memory = 64 }), "the function sweep with 64 MiB"},
		"too much memory":        {function(deploy.Sweep, func(f *deploy.Function) { f.Memory = 10241 }), "10241 MiB"},
		"an unknown function":    {func(m *deploy.Manifest) { m.Functions = append(m.Functions, deploy.Function{Name: "dream"}) }, `"dream"`},
		"a function twice":       {func(m *deploy.Manifest) { m.Functions = append(m.Functions, m.Functions[0]) }, `"await"`},
		"a function too few":     {func(m *deploy.Manifest) { m.Functions = m.Functions[1:] }, `lacks the function "await"`},
		"a route to a worker":    {func(m *deploy.Manifest) { m.Routes[0].Function = deploy.Step }, "other routes"},
		"a schedule that rests":  {func(m *deploy.Manifest) { m.Schedules[0].Rate = 0 }, "schedules"},
	} {
		m := manifest()
		tc.change(&m)
		if err := m.Check(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v; want %q in it", name, err, tc.want)
		}
	}
}

// TestCrons: a manifest has the schedules that packing writes, and no others.
func TestCrons(t *testing.T) {
	t.Parallel()
	daily, err := deploy.NewCron("daily", "0 9 13 * FRI")
	if err != nil || len(daily.Expressions) != 2 {
		t.Fatalf("got %+v, %v", daily, err)
	}
	other := daily
	other.Expressions = []string{"cron(0 9 13 * 5 *)"}
	for want, crons := range map[string][]deploy.Cron{
		"":                     {daily},
		"twice":                {daily, daily},
		"on AWS that is":       {other},
		"there are 1 fields":   {{Schedule: "daily", Cron: "x"}},
		`the schedule ""`:      {{Cron: daily.Cron, Expressions: daily.Expressions}},
		"the schedule \"a\" t": {daily, {Schedule: "a", Cron: daily.Cron, Expressions: daily.Expressions}},
	} {
		m := manifest()
		m.Crons = crons
		if err := m.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
