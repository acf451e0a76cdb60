package launch_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/launch"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	want := launch.Config{Command: "serve", Port: 3000, StateRoot: "state", Roots: map[string]string{"a": "dir"}, BearerTokens: []string{"x:y"}, Origins: []string{"*"}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := launch.Decode(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "[]", `{"port":"3000"}`, `{"later":true}`} {
		if _, err := launch.Decode(bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
