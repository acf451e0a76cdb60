package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/deploy"
)

func TestVariablesAreTextOrAnObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  any
		want map[string]string // nil: refused
	}{
		"not set":        {nil, map[string]string{}},
		"empty":          {"", map[string]string{}},
		"pairs":          {"A=1,B=x=y,C=", map[string]string{"A": "1", "B": "x=y", "C": ""}},
		"JSON":           {` {"A":"1,2"}`, map[string]string{"A": "1,2"}},
		"decoded":        {map[string]any{"A": "1"}, map[string]string{"A": "1"}},
		"no value":       {"A", nil},
		"no name":        {"=1", nil},
		"a number":       {1.5, nil},
		"a list":         {[]any{"A=1"}, nil},
		"twice":          {"A=1,A=2", nil},
		"twice in JSON":  {`{"A":"1","A":"2"}`, nil},
		"null":           {`{"A":null}`, nil},
		"number in JSON": {`{"A":1}`, nil},
	} {
		got, err := deploy.Variables(c.set)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: got %v", name, got)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

func TestStackNamesDiffer(t *testing.T) {
	t.Parallel()
	for slug, want := range map[string]string{"my-agent": "bdk-my-agent", "my_agent": "bdk-my-agent-6156e1fd"} {
		if got := deploy.StackName(slug); got != want {
			t.Errorf("%s: got %s, want %s", slug, got, want)
		}
	}
}
