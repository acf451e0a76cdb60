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
		if path := strings.TrimSuffix(r.Pattern, "{$}"); !r.Host && byPath[path] != string(r.Group) {
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

func TestDecode(t *testing.T) {
	t.Parallel()
	want := deploy.Manifest{Version: deploy.Version, Slug: "a", Architecture: "arm64", Functions: deploy.Functions(), Routes: deploy.Routes(), Schedules: deploy.Schedules()}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := deploy.Decode(data)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	for _, bad := range []string{"", "[]", "{}", `{"version":2}`} {
		if _, err := deploy.Decode([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
